// RUN: genrec-opt %s --genrec-form-row-kernels=opt=2 --split-input-file | FileCheck %s

// A sum that a scalar is made of, through arithmetic that kernels repeat, is in the kernel of that scalar.

// CHECK-LABEL: genrec.model @through
// CHECK: genrec.row_kernel {{.*}} attributes {genrec.ops = "row_reduce, mul, add"
// CHECK-NOT: genrec.row_kernel
// CHECK: genrec.report_loss
genrec.model @through {
  genrec.domain @user
  genrec.parameter @a : tensor<64xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @s : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %a = genrec.param @a : tensor<64xf32>
    %s = genrec.param @s : tensor<f32>
    %sum = genrec.row_reduce sum %a : (tensor<64xf32>) -> tensor<f32>
    %product = genrec.mul %sum, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %total = genrec.add %product, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
    genrec.report_loss "total" %total, %s : tensor<f32>, tensor<f32>
  }
}

// -----

// A scalar that is made of many is computed once, by a kernel of its own, where several kernels read it; one that is made
// of few each of them computes again.

!u = tensor<?xf32, #genrec.rows<@user>>
!e = tensor<?xf32, #genrec.rows<@event>>
!s = tensor<f32>
// CHECK-LABEL: genrec.model @many
// CHECK: %[[ROW:.*]] = genrec.row_kernel {{.*}} attributes {genrec.ops = "add, add, add, add, add, add, add, add, sqrt"
// CHECK: %[[FACTOR:.*]] = genrec.rows_as_shared %[[ROW]]
// CHECK: genrec.row_kernel {{.*}}, %[[FACTOR]]) attributes {genrec.ops = "add, mul, mul"
// CHECK: genrec.row_kernel {{.*}}, %[[FACTOR]]) attributes {genrec.ops = "add, mul, mul"
genrec.model @many {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @p0 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p1 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p2 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p3 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p4 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p5 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p6 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p7 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p8 : !s {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %y = genrec.feature %event "events.y" : (!genrec.domain<@event>) -> !e
    %p0 = genrec.param @p0 : !s
    %p1 = genrec.param @p1 : !s
    %p2 = genrec.param @p2 : !s
    %p3 = genrec.param @p3 : !s
    %p4 = genrec.param @p4 : !s
    %p5 = genrec.param @p5 : !s
    %p6 = genrec.param @p6 : !s
    %p7 = genrec.param @p7 : !s
    %p8 = genrec.param @p8 : !s
    %s1 = genrec.add %p0, %p1 : (!s, !s) -> !s
    %s2 = genrec.add %s1, %p2 : (!s, !s) -> !s
    %s3 = genrec.add %s2, %p3 : (!s, !s) -> !s
    %s4 = genrec.add %s3, %p4 : (!s, !s) -> !s
    %s5 = genrec.add %s4, %p5 : (!s, !s) -> !s
    %s6 = genrec.add %s5, %p6 : (!s, !s) -> !s
    %s7 = genrec.add %s6, %p7 : (!s, !s) -> !s
    %s8 = genrec.add %s7, %p8 : (!s, !s) -> !s
    %factor = genrec.sqrt %s8 : !s
    %few = genrec.add %p0, %p2 : (!s, !s) -> !s
    %x1 = genrec.mul %x, %factor : (!u, !s) -> !u
    %x2 = genrec.mul %x1, %few : (!u, !s) -> !u
    %y1 = genrec.mul %y, %factor : (!e, !s) -> !e
    %y2 = genrec.mul %y1, %few : (!e, !s) -> !e
    genrec.output "x" %x2 : !u
    genrec.output "y" %y2 : !e
  }
}
