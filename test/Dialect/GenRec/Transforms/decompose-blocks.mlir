// RUN: genrec-opt %s --genrec-decompose-blocks --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-decompose-blocks --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: decompose-composite: 6
// COUNT: round-factors-of-rows: 2
// COUNT: genrec-decompose-blocks blocks: 6
// COUNT: genrec-decompose-blocks products: 2

!x = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @norms
// CHECK: %[[X:.*]] = genrec.mul
// CHECK: %[[MEAN:.*]] = genrec.row_reduce mean %[[X]]
// CHECK: %[[C:.*]] = genrec.sub %[[X]], %[[MEAN]]
// CHECK: %[[SQ:.*]] = genrec.square %[[C]]
// CHECK: %[[VAR:.*]] = genrec.row_reduce mean %[[SQ]]
// CHECK: %[[EPS:.*]] = genrec.constant dense<9.99999974E-6> : tensor<f32>
// CHECK: %[[SUM:.*]] = genrec.add %[[VAR]], %[[EPS]]
// CHECK: %[[R:.*]] = genrec.rsqrt %[[SUM]]
// CHECK: %[[N:.*]] = genrec.mul %[[C]], %[[R]]
// CHECK: %[[SCALED:.*]] = genrec.mul %[[N]], %[[V:.*]] : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<4xf32>)
// CHECK: %[[LN:.*]] = genrec.add %[[SCALED]], %[[V]]
// CHECK: %[[SQ2:.*]] = genrec.square %[[LN]]
// CHECK: %[[MS:.*]] = genrec.row_reduce mean %[[SQ2]]
// CHECK: genrec.add %[[MS]]
// CHECK: genrec.rsqrt
// CHECK: %[[RMS:.*]] = genrec.mul %[[LN]]
// CHECK: %[[RMSS:.*]] = genrec.mul %[[RMS]], %[[V]]
// The norm is bounded below by eps, its square by eps * eps.
// CHECK: %[[SQ3:.*]] = genrec.square %[[RMSS]]
// CHECK: %[[SS:.*]] = genrec.row_reduce sum %[[SQ3]]
// CHECK: %[[EPS2:.*]] = genrec.constant dense<9.99999997E-7>
// CHECK: %[[BOUNDED:.*]] = genrec.maximum %[[SS]], %[[EPS2]]
// CHECK: %[[INV:.*]] = genrec.rsqrt %[[BOUNDED]]
// CHECK: genrec.mul %[[RMSS]], %[[INV]]
genrec.model @norms {
  genrec.domain @user
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> !s
    %v = genrec.param @v : tensor<4xf32>
    %x = genrec.mul %f, %v : (!s, tensor<4xf32>) -> !x
    %a = genrec.layer_norm %x scale %v bias %v {eps = 1.0e-5} : (!x, tensor<4xf32>, tensor<4xf32>) -> !x
    %b = genrec.rms_norm %a scale %v {eps = 1.0e-5} : (!x, tensor<4xf32>) -> !x
    %c = genrec.l2_normalize %b {eps = 1.0e-3} : (!x) -> !x
    genrec.output "c" %c : !x
  }
}

// -----

// The label of a loss gets no gradient, whatever it was computed from.

!s = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @bce
// CHECK: %[[LABEL:.*]] = genrec.feature %{{.*}} "label"
// CHECK: %[[Y:.*]] = genrec.mul
// CHECK: %[[SP:.*]] = genrec.softplus %[[Y]]
// CHECK: %[[LY:.*]] = genrec.mul %[[LABEL]], %[[Y]]
// CHECK: genrec.sub %[[SP]], %[[LY]]
// CHECK: %[[T:.*]] = genrec.detach %[[Y]]
// CHECK: genrec.mul %[[T]], %[[Y]]
genrec.model @bce {
  genrec.domain @user
  genrec.parameter @w : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !s
    %w = genrec.param @w : tensor<f32>
    %y = genrec.mul %label, %w : (!s, tensor<f32>) -> !s
    %a = genrec.bce_with_logits %y, %label : (!s, !s) -> !s
    %b = genrec.bce_with_logits %y, %y : (!s, !s) -> !s
    genrec.loss "a" %a : !s
    genrec.loss "b" %b : !s
  }
}

// -----

!x = tensor<?x4xf32, #genrec.rows<@event>>

// CHECK-LABEL: genrec.model @hstu
// CHECK: %[[X:.*]] = genrec.mul
// CHECK: genrec.row_reduce mean %[[X]]
// CHECK: %[[J:.*]] = genrec.linear %{{.*}}, %{{.*}} : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<4x20xf32>) -> tensor<?x20xf32, #genrec.rows<@event>>
// CHECK: %[[A:.*]] = genrec.silu %[[J]]
// CHECK: %[[U:.*]] = genrec.slice_columns %[[A]] from 0 {{.*}} -> tensor<?x6xf32
// CHECK: %[[V:.*]] = genrec.slice_columns %[[A]] from 6 {{.*}} -> tensor<?x6xf32
// CHECK: %[[Q:.*]] = genrec.slice_columns %[[A]] from 12 {{.*}} -> tensor<?x4xf32
// CHECK: %[[K:.*]] = genrec.slice_columns %[[A]] from 16 {{.*}} -> tensor<?x4xf32
// CHECK: %[[ATT:.*]] = genrec.attention silu %[[Q]], %[[K]], %[[V]] {{.*}}dropout = 1.000000e-01 : f64{{.*}}heads = 2 : i64{{.*}}stream = 256 : i64
// CHECK: genrec.row_reduce mean %[[ATT]]
// CHECK: %[[G:.*]] = genrec.mul %[[U]]
// CHECK: %[[D:.*]] = genrec.dropout %[[G]] {rate = 2.000000e-01 : f64, stream = 257 : i64}
// CHECK: %[[P:.*]] = genrec.linear %[[D]], %{{.*}} bias
// CHECK: genrec.add %[[X]], %[[P]]
genrec.model @hstu {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @w : tensor<4x20xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @o : tensor<6x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %f = genrec.feature %event "events.f" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %w = genrec.param @w : tensor<4x20xf32>
    %o = genrec.param @o : tensor<6x4xf32>
    %b = genrec.param @b : tensor<4xf32>
    %x = genrec.mul %f, %b : (tensor<?xf32, #genrec.rows<@event>>, tensor<4xf32>) -> !x
    %y = genrec.hstu_block silu %x, %w, %o, %b {heads = 2 : i64, causal, dropout = 0.1, fixed_length = 8.0, qk = 2 : i64, dv = 3 : i64, eps = 1.0e-6, linear_dropout = 0.2, stream = 256 : i64} : (!x, tensor<4x20xf32>, tensor<6x4xf32>, tensor<4xf32>) -> !x
    genrec.output "y" %y : !x
  }
}

// -----

// Factors of a product that becomes part of row kernels are rounded by ops, items once for both.
// CHECK-LABEL: genrec.model @softmax
// CHECK: %[[Q:.*]] = genrec.tanh
// CHECK-NEXT: %[[RQ:.*]] = genrec.round_factor %[[Q]]
// CHECK: %[[I:.*]] = genrec.tanh
// CHECK-NEXT: %[[RI:.*]] = genrec.round_factor %[[I]]
// CHECK: genrec.sampled_softmax %[[RQ]], %{{.*}}, %[[RI]] {negatives = 4
// CHECK: genrec.sampled_softmax %{{.*}}, %{{.*}}, %[[RI]] {negatives = 2
// CHECK: genrec.sampled_softmax %[[Q]], %{{.*}}, %[[I]] {negatives = 3
!q = tensor<?x4xf32, #genrec.rows<@user>>
!n = tensor<?xi64, #genrec.rows<@user>>
!l = tensor<?xf32, #genrec.rows<@user>>
!i = tensor<?x4xf32, #genrec.rows<@items>>
genrec.model @softmax {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> !q
    %query = genrec.tanh %x : !q
    %other = genrec.sin %x : !q
    %rows = genrec.broadcast_rows %c to %items : (tensor<4xf32>, !genrec.domain<@items>) -> !i
    %vectors = genrec.tanh %rows : !i
    %one = genrec.constant dense<1> : tensor<i64>
    %positive = genrec.broadcast_rows %one to %user : (tensor<i64>, !genrec.domain<@user>) -> !n
    %a = genrec.sampled_softmax %query, %positive, %vectors {bf16, negatives = 4 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!q, !n, !i) -> !l
    %b = genrec.sampled_softmax %other, %positive, %vectors {bf16, negatives = 2 : i64, temperature = 0.5 : f64, stream = 768 : i64} : (!q, !n, !i) -> !l
    %f = genrec.sampled_softmax %query, %positive, %vectors {negatives = 3 : i64, temperature = 0.5 : f64, stream = 1024 : i64} : (!q, !n, !i) -> !l
    genrec.loss "a" %a : !l
    genrec.loss "b" %b : !l
    genrec.loss "f" %f : !l
  }
}
