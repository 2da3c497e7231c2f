// RUN: genrec-opt %s --genrec-assign-stages | FileCheck %s
// RUN: genrec-opt %s --genrec-assign-stages --genrec-pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// Domain work and transforms of ids need nothing but the batch; floats stay with their consumers, which ids may be.

// COUNT: genrec-assign-stages compute-ops: 7
// COUNT: genrec-assign-stages copy-ops: 17
// CHECK: genrec.batch {genrec.stage = #genrec<stage copy>}
// CHECK: genrec.catalogue {genrec.stage = #genrec<stage copy>}
// CHECK: genrec.truncate {{.*}}stage copy
// CHECK: genrec.feature {{.*}}stage copy
// CHECK: genrec.feature {{.*}}stage copy
// CHECK: genrec.feature {{.*}}stage copy
// CHECK: genrec.lead {{.*}}stage copy
// CHECK: genrec.derive {{.*}}stage copy
// CHECK: genrec.derive {{.*}}stage copy
// CHECK: genrec.resolve {{.*}}stage copy
// CHECK: genrec.hash {{.*}}stage copy
// CHECK: genrec.constant {{.*}}stage copy
// CHECK: genrec.compare {{.*}}stage copy
// CHECK: genrec.cast {{.*}}stage compute
// CHECK: genrec.derive {{.*}}stage compute
// CHECK: genrec.bucketize {{.*}}stage copy
// CHECK: genrec.feature {{.*}}stage copy
// CHECK: genrec.derive {{.*}}stage copy
// CHECK: genrec.bucketize {{.*}}stage copy
// CHECK: genrec.lookup {{.*}}stage compute
// CHECK: genrec.compare {{.*}}stage compute
// CHECK: genrec.output {{.*}}stage compute
!ev = tensor<?xi64, #genrec.rows<@event>>
!recent = tensor<?xi64, #genrec.rows<@recent>>
genrec.model @stages {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @recent parent @user {kind = #genrec<domain_kind derived>}
  genrec.domain @items {kind = #genrec<domain_kind catalogue>}
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %event = genrec.batch : !genrec.domain<@event>
    %items = genrec.catalogue : !genrec.domain<@items>
    %recent = genrec.truncate %event {count = 8 : i64} : (!genrec.domain<@event>) -> !genrec.domain<@recent>
    %id = genrec.feature %event "events.id" : (!genrec.domain<@event>) -> !ev
    %price = genrec.feature %event "events.price" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %i = genrec.feature %items "i" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %next, %valid = genrec.lead %id : (!ev) -> (!ev, tensor<?xi1, #genrec.rows<@event>>)
    %ids = genrec.derive %next into %recent : (!ev, !genrec.domain<@recent>) -> !recent
    %ok = genrec.derive %valid into %recent : (tensor<?xi1, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xi1, #genrec.rows<@recent>>
    %positive = genrec.resolve %ids valid %ok in %i : (!recent, tensor<?xi1, #genrec.rows<@recent>>, tensor<?xi64, #genrec.rows<@items>>) -> !recent
    %hash = genrec.hash xxh3 %positive {bits = 20 : i64} : (!recent) -> !recent
    %zero = genrec.constant dense<0> : tensor<i64>
    %known = genrec.compare ge %positive, %zero : (!recent, tensor<i64>) -> tensor<?xi1, #genrec.rows<@recent>>
    %float = genrec.cast %known : (tensor<?xi1, #genrec.rows<@recent>>) -> tensor<?xf32, #genrec.rows<@recent>>
    %prices = genrec.derive %price into %recent : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xf32, #genrec.rows<@recent>>
    %bucket = genrec.bucketize %price {edges = array<f64: 1.0>} : (tensor<?xf32, #genrec.rows<@event>>) -> !ev
    %cost = genrec.feature %event "events.cost" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %costs = genrec.derive %cost into %recent : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xf32, #genrec.rows<@recent>>
    %class = genrec.bucketize %costs {edges = array<f64: 1.0>} : (tensor<?xf32, #genrec.rows<@recent>>) -> !recent
    %x = genrec.lookup %hash in @item : (!recent) -> tensor<?x4xf32, #genrec.rows<@recent>>
    %large = genrec.compare gt %x, %prices : (tensor<?x4xf32, #genrec.rows<@recent>>, tensor<?xf32, #genrec.rows<@recent>>) -> tensor<?x4xi1, #genrec.rows<@recent>>
    genrec.output "x" %x : tensor<?x4xf32, #genrec.rows<@recent>>
    genrec.output "large" %large : tensor<?x4xi1, #genrec.rows<@recent>>
    genrec.output "float" %float : tensor<?xf32, #genrec.rows<@recent>>
  }
}
