// RUN: genrec-opt %s --genrec-specialize-modes --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-specialize-modes --genrec-pass-statistics --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// Each mode keeps what it needs, down to features and domains; only training drops out.

// CHECK-LABEL: genrec.model @all_modes
// CHECK: genrec.program @train mode train
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>
// CHECK-NEXT: genrec.feature %{{.*}} "x"
// CHECK-NEXT: genrec.feature %{{.*}} "label"
// CHECK-NEXT: genrec.param
// CHECK-NEXT: genrec.mul
// CHECK-NEXT: genrec.dropout
// CHECK-NEXT: genrec.bce_with_logits
// CHECK-NEXT: genrec.loss "bce"
// CHECK-NEXT: }

// CHECK: genrec.program @evaluate mode evaluate
// CHECK-NOT: genrec.dropout
// CHECK-NOT: genrec.output
// CHECK: genrec.loss "bce"
// CHECK-NEXT: genrec.metric auc "auc"

// CHECK: genrec.program @predict mode predict
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
// CHECK-NOT: "label"
// CHECK-NOT: genrec.loss
// CHECK-NOT: genrec.dropout
// CHECK: %[[Y:.*]] = genrec.mul
// CHECK-NEXT: genrec.length
// CHECK-NEXT: genrec.output "score" %[[Y]]
// CHECK-NEXT: genrec.output "events"

// COUNT: genrec-specialize-modes dropouts-removed: 5
// COUNT: genrec-specialize-modes programs: 5
!rows = tensor<?xf32, #genrec.rows<@user>>
genrec.model @all_modes {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @w : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !rows
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !rows
    %w = genrec.param @w : tensor<f32>
    %y = genrec.mul %x, %w : (!rows, tensor<f32>) -> !rows
    %d = genrec.dropout %y {rate = 0.5, stream = 256 : i64} : (!rows) -> !rows
    %loss = genrec.bce_with_logits %d, %label : (!rows, !rows) -> !rows
    %n = genrec.length %event : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@user>>
    genrec.loss "bce" %loss : !rows
    genrec.metric auc "auc" %d label %label : !rows, !rows
    genrec.output "score" %d : !rows
    genrec.output "events" %n : tensor<?xi64, #genrec.rows<@user>>
  }
}

// -----

// Dropout inside attention and blocks is an attribute; a taken name gets an
// underscore; a mode with nothing to do gets no program.

// CHECK-LABEL: genrec.model @blocks
// CHECK: genrec.program @train_ mode train
// CHECK: dropout = 1.000000e-01
// CHECK: genrec.program @evaluate mode evaluate
// CHECK-NOT: dropout = 1.000000e-01
// CHECK-NOT: mode predict
!rows = tensor<?x4xf32, #genrec.rows<@event>>
genrec.model @blocks {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @train : tensor<4x16xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @o : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %x = genrec.feature %event "events.x" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %w = genrec.param @train : tensor<4x16xf32>
    %o = genrec.param @o : tensor<4x4xf32>
    %b = genrec.param @b : tensor<4xf32>
    %v = genrec.mul %x, %b : (tensor<?xf32, #genrec.rows<@event>>, tensor<4xf32>) -> !rows
    %y = genrec.hstu_block silu %v, %w, %o, %b {heads = 1 : i64, causal, dropout = 0.1, fixed_length = 8.0, qk = 4 : i64, dv = 4 : i64, eps = 1.0e-6, linear_dropout = 0.2, stream = 256 : i64} : (!rows, tensor<4x16xf32>, tensor<4x4xf32>, tensor<4xf32>) -> !rows
    %z = genrec.attention softmax %y, %y, %y {heads = 1 : i64, dropout = 0.1, stream = 512 : i64} : (!rows, !rows, !rows) -> !rows
    %s = genrec.row_reduce sum %z : (!rows) -> tensor<?xf32, #genrec.rows<@event>>
    genrec.loss "s" %s : tensor<?xf32, #genrec.rows<@event>>
  }
}
