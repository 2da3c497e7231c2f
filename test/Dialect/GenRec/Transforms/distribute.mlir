// RUN: genrec-opt %s --genrec-distribute --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-distribute --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: collect: 7
// COUNT: collect-rows: 4
// COUNT: exact-sum: 4
// COUNT: genrec-distribute exact-sums: 4
// COUNT: genrec-distribute sums: 7
// COUNT: genrec-distribute tables: 4

// The weight of a loss is added up before it divides, and reported as it is: the trainer adds up
// what portions report. The gradients of both parameters are added up together.

!x = tensor<?x2xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @parameters
// CHECK-SAME: distribute: @train adds up 3 sums over the portions of a batch, and brings the gradients of 0 tables to the owners of the rows
// CHECK: genrec.reduce_rows
// CHECK: %[[WEIGHT:.*]] = genrec.reduce_rows %{{.*}} -> tensor<f32>
// CHECK: %[[GIVEN:.*]] = genrec.contribute 0(%[[WEIGHT]]) : tensor<f32>
// CHECK: %[[ALL:.*]] = genrec.collect 0(%[[GIVEN]]) : tensor<f32>
// CHECK: genrec.report_loss "loss" %{{.*}}, %[[WEIGHT]]
// CHECK: genrec.div %{{.*}}, %[[ALL]]
// CHECK: %[[DW:.*]] = genrec.weight_gradient
// CHECK: %[[DB:.*]] = genrec.reduce_rows %{{.*}} -> tensor<1xf32>
// A product with what all portions have is linear: it stays partial.
// CHECK: %[[SCALED:.*]] = genrec.mul %[[DB]]
// CHECK: %[[BOTH:.*]]:2 = genrec.contribute 1(%[[DW]], %[[SCALED]])
// CHECK: %[[SUMS:.*]]:2 = genrec.collect 1(%[[BOTH]]#0, %[[BOTH]]#1)
// CHECK: genrec.update_parameter @w by %[[SUMS]]#0
// CHECK: genrec.update_parameter @b by %[[SUMS]]#1
genrec.model @parameters {
  genrec.domain @user
  genrec.parameter @w : tensor<2x1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @b : tensor<1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !x
    %ok = genrec.feature %user "weight" : (!genrec.domain<@user>) -> !s
    %half = genrec.constant dense<0.5> : tensor<f32>
    %sum = genrec.reduce_rows %ok : (!s) -> tensor<f32>
    %weight = genrec.reduce_rows %ok : (!s) -> tensor<f32>
    genrec.report_loss "loss" %sum, %weight : tensor<f32>, tensor<f32>
    %seed = genrec.div %half, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %gradient = genrec.mul %ok, %seed : (!s, tensor<f32>) -> !s
    %one = genrec.constant dense<1.0> : tensor<1xf32>
    %ones = genrec.broadcast_rows %one to %user : (tensor<1xf32>, !genrec.domain<@user>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %g = genrec.mul %gradient, %ones : (!s, tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %dw = genrec.weight_gradient %x, %g : (!x, tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<2x1xf32>
    %db = genrec.reduce_rows %g : (tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<1xf32>
    %scaled = genrec.mul %db, %half : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
    genrec.update_parameter @w by %dw : tensor<2x1xf32>
    genrec.update_parameter @b by %scaled : tensor<1xf32>
  }
}

// -----

// The gradients of table rows go to the owners, whose kernel clips and applies them; the norm is an
// exact sum over the rows of all ranks.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!handles = tensor<?x!genrec.row<4>, #genrec.rows<@touched>>
!sums = tensor<?x4xf32, #genrec.rows<@touched>>

// CHECK-LABEL: genrec.model @tables
// CHECK: genrec.domain @portion_touched {{.*}}step
// CHECK: %[[PORTION:.*]], %[[COPIES:.*]] = genrec.unique_rows({{.*}} -> (!genrec.domain<@portion_touched>
// CHECK: %[[OF_PORTION:.*]] = genrec.segment_sum %[[PORTION]]
// CHECK: %[[GIVEN:.*]] = genrec.contribute_rows %[[PORTION]](%[[COPIES]], %[[OF_PORTION]]) in @item
// CHECK: %[[OWNED:.*]], %[[ROWS:.*]], %[[SUM:.*]] = genrec.collect_rows %[[PORTION]](%[[COPIES]], %[[GIVEN]]) in @item {{.*}} -> (!genrec.domain<@touched>
// CHECK: %[[SQUARE:.*]] = genrec.square %[[SUM]]
// CHECK: %[[OF_ROW:.*]] = genrec.row_reduce {{ *}}sum %[[SQUARE]]
// CHECK: %[[NORM:.*]] = genrec.exact_sum %[[OF_ROW]]
// CHECK: %[[CLIPPED:.*]] = genrec.mul %[[SUM]], %[[NORM]]
// CHECK: genrec.row_kernel %[[OWNED]](%[[ROWS]], %[[CLIPPED]])
genrec.model @tables {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %rows = genrec.table_rows %ids in @item : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> !x
    %touched, %handles = genrec.unique_rows (%rows) by (%g) : (tensor<?x!genrec.row<4>, #genrec.rows<@user>>, !x) -> (!genrec.domain<@touched>, !handles)
    %sum = genrec.segment_sum %touched(%g) : (!genrec.domain<@touched>, !x) -> !sums
    %square = genrec.square %sum : !sums
    %of_row = genrec.row_reduce sum %square : (!sums) -> tensor<?xf32, #genrec.rows<@touched>>
    %norm = genrec.reduce_rows %of_row : (tensor<?xf32, #genrec.rows<@touched>>) -> tensor<f32>
    %clipped = genrec.mul %sum, %norm : (!sums, tensor<f32>) -> !sums
    genrec.row_kernel %touched(%handles, %clipped) attributes {name = "update_item", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, !handles, !sums) -> () {
    ^bb0(%row: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}

// -----

// Ranks may share the updates of parameters: their rows belong to ranks, as those of tables do. Whole
// gradients are added up, and rows taken of the sums. The norm is one exact sum over rows of tables
// and parameters. A bucket of sums is full with 65,536 floats.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!handles = tensor<?x!genrec.row<4>, #genrec.rows<@touched>>
!sums = tensor<?x4xf32, #genrec.rows<@touched>>
!row = tensor<?x4xf32, #genrec.rows<@b_rows>>
!wide = tensor<?x65536xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @norm
// CHECK: %[[SUM:.*]] = genrec.reduce_rows %{{.*}} -> tensor<4xf32>
// CHECK: %[[FIRST:.*]] = genrec.reduce_rows %{{.*}} -> tensor<65536xf32>
// CHECK: %[[BUCKET:.*]]:2 = genrec.contribute 0(%[[SUM]], %[[FIRST]])
// CHECK: %[[SUMS:.*]]:2 = genrec.collect 0(%[[BUCKET]]#0, %[[BUCKET]]#1)
// CHECK: %[[LAST:.*]] = genrec.reduce_rows %{{.*}} -> tensor<4xf32>
// CHECK: genrec.contribute 1(%[[LAST]])
// CHECK: %[[OWN:.*]], %{{.*}} = genrec.parameter_rows @b
// CHECK: %[[ROW:.*]] = genrec.shared_rows %[[SUMS]]#0 as %[[OWN]]
// CHECK: %[[OF_ROW:.*]] = genrec.row_reduce {{ *}}sum %[[ROW]]
// CHECK: %[[OF_ITEM:.*]] = genrec.row_reduce {{ *}}sum %{{.*}} -> tensor<?xf32, #genrec.rows<@touched>>
// CHECK: %[[NORM:.*]]:2 = genrec.exact_sum %[[OF_ROW]], %[[OF_ITEM]]
// CHECK: %[[BOTH:.*]] = genrec.add %[[NORM]]#0, %[[NORM]]#1
// CHECK: %[[SQUARE:.*]] = genrec.mul %[[ROW]], %[[BOTH]]
// CHECK: %[[AFTER:.*]] = genrec.row_reduce {{ *}}sum %[[SQUARE]]
// What depends on a sum needs another round.
// CHECK: genrec.exact_sum %[[AFTER]] :
genrec.model @norm {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.domain @b_rows kind step
  genrec.parameter @b : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @c : tensor<65536xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @d : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %rows = genrec.table_rows %ids in @item : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@user>>
    %g = genrec.feature %user "g" : (!genrec.domain<@user>) -> !x
    %w = genrec.feature %user "w" : (!genrec.domain<@user>) -> !wide
    %db = genrec.reduce_rows %g : (!x) -> tensor<4xf32>
    %dc = genrec.reduce_rows %w : (!wide) -> tensor<65536xf32>
    %dd = genrec.reduce_rows %g : (!x) -> tensor<4xf32>
    genrec.update_parameter @c by %dc : tensor<65536xf32>
    genrec.update_parameter @d by %dd : tensor<4xf32>
    %own, %own_rows = genrec.parameter_rows @b : () -> (!genrec.domain<@b_rows>, tensor<?x!genrec.row<4>, #genrec.rows<@b_rows>>)
    %row = genrec.shared_rows %db as %own : (tensor<4xf32>, !genrec.domain<@b_rows>) -> !row
    %touched, %handles = genrec.unique_rows (%rows) by (%g) : (tensor<?x!genrec.row<4>, #genrec.rows<@user>>, !x) -> (!genrec.domain<@touched>, !handles)
    %sum = genrec.segment_sum %touched(%g) : (!genrec.domain<@touched>, !x) -> !sums
    %of_row = genrec.row_reduce sum %row : (!row) -> tensor<?xf32, #genrec.rows<@b_rows>>
    %part = genrec.reduce_rows %of_row : (tensor<?xf32, #genrec.rows<@b_rows>>) -> tensor<f32>
    %of_item = genrec.row_reduce sum %sum : (!sums) -> tensor<?xf32, #genrec.rows<@touched>>
    %other = genrec.reduce_rows %of_item : (tensor<?xf32, #genrec.rows<@touched>>) -> tensor<f32>
    %both = genrec.add %part, %other : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %scaled = genrec.mul %row, %both : (!row, tensor<f32>) -> !row
    %after = genrec.row_reduce sum %scaled : (!row) -> tensor<?xf32, #genrec.rows<@b_rows>>
    %last = genrec.reduce_rows %after : (tensor<?xf32, #genrec.rows<@b_rows>>) -> tensor<f32>
    %clipped = genrec.mul %sum, %last : (!sums, tensor<f32>) -> !sums
    genrec.row_kernel %touched(%handles, %clipped) attributes {name = "update_item", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, !handles, !sums) -> () {
    ^bb0(%r: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %r : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
    genrec.row_kernel %own(%own_rows, %scaled) attributes {name = "update_b", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@b_rows>, tensor<?x!genrec.row<4>, #genrec.rows<@b_rows>>, !row) -> () {
    ^bb0(%r: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %r : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}

// -----

// What all portions have counts in one of them: a gradient of table rows that depends on no data, a
// term that is added to a partial one. A select of a partial value or 0 stays partial; max does not.

!ids = tensor<?xi64, #genrec.rows<@items>>
!x = tensor<?x4xf32, #genrec.rows<@items>>
!s = tensor<?xf32, #genrec.rows<@user>>
!handles = tensor<?x!genrec.row<4>, #genrec.rows<@touched>>
!other_handles = tensor<?x!genrec.row<4>, #genrec.rows<@touched2>>

// CHECK-LABEL: genrec.model @once
// CHECK-DAG: %[[PRICE:.*]] = genrec.feature %{{.*}} "price"
// CHECK-DAG: %[[FIRST:.*]] = genrec.step_value "first_portion"
// CHECK-DAG: %[[ONCE:.*]] = genrec.mul %[[PRICE]], %[[FIRST]]
// CHECK: genrec.unique_rows(%{{.*}}) by(%[[ONCE]])
// CHECK: genrec.segment_sum %{{.*}}(%[[ONCE]])
// CHECK: %[[PARTIAL:.*]] = genrec.reduce_rows
// CHECK: %[[ADDED:.*]] = genrec.add %[[PARTIAL]], %{{.*}}
// CHECK: %[[CHOSEN:.*]] = genrec.select %{{.*}}, %[[ADDED]], %{{.*}}
// CHECK: genrec.contribute 0(%[[CHOSEN]])
// CHECK: %[[SUM:.*]] = genrec.collect 0
// CHECK: genrec.maximum %[[SUM]]
// CHECK: %[[OF_ITEMS:.*]] = genrec.mul %[[PRICE]], %[[PARTIAL]]
// CHECK: genrec.unique_rows(%{{.*}}) by(%[[OF_ITEMS]])
genrec.model @once {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.domain @touched kind step
  genrec.domain @touched2 kind step
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.table @other dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @p : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @q : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %ids = genrec.feature %items "id" : (!genrec.domain<@items>) -> !ids
    %price = genrec.feature %items "price" : (!genrec.domain<@items>) -> !x
    %rows = genrec.table_rows %ids in @item : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@items>>
    %touched, %handles = genrec.unique_rows (%rows) by (%price) : (tensor<?x!genrec.row<4>, #genrec.rows<@items>>, !x) -> (!genrec.domain<@touched>, !handles)
    %sums = genrec.segment_sum %touched(%price) : (!genrec.domain<@touched>, !x) -> tensor<?x4xf32, #genrec.rows<@touched>>
    genrec.row_kernel %touched(%handles, %sums) attributes {name = "update_item", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, !handles, tensor<?x4xf32, #genrec.rows<@touched>>) -> () {
    ^bb0(%row: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !s
    %p = genrec.param @p : tensor<f32>
    %zero = genrec.constant dense<0.0> : tensor<f32>
    %on = genrec.compare gt %p, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %partial = genrec.reduce_rows %x : (!s) -> tensor<f32>
    %added = genrec.add %partial, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %chosen = genrec.select %on, %added, %zero : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %most = genrec.maximum %chosen, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
    genrec.update_parameter @p by %most : tensor<f32>
    // Another table of the catalogue whose gradient is a sum over rows of the data: it is partial, and
    // given as it is.
    %other = genrec.table_rows %ids in @other : (!ids) -> tensor<?x!genrec.row<4>, #genrec.rows<@items>>
    %ofitems = genrec.mul %price, %partial : (!x, tensor<f32>) -> !x
    %touched2, %handles2 = genrec.unique_rows (%other) by (%ofitems) : (tensor<?x!genrec.row<4>, #genrec.rows<@items>>, !x) -> (!genrec.domain<@touched2>, !other_handles)
    %sums2 = genrec.segment_sum %touched2(%ofitems) : (!genrec.domain<@touched2>, !x) -> tensor<?x4xf32, #genrec.rows<@touched2>>
    genrec.row_kernel %touched2(%handles2, %sums2) attributes {name = "update_other", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched2>, !other_handles, tensor<?x4xf32, #genrec.rows<@touched2>>) -> () {
    ^bb0(%row: !genrec.row<4>, %gradient: vector<4xf32>):
      genrec.row_store %gradient to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
  }
}
