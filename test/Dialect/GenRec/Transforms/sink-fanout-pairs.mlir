// RUN: genrec-opt %s --genrec-sink-fanout --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-sink-fanout --genrec-pass-statistics --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-sink-fanout --genrec-verify-each --split-input-file -o /dev/null

// COUNT: genrec-sink-fanout hoisted: 2
// COUNT: genrec-sink-fanout split: 2
// COUNT: genrec-sink-fanout stopped: 17
// COUNT: genrec-sink-fanout sunk: 15

// An impression's own copy of the history is that of its request: looked up, encoded and
// reduced once. An event without impressions is never looked up.

!r = tensor<?x8xf32, #genrec.rows<@request>>
!x = tensor<?x8xf32, #genrec.rows<@impression>>
!e = tensor<?x8xf32, #genrec.rows<@event>>
!p = tensor<?x8xf32, #genrec.rows<@seen>>
!ids = tensor<?xi64, #genrec.rows<@event>>
!pids = tensor<?xi64, #genrec.rows<@seen>>

// CHECK-LABEL: genrec.model @encode
// CHECK-SAME: "sink-fanout: fanout of row_reduce to @impression stops at loss (sink-fanout-pairs.mlir:{{[0-9]+}}), which is about rows of @impression"
// CHECK: %[[D:.*]]:3 = genrec.batch
// CHECK: %[[ID:.*]] = genrec.feature %[[D]]#2
// CHECK: %[[SMALL:.*]] = genrec.mod %[[ID]]
// CHECK: %[[LENGTH:.*]] = genrec.length %[[D]]#1 : {{.*}} -> tensor<?xi64, #genrec.rows<@request>>
// CHECK: %[[EXISTS:.*]] = genrec.compare gt %[[LENGTH]]
// CHECK: %[[VALID:.*]] = genrec.fanout %[[EXISTS]] to %[[D]]#2
// CHECK: %[[V:.*]] = genrec.lookup %[[SMALL]] valid %[[VALID]] in @item {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[AT:.*]] = genrec.position %[[D]]#2
// CHECK: %[[W:.*]] = genrec.embedding %[[AT]]
// CHECK: %[[X:.*]] = genrec.add %[[V]], %[[W]] : (tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[H:.*]] = genrec.hstu_block silu %[[X]], {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[A:.*]] = genrec.attention softmax %[[H]], %[[H]], %[[H]] {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[POOL:.*]] = genrec.pool mean %[[A]] to %[[D]]#0
// CHECK: %[[S:.*]] = genrec.row_reduce sum %[[POOL]] : {{.*}} -> tensor<?xf32, #genrec.rows<@request>>
// CHECK: genrec.fanout %[[S]] to %[[D]]#1
// CHECK-NOT: genrec.pair_rows
genrec.model @encode {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @places : tensor<4x8xf32> {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @uvqk : tensor<8x32xf32> {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<8x8xf32> {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<8xf32> {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %item = genrec.feature %event "events.item" : (!genrec.domain<@event>) -> !ids
    %id = genrec.pair_rows %item into %seen : (!ids, !genrec.domain<@seen>) -> !pids
    %small = genrec.mod %id {divisor = 100 : i64} : (!pids) -> !pids
    %v = genrec.lookup %small in @item : (!pids) -> !p
    %at = genrec.position %seen : (!genrec.domain<@seen>) -> !pids
    %places = genrec.param @places : tensor<4x8xf32>
    %place = genrec.embedding %at of %places : (!pids, tensor<4x8xf32>) -> !p
    %x = genrec.add %v, %place : (!p, !p) -> !p
    %uvqk = genrec.param @uvqk : tensor<8x32xf32>
    %w = genrec.param @w : tensor<8x8xf32>
    %b = genrec.param @b : tensor<8xf32>
    %h = genrec.hstu_block silu %x, %uvqk, %w, %b
        {heads = 1 : i64, qk = 8 : i64, dv = 8 : i64, causal, eps = 1.0e-6 : f64} : (!p, tensor<8x32xf32>, tensor<8x8xf32>, tensor<8xf32>) -> !p
    %a = genrec.attention softmax %h, %h, %h {heads = 2 : i64} : (!p, !p, !p) -> !p
    %pool = genrec.pool mean %a to %impression : (!p, !genrec.domain<@impression>) -> !x
    %s = genrec.row_reduce sum %pool : (!x) -> tensor<?xf32, #genrec.rows<@impression>>
    genrec.loss "s" %s : tensor<?xf32, #genrec.rows<@impression>>
  }
}

// -----

// Counts of targets and lengths are the request's too; neighbours keep their lists.

!p = tensor<?x8xf32, #genrec.rows<@seen>>
!e = tensor<?x8xf32, #genrec.rows<@event>>
!n = tensor<?xi64, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @lists
// CHECK: %[[D:.*]]:3 = genrec.batch
// CHECK: %[[V:.*]] = genrec.mul {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[N:.*]] = genrec.length %[[D]]#2 : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@request>>
// CHECK: %[[A:.*]] = genrec.attention silu %[[V]], %[[V]], %[[V]] target %[[N]] {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[L:.*]], %{{.*}} = genrec.lead %[[A]] {{.*}} -> (tensor<?x8xf32, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>)
// CHECK: %[[T:.*]] = genrec.tile %[[L]] to %[[D]]#0 {{.*}} -> tensor<?x16xf32, #genrec.rows<@request>>
// CHECK: %[[F:.*]] = genrec.fanout %[[T]] to %[[D]]#1
// CHECK: genrec.output "tile" %[[F]]
genrec.model @lists {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.parameter @v : tensor<8xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %price = genrec.feature %event "events.price" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %vector = genrec.param @v : tensor<8xf32>
    %y = genrec.mul %price, %vector : (tensor<?xf32, #genrec.rows<@event>>, tensor<8xf32>) -> !e
    %x = genrec.pair_rows %y into %seen : (!e, !genrec.domain<@seen>) -> !p
    %n = genrec.length %seen : (!genrec.domain<@seen>) -> !n
    %a = genrec.attention silu %x, %x, %x target %n {heads = 1 : i64, causal} : (!p, !p, !p, !n) -> !p
    %l, %valid = genrec.lead %a {distance = 1 : i64} : (!p) -> (!p, tensor<?xi1, #genrec.rows<@seen>>)
    %t = genrec.tile %l to %impression {count = 2 : i64} : (!p, !genrec.domain<@impression>) -> tensor<?x16xf32, #genrec.rows<@impression>>
    genrec.output "tile" %t : tensor<?x16xf32, #genrec.rows<@impression>>
  }
}

// -----

// What draws stays; what is of the impression stays; the two halves of a pair meet there.

!x = tensor<?x8xf32, #genrec.rows<@impression>>
!e = tensor<?x8xf32, #genrec.rows<@event>>
!p = tensor<?x8xf32, #genrec.rows<@seen>>
!n = tensor<?xi64, #genrec.rows<@impression>>

// CHECK-LABEL: genrec.model @stays
// CHECK-SAME: "sink-fanout: copy of mul into pairs @seen stops at attention (sink-fanout-pairs.mlir:{{[0-9]+}}), which draws for each row of @seen"
// CHECK-SAME: "sink-fanout: copy of mul into pairs @seen stops at attention (sink-fanout-pairs.mlir:{{[0-9]+}}), which works on whole lists of @seen"
// CHECK-SAME: "sink-fanout: copy of mul into pairs @seen stops at mul (sink-fanout-pairs.mlir:{{[0-9]+}}), where rows of @event and @impression meet"
// CHECK: genrec.attention softmax {{.*}} -> tensor<?x8xf32, #genrec.rows<@seen>>
// CHECK: genrec.attention silu {{.*}} -> tensor<?x8xf32, #genrec.rows<@seen>>
// CHECK: genrec.mul {{.*}} -> tensor<?x8xf32, #genrec.rows<@seen>>
genrec.model @stays {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.parameter @v : tensor<8xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %price = genrec.feature %event "events.price" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %quality = genrec.feature %impression "impressions.quality" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %count = genrec.feature %impression "impressions.count" : (!genrec.domain<@impression>) -> !n
    %vector = genrec.param @v : tensor<8xf32>
    %y = genrec.mul %price, %vector : (tensor<?xf32, #genrec.rows<@event>>, tensor<8xf32>) -> !e
    %q = genrec.mul %quality, %vector : (tensor<?xf32, #genrec.rows<@impression>>, tensor<8xf32>) -> !x
    %drawn = genrec.pair_rows %y into %seen : (!e, !genrec.domain<@seen>) -> !p
    %a = genrec.attention softmax %drawn, %drawn, %drawn {heads = 1 : i64, dropout = 0.5 : f64, stream = 256 : i64} : (!p, !p, !p) -> !p
    %own = genrec.pair_rows %y into %seen : (!e, !genrec.domain<@seen>) -> !p
    %t = genrec.attention silu %own, %own, %own target %count {heads = 1 : i64} : (!p, !p, !p, !n) -> !p
    %first = genrec.fanout %q to %seen : (!x, !genrec.domain<@seen>) -> !p
    %second = genrec.pair_rows %y into %seen : (!e, !genrec.domain<@seen>) -> !p
    %m = genrec.mul %second, %first : (!p, !p) -> !p
    %at = genrec.add %a, %t : (!p, !p) -> !p
    %all = genrec.add %at, %m : (!p, !p) -> !p
    %s = genrec.row_reduce sum %all : (!p) -> tensor<?xf32, #genrec.rows<@seen>>
    genrec.loss "s" %s : tensor<?xf32, #genrec.rows<@seen>>
  }
}

// -----

// A layer over columns of request, impression, event and pair: a product at each, the
// request's added to the events'.

!p = tensor<?x8xf32, #genrec.rows<@seen>>
!y = tensor<?x3xf32, #genrec.rows<@seen>>

// CHECK-LABEL: genrec.model @split
// CHECK: %[[PARTS:.*]]:4 = genrec.split_shared %{{.*}} : (tensor<32x3xf32>)
// CHECK: %[[R:.*]] = genrec.linear %{{.*}}, %[[PARTS]]#0 bias %{{.*}} -> tensor<?x3xf32, #genrec.rows<@request>>
// CHECK: %[[I:.*]] = genrec.linear %{{.*}}, %[[PARTS]]#1 : {{.*}} -> tensor<?x3xf32, #genrec.rows<@impression>>
// CHECK: %[[E:.*]] = genrec.linear %{{.*}}, %[[PARTS]]#2 : {{.*}} -> tensor<?x3xf32, #genrec.rows<@event>>
// CHECK: %[[P:.*]] = genrec.linear %{{.*}}, %[[PARTS]]#3 : {{.*}} -> tensor<?x3xf32, #genrec.rows<@seen>>
// CHECK: %[[RF:.*]] = genrec.fanout %[[R]] {{.*}} -> tensor<?x3xf32, #genrec.rows<@impression>>
// CHECK: %[[RI:.*]] = genrec.add %[[RF]], %[[I]]
// CHECK: %[[RIF:.*]] = genrec.fanout %[[RI]] {{.*}} -> tensor<?x3xf32, #genrec.rows<@seen>>
// CHECK: %[[EP:.*]] = genrec.pair_rows %[[E]]
// CHECK: %[[RIE:.*]] = genrec.add %[[RIF]], %[[EP]]
// CHECK: genrec.add %[[RIE]], %[[P]]
genrec.model @split {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.parameter @v : tensor<8xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<32x3xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @bias : tensor<3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %r0 = genrec.feature %request "r" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %i0 = genrec.feature %impression "impressions.i" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %e0 = genrec.feature %event "events.e" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %vector = genrec.param @v : tensor<8xf32>
    %r = genrec.mul %r0, %vector : (tensor<?xf32, #genrec.rows<@request>>, tensor<8xf32>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %i = genrec.mul %i0, %vector : (tensor<?xf32, #genrec.rows<@impression>>, tensor<8xf32>) -> tensor<?x8xf32, #genrec.rows<@impression>>
    %e = genrec.mul %e0, %vector : (tensor<?xf32, #genrec.rows<@event>>, tensor<8xf32>) -> tensor<?x8xf32, #genrec.rows<@event>>
    %rp = genrec.fanout %r to %seen : (tensor<?x8xf32, #genrec.rows<@request>>, !genrec.domain<@seen>) -> !p
    %ip = genrec.fanout %i to %seen : (tensor<?x8xf32, #genrec.rows<@impression>>, !genrec.domain<@seen>) -> !p
    %ep = genrec.pair_rows %e into %seen : (tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@seen>) -> !p
    %both = genrec.mul %ip, %ep : (!p, !p) -> !p
    %c = genrec.concat_columns %rp, %ip, %ep, %both : (!p, !p, !p, !p) -> tensor<?x32xf32, #genrec.rows<@seen>>
    %w = genrec.param @w : tensor<32x3xf32>
    %bias = genrec.param @bias : tensor<3xf32>
    %z = genrec.linear %c, %w bias %bias : (tensor<?x32xf32, #genrec.rows<@seen>>, tensor<32x3xf32>, tensor<3xf32>) -> !y
    genrec.output "y" %z : !y
  }
}

// -----

// DIN's activation unit: of (query, row, query - row, query * row) only the last is of pairs.

!x = tensor<?x8xf32, #genrec.rows<@impression>>
!e = tensor<?x8xf32, #genrec.rows<@event>>
!p = tensor<?x8xf32, #genrec.rows<@seen>>
!y = tensor<?x3xf32, #genrec.rows<@seen>>

// CHECK-LABEL: genrec.model @difference
// CHECK: %[[Q:.*]] = genrec.mul {{.*}} -> tensor<?x8xf32, #genrec.rows<@impression>>
// CHECK: %[[K:.*]] = genrec.mul {{.*}} -> tensor<?x8xf32, #genrec.rows<@event>>
// CHECK: %[[QK:.*]] = genrec.mul {{.*}} -> tensor<?x8xf32, #genrec.rows<@seen>>
// CHECK: %[[W:.*]]:4 = genrec.split_shared
// CHECK: %[[Q1:.*]] = genrec.linear %[[Q]], %[[W]]#0 bias
// CHECK: %[[K1:.*]] = genrec.linear %[[K]], %[[W]]#1 :
// CHECK: %[[Q2:.*]] = genrec.linear %[[Q]], %[[W]]#2 :
// CHECK: %[[QS:.*]] = genrec.add %[[Q1]], %[[Q2]] : (tensor<?x3xf32, #genrec.rows<@impression>>
// CHECK: %[[K2:.*]] = genrec.linear %[[K]], %[[W]]#2 :
// CHECK: %[[KS:.*]] = genrec.sub %[[K1]], %[[K2]] : (tensor<?x3xf32, #genrec.rows<@event>>
// CHECK: %[[P:.*]] = genrec.linear %[[QK]], %[[W]]#3 : {{.*}} -> tensor<?x3xf32, #genrec.rows<@seen>>
// CHECK: %[[QP:.*]] = genrec.fanout %[[QS]]
// CHECK: %[[KP:.*]] = genrec.pair_rows %[[KS]]
// CHECK: %[[S:.*]] = genrec.add %[[QP]], %[[KP]]
// CHECK: genrec.add %[[S]], %[[P]]
genrec.model @difference {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.parameter @v : tensor<8xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<32x3xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @bias : tensor<3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %i0 = genrec.feature %impression "impressions.i" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %e0 = genrec.feature %event "events.e" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %vector = genrec.param @v : tensor<8xf32>
    %i = genrec.mul %i0, %vector : (tensor<?xf32, #genrec.rows<@impression>>, tensor<8xf32>) -> !x
    %e = genrec.mul %e0, %vector : (tensor<?xf32, #genrec.rows<@event>>, tensor<8xf32>) -> !e
    %q = genrec.fanout %i to %seen : (!x, !genrec.domain<@seen>) -> !p
    %k = genrec.pair_rows %e into %seen : (!e, !genrec.domain<@seen>) -> !p
    %away = genrec.sub %q, %k : (!p, !p) -> !p
    %both = genrec.mul %q, %k : (!p, !p) -> !p
    %c = genrec.concat_columns %q, %k, %away, %both : (!p, !p, !p, !p) -> tensor<?x32xf32, #genrec.rows<@seen>>
    %w = genrec.param @w : tensor<32x3xf32>
    %bias = genrec.param @bias : tensor<3xf32>
    %z = genrec.linear %c, %w bias %bias : (tensor<?x32xf32, #genrec.rows<@seen>>, tensor<32x3xf32>, tensor<3xf32>) -> !y
    genrec.output "y" %z : !y
  }
}

// -----

// Gradients of copies are summed over the pairs before they are multiplied.

!e = tensor<?x4xf32, #genrec.rows<@event>>
!p = tensor<?x4xf32, #genrec.rows<@seen>>

// CHECK-LABEL: genrec.model @backwards
// CHECK: %[[Y:.*]] = genrec.mul {{.*}} -> tensor<?x4xf32, #genrec.rows<@event>>
// CHECK: %[[G:.*]] = genrec.mul {{.*}} -> tensor<?x4xf32, #genrec.rows<@seen>>
// CHECK: %[[S:.*]] = genrec.pair_sum %[[G]] to %{{.*}} -> tensor<?x4xf32, #genrec.rows<@event>>
// CHECK: genrec.weight_gradient %[[Y]], %[[S]]
// CHECK: %[[T:.*]] = genrec.pair_sum %[[G]] to
// CHECK: genrec.linear %[[T]], %{{.*}} -> tensor<?x4xf32, #genrec.rows<@event>>
genrec.model @backwards {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %a = genrec.feature %event "events.a" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %b = genrec.feature %impression "impressions.b" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %v = genrec.param @v : tensor<4xf32>
    %w = genrec.param @w : tensor<4x4xf32>
    %y = genrec.mul %a, %v : (tensor<?xf32, #genrec.rows<@event>>, tensor<4xf32>) -> !e
    %yp = genrec.pair_rows %y into %seen : (!e, !genrec.domain<@seen>) -> !p
    %bp = genrec.fanout %b to %seen : (tensor<?xf32, #genrec.rows<@impression>>, !genrec.domain<@seen>) -> tensor<?xf32, #genrec.rows<@seen>>
    %g = genrec.mul %yp, %bp : (!p, tensor<?xf32, #genrec.rows<@seen>>) -> !p
    %dw = genrec.weight_gradient %yp, %g : (!p, !p) -> tensor<4x4xf32>
    %dx = genrec.linear %g, %w {transposed} : (!p, tensor<4x4xf32>) -> !p
    %s = genrec.pair_sum %dx to %event : (!p, !genrec.domain<@event>) -> !e
    %one = genrec.reduce_rows %s : (!e) -> tensor<4xf32>
    genrec.update_parameter @w by %dw : tensor<4x4xf32>
    genrec.update_parameter @v by %one : tensor<4xf32>
  }
}

// -----

// Cross attention of impressions to their own copies of a list is that to the list, whose layers run once.

!q = tensor<?x4xf32, #genrec.rows<@impression>>
!e = tensor<?x4xf32, #genrec.rows<@event>>
!p = tensor<?x4xf32, #genrec.rows<@seen>>

// CHECK-LABEL: genrec.model @cross
// CHECK: %[[K:.*]] = genrec.linear %[[V:[0-9]+]], {{.*}} -> tensor<?x4xf32, #genrec.rows<@event>>
// CHECK: genrec.cross_attention %{{.*}}, %[[K]], %[[V]] {heads = 2 : i64}
// CHECK-NOT: genrec.pair_rows
genrec.model @cross {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seen parent @impression {kind = #genrec<domain_kind derived>}
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request, %impression, %event = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@event>
    %seen = genrec.pair_domains %impression, %event : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen>
    %shown = genrec.feature %impression "impressions.item" : (!genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@impression>>
    %read = genrec.feature %event "events.item" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %q = genrec.lookup %shown in @item : (tensor<?xi64, #genrec.rows<@impression>>) -> !q
    %e = genrec.lookup %read in @item : (tensor<?xi64, #genrec.rows<@event>>) -> !e
    %v = genrec.pair_rows %e into %seen : (!e, !genrec.domain<@seen>) -> !p
    %w = genrec.param @w : tensor<4x4xf32>
    %k = genrec.linear %v, %w : (!p, tensor<4x4xf32>) -> !p
    %a = genrec.cross_attention %q, %k, %v {heads = 2 : i64} : (!q, !p, !p) -> !q
    %x = genrec.row_reduce sum %a : (!q) -> tensor<?xf32, #genrec.rows<@impression>>
    genrec.loss "a" %x : tensor<?xf32, #genrec.rows<@impression>>
  }
}
