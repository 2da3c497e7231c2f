// Products of rounded factors, one after another, with numbers that show what is rounded. 1 + 2^-8 lies half way between two
// bfloat16 and goes to the even one, 1; 1 + 3 * 2^-8 goes to 1 + 2^-6.
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/precision.json | FileCheck %s

!user = !genrec.domain<@user>
!list = !genrec.domain<@list>
!u = tensor<?xf32, #genrec.rows<@user>>
!u1 = tensor<?x1xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!l = tensor<?xf32, #genrec.rows<@list>>
!l1 = tensor<?x1xf32, #genrec.rows<@list>>

genrec.model @precision {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @one : tensor<1x1xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @tie : tensor<1x1xf32> {init = #genrec.init<constant, 1.00390625>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %list = genrec.batch : !user, !list
    %x0 = genrec.feature %user "x" : (!user) -> !u
    %x = genrec.concat_columns %x0 : (!u) -> !u1
    %pair = genrec.concat_columns %x0, %x0 : (!u, !u) -> !u2
    %one = genrec.param @one : tensor<1x1xf32>
    %tie = genrec.param @tie : tensor<1x1xf32>
    %bias = genrec.constant dense<[1.00390625]> : tensor<1xf32>

    %f32 = genrec.linear %x, %one : (!u1, tensor<1x1xf32>) -> !u1
    genrec.output "1 f32" %f32 : !u1
    // Too large for a bfloat16, and too small for a normal one.
    %left = genrec.linear %x, %one {bf16} : (!u1, tensor<1x1xf32>) -> !u1
    genrec.output "2 x" %left : !u1
    // The weight is rounded to 1, the bias stays.
    %right = genrec.linear %x, %tie bias %bias {bf16} : (!u1, tensor<1x1xf32>, tensor<1xf32>) -> !u1
    genrec.output "3 weight" %right : !u1
    // The result is f32: 1.015625^2.
    %dots = genrec.dot_interaction %pair {bf16, count = 2 : i64} : (!u2) -> !u1
    genrec.output "4 pairs" %dots : !u1

    // Two equal scores: both keys have weight exp(0) = 1 before 1/2, and the sum of values 1.00390625 is rounded, 1.
    %q0 = genrec.feature %list "list.q" : (!list) -> !l
    %v0 = genrec.feature %list "list.v" : (!list) -> !l
    %q = genrec.concat_columns %q0 : (!l) -> !l1
    %v = genrec.concat_columns %v0 : (!l) -> !l1
    %softmax = genrec.attention softmax %q, %q, %v {heads = 1 : i64, scale = 0.0 : f64, bf16} : (!l1, !l1, !l1) -> !l1
    genrec.output "5 softmax" %softmax : !l1
    // silu(1) = 0.731058579 is rounded to 0.73046875, for both keys, and their sum divided by 2.
    %silu = genrec.attention silu %q, %q, %v {heads = 1 : i64, bf16} : (!l1, !l1, !l1) -> !l1
    genrec.output "6 silu" %silu : !l1
    %exact = genrec.attention silu %q, %q, %v {heads = 1 : i64} : (!l1, !l1, !l1) -> !l1
    genrec.output "7 silu, f32" %exact : !l1
  }
}
// CHECK: 1 f32: [1.00390625, 1.01171875,
// CHECK: 2 x: [1, 1.015625, inf, 0]
// CHECK: 3 weight: [2.00390625, 2.01953125, inf, 1.00390625]
// CHECK: 4 pairs: [1, 1.03149414, inf, 0]
// CHECK: 5 softmax: [1, 1]
// CHECK: 6 silu: [0.73046875, 0.73046875]
// CHECK: 7 silu, f32: [0.741213498, 0.741213498]
