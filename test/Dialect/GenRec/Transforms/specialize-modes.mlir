// RUN: genrec-opt %s --genrec-specialize-modes --genrec-prune-columns --split-input-file | FileCheck %s
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

// COUNT: genrec-specialize-modes dropouts-removed: 7
// COUNT: genrec-specialize-modes item-vectors: 2
// COUNT: genrec-specialize-modes programs: 12
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

// -----

// The vectors that queries are compared with are given out, each expression once, without
// dropout; nothing of the batch is left.

// CHECK-LABEL: genrec.model @items_model
// CHECK: genrec.program @items_ mode items
// CHECK-NEXT: genrec.catalogue
// CHECK-NEXT: genrec.feature %{{.*}} "id"
// CHECK-NEXT: %[[ROWS:.*]] = genrec.lookup
// CHECK-NEXT: %[[NORMAL:.*]] = genrec.l2_normalize %[[ROWS]]
// CHECK-NEXT: genrec.output "vectors" %[[NORMAL]]
// CHECK-NEXT: genrec.output "vectors_2" %[[ROWS]]
// CHECK-NEXT: }
!u = tensor<?x4xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!m = tensor<?x4xf32, #genrec.rows<@items>>
!mi = tensor<?xi64, #genrec.rows<@items>>
genrec.model @items_model {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %id = genrec.feature %items "id" : (!genrec.domain<@items>) -> !mi
    %who = genrec.feature %user "who" : (!genrec.domain<@user>) -> !ui
    %query = genrec.lookup %who in @item : (!ui) -> !u
    %rows = genrec.lookup %id in @item : (!mi) -> !m
    %dropped = genrec.dropout %rows {rate = 0.5, stream = 256 : i64} : (!m) -> !m
    %normal = genrec.l2_normalize %dropped {eps = 1.0e-6 : f64} : (!m) -> !m
    %rank = genrec.rank %query, %who, %normal : (!u, !ui, !m) -> !ui
    genrec.metric ranking "rank" %rank : !ui
    %again = genrec.l2_normalize %dropped {eps = 1.0e-6 : f64} : (!m) -> !m
    %rank2 = genrec.rank %query, %who, %again : (!u, !ui, !m) -> !ui
    genrec.metric ranking "again" %rank2 : !ui
    %rank3 = genrec.rank %query, %who, %rows : (!u, !ui, !m) -> !ui
    genrec.metric ranking "rows" %rank3 : !ui
  }
}

// -----

// What the user gives out of a catalogue takes the place of the vectors, and is not
// predicted.

// CHECK-LABEL: genrec.model @given
// CHECK-NOT: mode predict
// CHECK: genrec.program @items_ mode items
// CHECK-NOT: "vectors"
// CHECK: genrec.output "mine"
// CHECK-NEXT: }
!u = tensor<?x4xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!m = tensor<?x4xf32, #genrec.rows<@items>>
!mi = tensor<?xi64, #genrec.rows<@items>>
genrec.model @given {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %id = genrec.feature %items "id" : (!genrec.domain<@items>) -> !mi
    %who = genrec.feature %user "who" : (!genrec.domain<@user>) -> !ui
    %query = genrec.lookup %who in @item : (!ui) -> !u
    %rows = genrec.lookup %id in @item : (!mi) -> !m
    %rank = genrec.rank %query, %who, %rows : (!u, !ui, !m) -> !ui
    genrec.metric ranking "rank" %rank : !ui
    genrec.output "mine" %rows : !m
  }
}

// -----

// A feature with a padding id says which rows its list has: it stays, unused, while rows
// of the list or of one below it are needed, and goes with them.

// CHECK-LABEL: genrec.model @padded
// CHECK: genrec.program @train mode train
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
// CHECK: genrec.feature %{{.*}} "events.item" {padding_id = 0 : i64}
// CHECK: genrec.loss
// CHECK: genrec.program @evaluate mode evaluate
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>, !genrec.domain<@tag>
// CHECK: genrec.feature %{{.*}} "events.item" {padding_id = 0 : i64}
// CHECK: genrec.metric
// CHECK: genrec.program @predict mode predict
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>
// CHECK-NOT: padding_id
// CHECK: genrec.output
!u = tensor<?xf32, #genrec.rows<@user>>
!e = tensor<?xf32, #genrec.rows<@event>>
!ei = tensor<?xi64, #genrec.rows<@event>>
!t = tensor<?xf32, #genrec.rows<@tag>>
genrec.model @padded {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.parameter @w : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event, %tag = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>, !genrec.domain<@tag>
    %item = genrec.feature %event "events.item" {padding_id = 0} : (!genrec.domain<@event>) -> !ei
    %time = genrec.feature %event "events.time" : (!genrec.domain<@event>) -> !e
    %score = genrec.feature %tag "events.tags.score" : (!genrec.domain<@tag>) -> !t
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %w = genrec.param @w : tensor<f32>
    %y = genrec.mul %time, %w : (!e, tensor<f32>) -> !e
    genrec.loss "y" %y : !e
    genrec.metric auc "tags" %score label %score : !t, !t
    genrec.output "x" %x : !u
  }
}
