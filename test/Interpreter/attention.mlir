// A list of two rows with q = (0, 1), k = (0, 1), v = (4, 8), an empty one, and one of a row with v = 2.
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/sequence.json | FileCheck %s

!user = !genrec.domain<@user>
!list = !genrec.domain<@list>
!l = tensor<?xf32, #genrec.rows<@list>>
!l1 = tensor<?x1xf32, #genrec.rows<@list>>
!l2 = tensor<?x2xf32, #genrec.rows<@list>>
!li = tensor<?xi64, #genrec.rows<@list>>
!s3 = tensor<3xf32>
!s16 = tensor<16xf32>

genrec.model @attention {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.program @main {
    %user, %list = genrec.batch : !user, !list
    %q0 = genrec.feature %list "list.q" : (!list) -> !l
    %k0 = genrec.feature %list "list.k" : (!list) -> !l
    %v0 = genrec.feature %list "list.v" : (!list) -> !l
    %t = genrec.feature %list "list.t" : (!list) -> !li
    %q = genrec.concat_columns %q0 : (!l) -> !l1
    %k = genrec.concat_columns %k0 : (!l) -> !l1
    %v = genrec.concat_columns %v0 : (!l) -> !l1
    %q2 = genrec.concat_columns %q0, %q0 : (!l, !l) -> !l2
    %minus = genrec.neg %k0 : !l
    %k2 = genrec.concat_columns %k0, %minus : (!l, !l) -> !l2
    %v2 = genrec.concat_columns %v0, %v0 : (!l, !l) -> !l2
    %zero = genrec.sub %q0, %q0 : (!l, !l) -> !l
    %zeros = genrec.concat_columns %zero : (!l) -> !l1
    %places = genrec.constant dense<[1.0, 0.0, 2.0]> : !s3
    %times = genrec.constant dense<[0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 1.]> : !s16

    %causal = genrec.attention softmax %q, %k, %v {heads = 1, causal} : (!l1, !l1, !l1) -> !l1
    %all = genrec.attention softmax %q, %k, %v {heads = 1, scale = -1.0} : (!l1, !l1, !l1) -> !l1
    %own = genrec.attention softmax %q, %k, %v {heads = 1, window = 1} : (!l1, !l1, !l1) -> !l1
    %silu = genrec.attention silu %q, %k, %v {heads = 1, causal} : (!l1, !l1, !l1) -> !l1
    %fixed = genrec.attention silu %q, %k, %v {heads = 1, causal, fixed_length = 10.0} : (!l1, !l1, !l1) -> !l1
    %heads = genrec.attention softmax %q2, %k2, %v2 {heads = 2, causal} : (!l2, !l2, !l2) -> !l2
    %position = genrec.attention silu %zeros, %k, %v position_bias %places {heads = 1, fixed_length = 1.0} : (!l1, !l1, !l1, !s3) -> !l1
    %time = genrec.attention silu %zeros, %k, %v time_bias %times time %t {heads = 1, causal, fixed_length = 1.0} : (!l1, !l1, !l1, !s16, !li) -> !l1
    %next = genrec.attention silu %zeros, %k, %v time_bias %times time %t {heads = 1, causal, next_event_time, fixed_length = 1.0} : (!l1, !l1, !l1, !s16, !li) -> !l1
    genrec.output "1 causal" %causal : !l1
    genrec.output "2 all" %all : !l1
    genrec.output "3 own" %own : !l1
    genrec.output "4 silu" %silu : !l1
    genrec.output "5 fixed" %fixed : !l1
    genrec.output "6 heads" %heads : !l2
    genrec.output "7 position" %position : !l1
    genrec.output "8 time" %time : !l1
    genrec.output "9 next" %next : !l1
  }
}
// Where q is 1 the weights are 1 and e over their sum, 1 - sigmoid(1) and sigmoid(1) = 0.731058579.
// CHECK: 1 causal: [4, 6.92423431, 2]
// Row 0 weighs evenly; with scale -1 the weights change places.
// CHECK: 2 all: [6, 5.07576569, 2]
// CHECK: 3 own: [4, 8, 2]
// silu(1) = sigmoid(1), times 8, over 2.
// CHECK: 4 silu: [0, 2.92423431, 0]
// CHECK: 5 fixed: [0, 0.584846863, 0]
// The second head has k = (0, -1).
// CHECK: 6 heads:
// CHECK-NEXT: [4, 4]
// CHECK-NEXT: [6.92423431, 5.07576569]
// CHECK-NEXT: [2, 2]
// j - i is -1, 0 or 1: silu(1) = 0.731058579 of v 4 for row 1, silu(2) = 1.76159416 of v 8 for row 0.
// CHECK: 7 position: [14.0927532, 2.92423431, 0]
// 100 seconds are bucket floor(ln 100 / 0.301) = 15, none are bucket 0.
// CHECK: 8 time: [0, 2.92423431, 0]
// Row 0 sees itself from the time of row 1.
// CHECK: 9 next: [2.92423431, 2.92423431, 0]
