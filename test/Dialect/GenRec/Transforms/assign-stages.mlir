// RUN: genrec-opt %s --genrec-assign-stages | FileCheck %s
// RUN: genrec-opt %s --genrec-assign-stages --genrec-pass-statistics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// Domain work and transforms of ids need nothing but the batch; floats stay with their consumers, which ids may be.

// COUNT: genrec-assign-stages compute-ops: 35
// COUNT: genrec-assign-stages copy-ops: 31
// COUNT: genrec-assign-stages dispatch-ops: 10
// COUNT: genrec-assign-stages update-ops: 5
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

// A distributed program. The weight of the loss depends on the data only: its sum over portions is there before any portion
// computes, and the rows that compute reads as well are computed twice. What only updates read is of the update.
// CHECK-LABEL: genrec.model @distributed
// CHECK: genrec.program @train
// CHECK-NOT: genrec.meeting
// CHECK: genrec.table_rows {{.*}}stage dispatch
// CHECK: genrec.mul {{.*}}stage compute
// CHECK: genrec.mul {{.*}}stage dispatch
// CHECK: genrec.reduce_rows {{.*}}stage dispatch
// CHECK: genrec.contribute 0{{.*}}stage dispatch
// CHECK: genrec.collect 0{{.*}}stage compute
// CHECK: genrec.weight_gradient {{.*}}stage compute
// CHECK: genrec.contribute 1{{.*}}stage compute
// CHECK: genrec.collect 1{{.*}}stage update
// CHECK: genrec.parameter_rows {{.*}}stage update
// CHECK: genrec.step_value {{.*}}stage update
// CHECK: genrec.row_kernel {{.*}}stage update

// The sum of a value that depends on parameters, within compute: the portions of a rank meet there.
// CHECK: genrec.program @waits
// CHECK-SAME: genrec.meeting = "{{.*}} is a sum over all rows of the batch that the rest of the step depends on, and that depends on parameters"
!w = tensor<?xf32, #genrec.rows<@request>>
!w1 = tensor<?x1xf32, #genrec.rows<@request>>
genrec.model @distributed {
  genrec.domain @request
  genrec.domain @p_rows kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @p : tensor<1x1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %request = genrec.batch : !genrec.domain<@request>
    %ids = genrec.feature %request "id" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> !w
    %x = genrec.feature %request "x" : (!genrec.domain<@request>) -> !w1
    %rows = genrec.table_rows %ids in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@request>>
    %weights = genrec.mul %a, %a : (!w, !w) -> !w
    %weight = genrec.reduce_rows %weights : (!w) -> tensor<f32>
    %given = genrec.contribute 0(%weight) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    %scaled = genrec.mul %weights, %all : (!w, tensor<f32>) -> !w
    %g = genrec.mul %scaled, %x : (!w, !w1) -> !w1
    %dp = genrec.weight_gradient %x, %g : (!w1, !w1) -> tensor<1x1xf32>
    %mine = genrec.contribute 1(%dp) : tensor<1x1xf32>
    %sum = genrec.collect 1(%mine) : tensor<1x1xf32>
    %domain, %handles = genrec.parameter_rows @p : () -> (!genrec.domain<@p_rows>, tensor<?x!genrec.row<1>, #genrec.rows<@p_rows>>)
    %of_rows = genrec.shared_rows %sum as %domain : (tensor<1x1xf32>, !genrec.domain<@p_rows>) -> tensor<?x1xf32, #genrec.rows<@p_rows>>
    %rate = genrec.step_value "learning_rate"(0.1) : tensor<f32>
    genrec.row_kernel %domain(%handles, %of_rows, %rate) attributes {name = "update_p", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role shared>], result_roles = []} : (!genrec.domain<@p_rows>, tensor<?x!genrec.row<1>, #genrec.rows<@p_rows>>, tensor<?x1xf32, #genrec.rows<@p_rows>>, tensor<f32>) -> () {
    ^bb0(%row: !genrec.row<1>, %gradient: vector<1xf32>, %lr: f32):
      genrec.row_store %gradient to %row : vector<1xf32>, !genrec.row<1>
      genrec.row_yield
    }
  }
}

genrec.model @of_parameters {
  genrec.domain @request
  genrec.parameter @q : tensor<1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @waits mode train {
    %request = genrec.batch : !genrec.domain<@request>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> !w
    %q = genrec.param @q : tensor<1xf32>
    %q1 = genrec.row_reduce sum %q : (tensor<1xf32>) -> tensor<f32>
    %weights = genrec.mul %a, %q1 : (!w, tensor<f32>) -> !w
    %weight = genrec.reduce_rows %weights : (!w) -> tensor<f32>
    %given = genrec.contribute 0(%weight) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    %scaled = genrec.mul %weights, %all : (!w, tensor<f32>) -> !w
    %sum = genrec.reduce_rows %scaled : (!w) -> tensor<f32>
    genrec.report_loss "loss" %sum, %weight : tensor<f32>, tensor<f32>
  }
}

// Ids that depend on parameters are looked up within compute: portions meet there, too.
// CHECK: genrec.program @looks_up
// CHECK-SAME: genrec.meeting = "{{.*}} looks up ids that the step computes"
// CHECK: genrec.contribute 0{{.*}}stage dispatch
// CHECK: genrec.table_rows {{.*}}stage compute
genrec.model @of_ids {
  genrec.domain @request
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @q : tensor<1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @looks_up mode train {
    %request = genrec.batch : !genrec.domain<@request>
    %a = genrec.feature %request "a" : (!genrec.domain<@request>) -> !w
    %weight = genrec.reduce_rows %a : (!w) -> tensor<f32>
    %given = genrec.contribute 0(%weight) : tensor<f32>
    %all = genrec.collect 0(%given) : tensor<f32>
    %q = genrec.param @q : tensor<1xf32>
    %q1 = genrec.row_reduce sum %q : (tensor<1xf32>) -> tensor<f32>
    %scores = genrec.mul %a, %q1 : (!w, tensor<f32>) -> !w
    %ids = genrec.bucketize %scores {edges = array<f64: 1.0>} : (!w) -> tensor<?xi64, #genrec.rows<@request>>
    %rows = genrec.table_rows %ids in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@request>>
    genrec.report_loss "loss" %all, %all : tensor<f32>, tensor<f32>
  }
}

// Draws need the step's number, and the ids that they pick nothing else: all are dispatched, as the
// lookup is. What the loss reads as well is gathered there once more, where it can be fused.
// CHECK-LABEL: genrec.model @picks
// CHECK: genrec.resolve {{.*}}stage copy
// CHECK: genrec.draw_rows {{.*}}stage dispatch
// CHECK: %[[DOMAIN:.*]], %[[ROWS:.*]], %{{.*}}:2 = genrec.pick_rows {{.*}}stage dispatch
// CHECK: genrec.gather_rows {{.*}}stage compute{{.*}} -> tensor<?xi64, #genrec.rows<@picked>>
// CHECK-NEXT: genrec.gather_rows {{.*}}stage dispatch{{.*}} -> tensor<?xi64, #genrec.rows<@picked>>
// CHECK: genrec.table_rows {{.*}}stage dispatch
// CHECK: genrec.gather_rows {{.*}}stage compute{{.*}} -> tensor<?xf32, #genrec.rows<@picked>>
genrec.model @picks {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %request = genrec.batch : !genrec.domain<@request>
    %items = genrec.catalogue : !genrec.domain<@items>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %price = genrec.feature %items "price" : (!genrec.domain<@items>) -> tensor<?xf32, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    %picked, %rows, %to:2 = genrec.pick_rows %items (%target, %drawn)
        : (!genrec.domain<@items>, tensor<?xi64, #genrec.rows<@request>>, tensor<4xi64>)
        -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@picked>>, tensor<?xi64, #genrec.rows<@request>>, tensor<4xi64>)
    %own = genrec.gather_rows %ids at %rows
        : (tensor<?xi64, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@picked>>) -> tensor<?xi64, #genrec.rows<@picked>>
    %handles = genrec.table_rows %own in @item : (tensor<?xi64, #genrec.rows<@picked>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@picked>>
    %prices = genrec.gather_rows %price at %rows
        : (tensor<?xf32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@picked>>) -> tensor<?xf32, #genrec.rows<@picked>>
    %even = genrec.cast %own : (tensor<?xi64, #genrec.rows<@picked>>) -> tensor<?xf32, #genrec.rows<@picked>>
    %product = genrec.mul %prices, %even
        : (tensor<?xf32, #genrec.rows<@picked>>, tensor<?xf32, #genrec.rows<@picked>>) -> tensor<?xf32, #genrec.rows<@picked>>
    %sum = genrec.reduce_rows %product : (tensor<?xf32, #genrec.rows<@picked>>) -> tensor<f32>
    genrec.report_loss "loss" %sum, %sum : tensor<f32>, tensor<f32>
  }
}
