// RUN: genrec-opt %s --genrec-expand-updates --genrec-factor-lookups=least-width=4 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-expand-updates --genrec-factor-lookups=least-width=4 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-expand-updates --genrec-factor-lookups=least-width=17 --split-input-file | FileCheck %s --check-prefix=WIDE

// COUNT-DAG: factor-lookup: 10
// COUNT-DAG: genrec-factor-lookups groups: 6
// COUNT-DAG: genrec-factor-lookups layers: 4
// COUNT-DAG: genrec-factor-lookups lookups: 10

// WIDE-NOT: distinct_rows

!i = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!u9 = tensor<?x9xf32, #genrec.rows<@user>>

// Two lookups of one table beside a number: a product per distinct row, forward and backward; the
// number and its rows of the weight stay a layer, and the update sees each distinct row once.

// CHECK-LABEL: genrec.model @train
// CHECK-SAME: "factor-lookups: @train: layer linear (factor-lookups.mlir:{{[0-9]+}}): 8 columns of 2 lookups are multiplied once per distinct row: nothing else reads them"
// CHECK: genrec.domain @distinct_user_4 kind step
// CHECK: %[[W:.*]] = genrec.param @w
// CHECK: %[[RA:.*]] = genrec.table_rows
// CHECK: %[[RB:.*]] = genrec.table_rows
// CHECK-NOT: name = "lookup"
// CHECK: %[[REST:.*]] = genrec.concat_columns %{{[^,]*}} :
// CHECK: %[[SPLIT:.*]]:3 = genrec.split_shared %[[W]] : {{.*}} -> (tensor<4x8xf32>, tensor<1x8xf32>, tensor<4x8xf32>)
// CHECK: %[[Y:.*]] = genrec.linear %[[REST]], %[[SPLIT]]#1 bias %[[BIAS:.*]] :
// CHECK: %[[D:.*]], %[[H:.*]] = genrec.distinct_rows (%[[RA]], %[[RB]])
// CHECK: %[[V:.*]] = genrec.row_kernel %[[D]](%[[H]]) attributes {name = "lookup"
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: !genrec.row<4>):
// CHECK-NEXT: genrec.row_load %[[ROW]] :
// CHECK: %[[Z:.*]] = genrec.distinct_linear %[[D]](%[[V]]) times %[[W]] columns [0, 5]
// CHECK: %[[SUM:.*]] = genrec.add %[[Y]], %[[Z]]
// CHECK: %[[G:.*]] = genrec.relu %[[SUM]]
// CHECK: %[[DV:.*]], %[[DW:.*]] = genrec.distinct_linear_grad %[[D]](%[[V]]) times %[[W]] gradient %[[G]] columns [0, 5]
// CHECK: %[[OWN:.*]]:2 = genrec.split_shared %[[DW]] : {{.*}} -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK: %[[NUMBER:.*]] = genrec.weight_gradient %[[REST]], %[[G]]
// CHECK: genrec.concat_shared %[[OWN]]#0, %[[NUMBER]], %[[OWN]]#1
// CHECK-NOT: genrec.slice_columns
// CHECK: %[[T:.*]], %{{.*}} = genrec.unique_rows(%[[H]]) by(%[[DV]])
// CHECK: genrec.segment_sum %[[T]](%[[DV]])
genrec.model @train {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<9x8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !i
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !f
    %w = genrec.param @w : tensor<9x8xf32>
    %bias = genrec.param @b : tensor<8xf32>
    %a = genrec.lookup %i in @a : (!i) -> !u4
    %b = genrec.lookup %j in @a : (!i) -> !u4
    %c = genrec.concat_columns %a, %x, %b : (!u4, !f, !u4) -> !u9
    %y = genrec.linear %c, %w bias %bias : (!u9, tensor<9x8xf32>, tensor<8xf32>) -> !u8
    %g = genrec.relu %y : !u8
    %dw = genrec.weight_gradient %c, %g : (!u9, !u8) -> tensor<9x8xf32>
    %dc = genrec.linear %g, %w {transposed} : (!u8, tensor<9x8xf32>) -> !u9
    %da = genrec.slice_columns %dc from 0 : (!u9) -> !u4
    %db = genrec.slice_columns %dc from 5 : (!u9) -> !u4
    genrec.update_parameter @w by %dw : tensor<9x8xf32>
    genrec.update_table @a ids (%i, %j) by (%da, %db) : (!i, !i, !u4, !u4) -> ()
  }
}

// -----

// Columns that stay and whose gradient is read are columns of a narrower gradient. Rows that something else reads stay.

!i = tensor<?xi64, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!u14 = tensor<?x14xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @gradients_that_stay
// CHECK: %[[REST:.*]] = genrec.concat_columns %[[READ:.*]], %[[X:.*]] : {{.*}} -> tensor<?x6xf32
// CHECK: %[[KEPT:.*]] = genrec.concat_shared %{{.*}}#0, %{{.*}}#2 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
// CHECK: genrec.linear %[[REST]], %[[KEPT]] :
// CHECK: genrec.distinct_linear %{{.*}} columns [4, 10]
// CHECK: %[[NARROW:.*]] = genrec.linear %{{.*}}, %[[KEPT]] {transposed} : {{.*}} -> tensor<?x6xf32
// CHECK-DAG: genrec.slice_columns %[[NARROW]] from 0 {{.*}} -> tensor<?x4xf32
// CHECK-DAG: genrec.slice_columns %[[NARROW]] from 4 {{.*}} -> tensor<?x2xf32
// CHECK: genrec.unique_rows(%[[FIRST:.*]], %[[DISTINCT:.*]]) by(
genrec.model @gradients_that_stay {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 2 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<14x8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !i
    %k = genrec.feature %user "k" : (!genrec.domain<@user>) -> !i
    %l = genrec.feature %user "l" : (!genrec.domain<@user>) -> !i
    %w = genrec.param @w : tensor<14x8xf32>
    %a = genrec.lookup %i in @a : (!i) -> !u4
    %b = genrec.lookup %j in @a : (!i) -> !u4
    %x = genrec.lookup %l in @b : (!i) -> !u2
    %d = genrec.lookup %k in @a : (!i) -> !u4
    %c = genrec.concat_columns %a, %b, %x, %d : (!u4, !u4, !u2, !u4) -> !u14
    genrec.output "a" %a : !u4
    genrec.output "x" %x : !u2
    %y = genrec.linear %c, %w : (!u14, tensor<14x8xf32>) -> !u8
    %dw = genrec.weight_gradient %c, %y : (!u14, !u8) -> tensor<14x8xf32>
    %dc = genrec.linear %y, %w {transposed} : (!u8, tensor<14x8xf32>) -> !u14
    %da = genrec.slice_columns %dc from 0 : (!u14) -> !u4
    %db = genrec.slice_columns %dc from 4 : (!u14) -> !u4
    %dx = genrec.slice_columns %dc from 8 : (!u14) -> !u2
    %dd = genrec.slice_columns %dc from 10 : (!u14) -> !u4
    genrec.update_parameter @w by %dw : tensor<14x8xf32>
    genrec.update_table @a ids (%i, %j, %k) by (%da, %db, %dd) : (!i, !i, !i, !u4, !u4, !u4) -> ()
    genrec.update_table @b ids (%l) by (%dx) : (!i, !u2) -> ()
  }
}

// -----

// Without gradients; lookups of two widths; a bias where nothing stays.

!i = tensor<?xi64, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @widths
// CHECK-DAG: genrec.domain @distinct_user_4
// CHECK-DAG: genrec.domain @distinct_user_2
// CHECK: %[[D:.*]]:2, %[[H:.*]]:2 = genrec.distinct_rows (%{{.*}}), (%{{.*}}, %{{.*}}) :
// CHECK: %[[A:.*]] = genrec.row_kernel %[[D]]#0(%[[H]]#0)
// CHECK: %[[B:.*]] = genrec.row_kernel %[[D]]#1(%[[H]]#1)
// CHECK: %[[SUM:.*]] = genrec.distinct_linear %[[D]]#0, %[[D]]#1(%[[A]], %[[B]]) times %{{.*}} columns [0, 4, 6] :
// CHECK: %[[Y:.*]] = genrec.add %[[SUM]], %{{.*}} : ({{.*}}, tensor<4xf32>)
// CHECK: genrec.output "y" %[[Y]]
genrec.model @widths {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 2 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<8x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !i
    %k = genrec.feature %user "k" : (!genrec.domain<@user>) -> !i
    %w = genrec.param @w : tensor<8x4xf32>
    %v = genrec.param @v : tensor<4xf32>
    %a = genrec.lookup %i in @a : (!i) -> !u4
    %b = genrec.lookup %j in @b : (!i) -> !u2
    %d = genrec.lookup %k in @b : (!i) -> !u2
    %c = genrec.concat_columns %a, %b, %d : (!u4, !u2, !u2) -> !u8
    %y = genrec.linear %c, %w bias %v : (!u8, tensor<8x4xf32>, tensor<4xf32>) -> !u4
    genrec.output "y" %y : !u4
  }
}

// -----

// Two tables, one's lookups around the other's: one product and one gradient for both; the gradient of the weight has
// the lookups' rows group by group and is joined in the order of the layer; each update has the rows of its own table.

!i = tensor<?xi64, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!u16 = tensor<?x16xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @tables
// CHECK: %[[D:.*]]:2, %[[H:.*]]:2 = genrec.distinct_rows (%[[RA:.*]], %[[RC:.*]]), (%[[RB:.*]]) :
// CHECK: %[[A:.*]] = genrec.row_kernel %[[D]]#0(%[[H]]#0)
// CHECK: %[[B:.*]] = genrec.row_kernel %[[D]]#1(%[[H]]#1)
// CHECK: %[[Y:.*]] = genrec.distinct_linear %[[D]]#0, %[[D]]#1(%[[A]], %[[B]]) times %[[W:.*]] columns [0, 12, 4] :
// CHECK: %[[DV:.*]]:2, %[[DW:.*]] = genrec.distinct_linear_grad %[[D]]#0, %[[D]]#1(%[[A]], %[[B]]) times %[[W]] gradient %[[Y]] columns [0, 12, 4] : {{.*}} -> ({{.*}}, tensor<16x8xf32>)
// CHECK: %[[OWN:.*]]:3 = genrec.split_shared %[[DW]] : {{.*}} -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>)
// CHECK: genrec.concat_shared %[[OWN]]#0, %[[OWN]]#2, %[[OWN]]#1 :
// CHECK: genrec.unique_rows(%[[H]]#0) by(%[[DV]]#0)
// CHECK: genrec.unique_rows(%[[H]]#1) by(%[[DV]]#1)
genrec.model @tables {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<16x8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !i
    %k = genrec.feature %user "k" : (!genrec.domain<@user>) -> !i
    %w = genrec.param @w : tensor<16x8xf32>
    %a = genrec.lookup %i in @a : (!i) -> !u4
    %b = genrec.lookup %j in @b : (!i) -> !u8
    %c = genrec.lookup %k in @a : (!i) -> !u4
    %x = genrec.concat_columns %a, %b, %c : (!u4, !u8, !u4) -> !u16
    %y = genrec.linear %x, %w : (!u16, tensor<16x8xf32>) -> !u8
    %dw = genrec.weight_gradient %x, %y : (!u16, !u8) -> tensor<16x8xf32>
    %dx = genrec.linear %y, %w {transposed} : (!u8, tensor<16x8xf32>) -> !u16
    %da = genrec.slice_columns %dx from 0 : (!u16) -> !u4
    %db = genrec.slice_columns %dx from 4 : (!u16) -> !u8
    %dc = genrec.slice_columns %dx from 12 : (!u16) -> !u4
    genrec.update_parameter @w by %dw : tensor<16x8xf32>
    genrec.update_table @a ids (%i, %k) by (%da, %dc) : (!i, !i, !u4, !u4) -> ()
    genrec.update_table @b ids (%j) by (%db) : (!i, !u8) -> ()
  }
}

// -----

// The joined columns are read elsewhere, or the result is narrow: the layer stays.

!i = tensor<?xi64, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @stays
// CHECK-NOT: distinct_rows
genrec.model @stays {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<8x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @v : tensor<8x3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !i
    %w = genrec.param @w : tensor<8x4xf32>
    %v = genrec.param @v : tensor<8x3xf32>
    %a = genrec.lookup %i in @a : (!i) -> !u4
    %b = genrec.lookup %j in @a : (!i) -> !u4
    %c = genrec.concat_columns %a, %b : (!u4, !u4) -> !u8
    %y = genrec.linear %c, %w : (!u8, tensor<8x4xf32>) -> !u4
    genrec.output "c" %c : !u8
    genrec.output "y" %y : !u4
    %d = genrec.concat_columns %b, %a : (!u4, !u4) -> !u8
    %z = genrec.linear %d, %v : (!u8, tensor<8x3xf32>) -> !u3
    genrec.output "z" %z : !u3
  }
}
