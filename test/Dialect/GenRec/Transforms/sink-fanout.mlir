// RUN: genrec-opt %s --genrec-sink-fanout --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-sink-fanout --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: hoist-pool: 1
// COUNT: pool-weight-gradient: 1
// COUNT: sink-fanout: 6
// COUNT: split-linear: 1
// COUNT: genrec-sink-fanout hoisted: 2
// COUNT: genrec-sink-fanout split: 1
// COUNT: genrec-sink-fanout stopped: 3
// COUNT: genrec-sink-fanout sunk: 6

// Row-wise ops, matrix products, norms and lookups run over requests; dropout does not.

!ids = tensor<?xi64, #genrec.rows<@request>>
!shown = tensor<?xi64, #genrec.rows<@impression>>
!r = tensor<?x8xf32, #genrec.rows<@request>>
!x = tensor<?x8xf32, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @chain
// CHECK-SAME: "sink-fanout: fanout of linear to @impression stops at dropout (sink-fanout.mlir:{{[0-9]+}}), which draws for each row of @impression"
// CHECK: %[[D:.*]]:2 = genrec.batch
// CHECK: %[[USER:.*]] = genrec.feature
// CHECK: %[[ID:.*]] = genrec.mod %[[USER]] {{.*}} : (tensor<?xi64, #genrec.rows<@request>>)
// CHECK: %[[LENGTH:.*]] = genrec.length %[[D]]#1
// CHECK: %[[EXISTS:.*]] = genrec.compare gt %[[LENGTH]]
// CHECK: %[[X:.*]] = genrec.lookup %[[ID]] valid %[[EXISTS]] in @user
// CHECK: %[[N:.*]] = genrec.layer_norm %[[X]] {{.*}} -> tensor<?x8xf32, #genrec.rows<@request>>
// CHECK: %[[A:.*]] = genrec.silu %[[N]]
// CHECK: %[[P:.*]] = genrec.add %[[A]], %[[X]]
// CHECK: %[[Y:.*]] = genrec.linear %[[P]], %{{.*}} -> tensor<?x8xf32, #genrec.rows<@request>>
// CHECK: %[[F:.*]] = genrec.fanout %[[Y]] to %[[D]]#1
// CHECK: genrec.dropout %[[F]]
genrec.model @chain {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.table @user dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<8x8xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> !ids
    %f = genrec.fanout %user to %impression : (!ids, !genrec.domain<@impression>) -> !shown
    %id = genrec.mod %f {divisor = 100 : i64} : (!shown) -> !shown
    %x = genrec.lookup %id in @user : (!shown) -> !x
    %n = genrec.layer_norm %x {eps = 1.0e-6} : (!x) -> !x
    %a = genrec.silu %n : !x
    %p = genrec.add %a, %x : (!x, !x) -> !x
    %w = genrec.param @w : tensor<8x8xf32>
    %y = genrec.linear %p, %w : (!x, tensor<8x8xf32>) -> !x
    %d = genrec.dropout %y {rate = 0.5, stream = 256 : i64} : (!x) -> !x
    %s = genrec.row_reduce sum %d : (!x) -> tensor<?xf32, #genrec.rows<@impression>>
    genrec.loss "s" %s : tensor<?xf32, #genrec.rows<@impression>>
  }
}

// -----

// A linear layer over joined columns is split; what is left of it meets at the impressions.

!r = tensor<?x8xf32, #genrec.rows<@request>>
!x = tensor<?x8xf32, #genrec.rows<@impression>>
!y = tensor<?x3xf32, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @split
// CHECK-SAME: "sink-fanout: fanout of linear to @impression stops at add (sink-fanout.mlir:{{[0-9]+}}), which reads rows of @impression too"
// CHECK: %[[A:.*]] = genrec.feature %{{.*}} "a"
// CHECK: %[[B:.*]] = genrec.feature %{{.*}} "impressions.b"
// CHECK: %[[U:.*]] = genrec.mul %[[A]], %{{.*}} -> tensor<?x8xf32, #genrec.rows<@request>>
// CHECK: %[[V:.*]] = genrec.mul %[[B]], %{{.*}} -> tensor<?x8xf32, #genrec.rows<@impression>>
// CHECK: %[[W:.*]] = genrec.param @w
// CHECK: %[[PARTS:.*]]:2 = genrec.split_shared %[[W]] : (tensor<16x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
// CHECK: %[[UW:.*]] = genrec.linear %[[U]], %[[PARTS]]#0 bias %{{.*}} -> tensor<?x3xf32, #genrec.rows<@request>>
// CHECK: %[[VW:.*]] = genrec.linear %[[V]], %[[PARTS]]#1 : {{.*}} -> tensor<?x3xf32, #genrec.rows<@impression>>
// CHECK: %[[F:.*]] = genrec.fanout %[[UW]]
// CHECK: genrec.add %[[F]], %[[VW]]
// CHECK-NOT: genrec.concat_columns
genrec.model @split {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.parameter @v : tensor<8xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<16x3xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @bias : tensor<3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %request, %impression = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %b = genrec.feature %impression "impressions.b" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %vector = genrec.param @v : tensor<8xf32>
    %u = genrec.mul %a, %vector : (tensor<?xf32, #genrec.rows<@request>>, tensor<8xf32>) -> !r
    %v = genrec.mul %b, %vector : (tensor<?xf32, #genrec.rows<@impression>>, tensor<8xf32>) -> !x
    %f = genrec.fanout %u to %impression : (!r, !genrec.domain<@impression>) -> !x
    %c = genrec.concat_columns %f, %v : (!x, !x) -> tensor<?x16xf32, #genrec.rows<@impression>>
    %w = genrec.param @w : tensor<16x3xf32>
    %bias = genrec.param @bias : tensor<3xf32>
    %y = genrec.linear %c, %w bias %bias : (tensor<?x16xf32, #genrec.rows<@impression>>, tensor<16x3xf32>, tensor<3xf32>) -> !y
    genrec.output "y" %y : !y
  }
}

// -----

// Too few columns are not worth a split.

!x = tensor<?xf32, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @narrow
// CHECK-SAME: stops at concat_columns (sink-fanout.mlir:{{[0-9]+}}) for linear (sink-fanout.mlir:{{[0-9]+}}), whose fanned out columns are fewer than 8
// CHECK: genrec.concat_columns
// CHECK-NOT: genrec.split_shared
genrec.model @narrow {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.parameter @w : tensor<2x3xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %request, %impression = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %b = genrec.feature %impression "impressions.b" : (!genrec.domain<@impression>) -> !x
    %f = genrec.fanout %a to %impression : (tensor<?xf32, #genrec.rows<@request>>, !genrec.domain<@impression>) -> !x
    %c = genrec.concat_columns %f, %b : (!x, !x) -> tensor<?x2xf32, #genrec.rows<@impression>>
    %w = genrec.param @w : tensor<2x3xf32>
    %y = genrec.linear %c, %w : (tensor<?x2xf32, #genrec.rows<@impression>>, tensor<2x3xf32>) -> tensor<?x3xf32, #genrec.rows<@impression>>
    genrec.output "y" %y : tensor<?x3xf32, #genrec.rows<@impression>>
  }
}

// -----

// Gradients are pooled before they are multiplied.

!r = tensor<?x4xf32, #genrec.rows<@request>>
!x = tensor<?x4xf32, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @backwards
// CHECK: %[[A:.*]] = genrec.mul
// CHECK: %[[G:.*]] = genrec.mul
// CHECK: %[[P:.*]] = genrec.pool sum %[[G]] to %{{.*}} -> tensor<?x4xf32, #genrec.rows<@request>>
// CHECK: genrec.weight_gradient %[[A]], %[[P]]
// CHECK: %[[Q:.*]] = genrec.pool sum %[[G]]
// CHECK: genrec.linear %[[Q]], %{{.*}} -> tensor<?x4xf32, #genrec.rows<@request>>
genrec.model @backwards {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %b = genrec.feature %impression "impressions.b" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %v = genrec.param @v : tensor<4xf32>
    %w = genrec.param @w : tensor<4x4xf32>
    %x = genrec.mul %a, %v : (tensor<?xf32, #genrec.rows<@request>>, tensor<4xf32>) -> !r
    %g = genrec.mul %b, %v : (tensor<?xf32, #genrec.rows<@impression>>, tensor<4xf32>) -> !x
    %f = genrec.fanout %x to %impression : (!r, !genrec.domain<@impression>) -> !x
    %dw = genrec.weight_gradient %f, %g : (!x, !x) -> tensor<4x4xf32>
    %dx = genrec.linear %g, %w {transposed} : (!x, tensor<4x4xf32>) -> !x
    %s = genrec.pool sum %dx to %request : (!x, !genrec.domain<@request>) -> !r
    %one = genrec.reduce_rows %s : (!r) -> tensor<4xf32>
    genrec.update_parameter @w by %dw : tensor<4x4xf32>
    genrec.update_parameter @v by %one : tensor<4xf32>
  }
}
