// RUN: genrec-opt %s --genrec-differentiate --cse --split-input-file --verify-diagnostics | FileCheck %s
// RUN: genrec-opt %s --genrec-differentiate --genrec-pass-statistics --split-input-file --verify-diagnostics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: genrec-differentiate differentiated: 24
// COUNT: genrec-differentiate joined: 1
// COUNT: genrec-differentiate losses: 11
// COUNT: genrec-differentiate parameters: 5
// COUNT: genrec-differentiate tables: 2

// The thin path. The seed is scale * weight / sum of weights; the chain ends in updates.

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!e4 = tensor<?x4xf32, #genrec.rows<@event>>

// CHECK-LABEL: genrec.model @thin
// CHECK: %[[BATCH:.*]]:2 = genrec.batch
// CHECK: %[[IDS:.*]] = genrec.feature %[[BATCH]]#1 "events.item"
// CHECK: %[[P:.*]] = genrec.pool sum
// CHECK: %[[W:.*]] = genrec.param @w
// CHECK: %[[Y:.*]] = genrec.linear
// CHECK: %[[S:.*]] = genrec.row_reduce sum %[[Y]]
// CHECK: %[[SUM:.*]] = genrec.reduce_rows %[[S]]
// CHECK: %[[ONE:.*]] = genrec.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[ONES:.*]] = genrec.broadcast_rows %[[ONE]] to %[[BATCH]]#0
// CHECK: %[[TOTAL:.*]] = genrec.reduce_rows %[[ONES]]
// CHECK: genrec.report_loss "l" %[[SUM]], %[[TOTAL]] {scale = 2.000000e+00 : f64}
// CHECK: %[[ZERO:.*]] = genrec.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[ANY:.*]] = genrec.compare ne %[[TOTAL]], %[[ZERO]]
// CHECK: %[[DIVISOR:.*]] = genrec.select %[[ANY]], %[[TOTAL]], %[[ONE]]
// CHECK: %[[TWO:.*]] = genrec.constant dense<2.000000e+00>
// CHECK: %[[SCALE:.*]] = genrec.select %[[ANY]], %[[TWO]], %[[ZERO]]
// CHECK: %[[PER:.*]] = genrec.div %[[SCALE]], %[[DIVISOR]]
// CHECK: %[[SEED:.*]] = genrec.mul %[[ONES]], %[[PER]]
// CHECK: %[[DY:.*]] = genrec.mul %[[SEED]], %{{.*}} -> tensor<?x2xf32, #genrec.rows<@user>>
// CHECK: %[[DP:.*]] = genrec.linear %[[DY]], %[[W]] {transposed}
// CHECK: %[[DW:.*]] = genrec.weight_gradient %[[P]], %[[DY]]
// CHECK: %[[DB:.*]] = genrec.reduce_rows %[[DY]]
// CHECK: %[[DX:.*]] = genrec.fanout %[[DP]] to %[[BATCH]]#1
// CHECK: genrec.update_parameter @w by %[[DW]]
// CHECK: genrec.update_parameter @b by %[[DB]]
// CHECK: genrec.update_table @item ids(%[[IDS]]) by(%[[DX]])
// CHECK-NEXT: }
genrec.model @thin {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %ids = genrec.feature %event "events.item" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %x = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@event>>) -> !e4
    %p = genrec.pool sum %x to %user : (!e4, !genrec.domain<@user>) -> !u4
    %w = genrec.param @w : tensor<4x2xf32>
    %b = genrec.param @b : tensor<2xf32>
    %y = genrec.linear %p, %w bias %b : (!u4, tensor<4x2xf32>, tensor<2xf32>) -> tensor<?x2xf32, #genrec.rows<@user>>
    %s = genrec.row_reduce sum %y : (tensor<?x2xf32, #genrec.rows<@user>>) -> !u
    genrec.loss "l" %s {scale = 2.0} : !u
  }
}

// -----

// Invalid rows neither count nor give a gradient; weights weigh; outside training losses only report.

!u = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @weighted
// CHECK: %[[X:.*]] = genrec.feature %{{.*}} "x"
// CHECK: %[[WEIGHT:.*]] = genrec.feature %{{.*}} "weight"
// CHECK: %[[VALID:.*]] = genrec.feature_valid %{{.*}} "x"
// CHECK: %[[Y:.*]] = genrec.mul %[[X]]
// CHECK: genrec.require_range "the weight of the loss 'l'" %[[WEIGHT]] valid %[[VALID]] {min = 0.000000e+00 : f64}
// CHECK: %[[WY:.*]] = genrec.mul %[[Y]], %[[WEIGHT]]
// CHECK: %[[ZERO:.*]] = genrec.constant dense<0.000000e+00>
// CHECK: %[[MASKED:.*]] = genrec.select %[[VALID]], %[[WY]], %[[ZERO]]
// CHECK: %[[SUM:.*]] = genrec.reduce_rows %[[MASKED]]
// CHECK: %[[ROWW:.*]] = genrec.select %[[VALID]], %[[WEIGHT]], %[[ZERO]]
// CHECK: %[[TOTAL:.*]] = genrec.reduce_rows %[[ROWW]]
// CHECK: genrec.report_loss "l" %[[SUM]], %[[TOTAL]]
// CHECK: %[[SEED:.*]] = genrec.mul %[[ROWW]]
// CHECK: %[[DX:.*]] = genrec.mul %[[SEED]], %[[X]]
// CHECK: %[[DC:.*]] = genrec.reduce_rows %[[DX]]
// CHECK-NEXT: genrec.update_parameter @c by %[[DC]]
// CHECK: genrec.program @evaluate
// CHECK: %[[V:.*]] = genrec.feature_valid
// CHECK: genrec.cast %[[V]]
// CHECK: genrec.report_loss
// CHECK-NEXT: }
genrec.model @weighted {
  genrec.domain @user
  genrec.parameter @c : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" {nullable} : (!genrec.domain<@user>) -> !u
    %weight = genrec.feature %user "weight" : (!genrec.domain<@user>) -> !u
    %valid = genrec.feature_valid %user "x" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %c = genrec.param @c : tensor<f32>
    %y = genrec.mul %x, %c : (!u, tensor<f32>) -> !u
    genrec.loss "l" %y weight %weight valid %valid : !u, !u, tensor<?xi1, #genrec.rows<@user>>
  }
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" {nullable} : (!genrec.domain<@user>) -> !u
    %valid = genrec.feature_valid %user "x" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    genrec.loss "l" %x valid %valid : !u, tensor<?xi1, #genrec.rows<@user>>
  }
}

// -----

// What weights are converted from is checked; a condition needs no check.

!u = tensor<?xf32, #genrec.rows<@user>>
!flag = tensor<?xi1, #genrec.rows<@user>>
!number = tensor<?xi64, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @converted_weights
// CHECK: %[[NUMBER:.*]] = genrec.feature %{{.*}} "count"
// CHECK-NOT: the weight of the loss 'flag'
// CHECK: genrec.require_range "the weight of the loss 'count'" %[[NUMBER]] {
genrec.model @converted_weights {
  genrec.domain @user
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %flag = genrec.feature %user "flag" : (!genrec.domain<@user>) -> !flag
    %count = genrec.feature %user "count" : (!genrec.domain<@user>) -> !number
    %flags = genrec.cast %flag : (!flag) -> !u
    %counts = genrec.cast %count : (!number) -> !u
    genrec.loss "flag" %x weight %flags : !u, !u
    genrec.loss "count" %x weight %counts : !u, !u
  }
}

// -----

// A weight that depends on a parameter has a gradient too: (x - mean) * scale / total.

!u = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @learned_weight
// CHECK: %[[X:.*]] = genrec.feature %{{.*}} "x"
// CHECK: %[[WEIGHT:.*]] = genrec.mul %[[X]]
// CHECK: %[[SUM:.*]] = genrec.reduce_rows
// CHECK: genrec.report_loss
// CHECK: %[[PER:.*]] = genrec.div
// CHECK: %[[MEAN:.*]] = genrec.div %[[SUM]]
// CHECK: %[[ABOVE:.*]] = genrec.sub %[[X]], %[[MEAN]]
// CHECK: %[[DWEIGHT:.*]] = genrec.mul %[[ABOVE]], %[[PER]]
// CHECK: %[[DC:.*]] = genrec.mul %[[DWEIGHT]], %[[X]]
// CHECK: genrec.reduce_rows %[[DC]]
genrec.model @learned_weight {
  genrec.domain @user
  genrec.parameter @c : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %c = genrec.param @c : tensor<f32>
    %weight = genrec.mul %x, %c : (!u, tensor<f32>) -> !u
    genrec.loss "l" %x weight %weight : !u, !u
  }
}

// -----

// Column slices that cover a row join their gradients; other uses add up in order.

!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @slices
// CHECK: %[[A:.*]] = genrec.slice_columns %{{.*}} from 0
// CHECK: %[[B:.*]] = genrec.slice_columns %{{.*}} from 2
// CHECK: genrec.report_loss
// A slice that covers a part only is padded.
// CHECK: %[[PADDED:.*]] = genrec.pad_columns %{{.*}} at 1
// CHECK: %[[DA:.*]] = genrec.mul %[[G:.*]], %[[B]]
// CHECK: %[[DB:.*]] = genrec.mul %[[G]], %[[A]]
// CHECK-NOT: genrec.pad_columns
// CHECK: %[[DY:.*]] = genrec.concat_columns %[[DA]], %[[DB]]
// CHECK: genrec.add %[[DY]], %[[PADDED]]
genrec.model @slices {
  genrec.domain @user
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %v = genrec.param @v : tensor<4xf32>
    %y = genrec.mul %x, %v : (!u, tensor<4xf32>) -> !u4
    %a = genrec.slice_columns %y from 0 : (!u4) -> !u2
    %b = genrec.slice_columns %y from 2 : (!u4) -> !u2
    %ab = genrec.mul %a, %b : (!u2, !u2) -> !u2
    %s = genrec.row_reduce sum %ab : (!u2) -> !u
    genrec.loss "l" %s : !u
    %z = genrec.add %y, %v : (!u4, tensor<4xf32>) -> !u4
    %c = genrec.slice_columns %z from 1 : (!u4) -> !u2
    %t = genrec.row_reduce sum %c : (!u2) -> !u
    genrec.loss "m" %t : !u
  }
}

// -----

// Lookups of one table are one update, in their order; nulls send zeros. What
// leads to no parameter (the compare, the label) is not differentiated.

!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
!ids = tensor<?xi64, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @lookups
// CHECK: %[[A:.*]] = genrec.feature %{{.*}} "a"
// CHECK: %[[B:.*]] = genrec.feature %{{.*}} "b"
// CHECK: %[[OK:.*]] = genrec.feature_valid
// CHECK: %[[ZERO:.*]] = genrec.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[GA:.*]] = genrec.neg %[[GB:.*]] : tensor<?x4xf32, #genrec.rows<@user>>
// CHECK: %[[MASKED:.*]] = genrec.select %[[OK]], %[[GA]], %[[ZERO]]
// CHECK: genrec.update_table @item ids(%[[A]], %[[B]]) by(%[[GB]], %[[MASKED]])
genrec.model @lookups {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !ids
    %b = genrec.feature %user "b" {nullable} : (!genrec.domain<@user>) -> !ids
    %ok = genrec.feature_valid %user "b" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %x = genrec.lookup %a in @item : (!ids) -> !u4
    %y = genrec.lookup %b valid %ok in @item : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !u4
    %d = genrec.sub %x, %y : (!u4, !u4) -> !u4
    %s = genrec.row_reduce sum %d : (!u4) -> !u
    %larger = genrec.compare gt %x, %y : (!u4, !u4) -> tensor<?x4xi1, #genrec.rows<@user>>
    %label = genrec.detach %s : !u
    %e = genrec.sub %s, %label : (!u, !u) -> !u
    genrec.loss "l" %e : !u
  }
}

// -----

genrec.model @not_differentiable {
  genrec.domain @user
  genrec.domain @items {kind = #genrec<domain_kind catalogue>}
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %i = genrec.feature %items "i" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %q = genrec.lookup %a in @item : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %e = genrec.lookup %i in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x4xf32, #genrec.rows<@items>>
    // expected-error @+1 {{'genrec.top_k' op has no gradient, but a loss depends through it on a parameter or a table; detach its operands or compute the loss from something else}}
    %index, %score = genrec.top_k %q, %e : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@items>>) -> (tensor<?x2xi64, #genrec.rows<@user>>, tensor<?x2xf32, #genrec.rows<@user>>)
    %s = genrec.row_reduce max %score : (tensor<?x2xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "l" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!id = tensor<?xi64, #genrec.rows<@user>>
genrec.model @what_is_kept {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %a = genrec.feature %user "a" : (!genrec.domain<@user>) -> !id
    %q = genrec.lookup %a in @item : (!id) -> !u4
    // expected-error @+1 {{'genrec.in_batch_softmax' op has a loss that depends on 'kept', which is for the op's own gradient}}
    %loss, %kept = genrec.in_batch_softmax %q, %q, %a {temperature = 0.5 : f64} : (!u4, !u4, !id) -> (!u, !u2)
    %s = genrec.row_reduce sum %kept : (!u2) -> !u
    genrec.loss "l" %s : !u
  }
}

// -----

genrec.model @composite {
  genrec.domain @user
  genrec.parameter @c : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %c = genrec.param @c : tensor<f32>
    %y = genrec.mul %x, %c : (tensor<?xf32, #genrec.rows<@user>>, tensor<f32>) -> tensor<?xf32, #genrec.rows<@user>>
    // expected-error @+1 {{'genrec.bce_with_logits' op is a composite block; run genrec-decompose-blocks first}}
    %l = genrec.bce_with_logits %y, %x : (tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "l" %l : tensor<?xf32, #genrec.rows<@user>>
  }
}
