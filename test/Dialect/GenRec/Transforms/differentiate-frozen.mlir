// RUN: genrec-opt %s --genrec-differentiate --cse --split-input-file | FileCheck %s

// What is frozen has no update, and nothing of its gradient is left: neither that of the weight nor
// the way down to the lookup. Gradients pass through a frozen layer to what lies below.

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @layer
// CHECK: genrec.linear %{{.*}}, %[[W:.*]] : {{.*}} -> tensor<?x2xf32
// CHECK: %[[DX:.*]] = genrec.linear %{{.*}}, %[[W]] {transposed}
// CHECK-NOT: genrec.weight_gradient
// CHECK-NOT: genrec.update_parameter
// CHECK: genrec.update_table @item ids(%{{.*}}) by(%[[DX]])
// CHECK-NEXT: }
genrec.model @layer {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {frozen = 1.0}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "item" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@user>>) -> !u4
    %w = genrec.param @w : tensor<4x2xf32>
    %y = genrec.linear %x, %w : (!u4, tensor<4x2xf32>) -> tensor<?x2xf32, #genrec.rows<@user>>
    %s = genrec.row_reduce sum %y : (tensor<?x2xf32, #genrec.rows<@user>>) -> !u
    genrec.loss "l" %s : !u
  }
}

// -----

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @table
// CHECK: genrec.lookup
// CHECK-NOT: {transposed}
// CHECK: %[[DW:.*]] = genrec.weight_gradient
// CHECK: genrec.update_parameter @w by %[[DW]]
// CHECK-NEXT: }
genrec.model @table {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adam, {frozen = 1.0}>}
  genrec.parameter @w : tensor<4x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "item" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@user>>) -> !u4
    %w = genrec.param @w : tensor<4x2xf32>
    %y = genrec.linear %x, %w : (!u4, tensor<4x2xf32>) -> tensor<?x2xf32, #genrec.rows<@user>>
    %s = genrec.row_reduce sum %y : (tensor<?x2xf32, #genrec.rows<@user>>) -> !u
    genrec.loss "l" %s : !u
  }
}
