// RUN: genrec-opt %s --genrec-form-row-kernels=opt=0 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-form-row-kernels=opt=0 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: not genrec-opt %s --genrec-form-row-kernels=opt=3 --split-input-file 2>&1 | FileCheck %s --check-prefix=LEVEL

// LEVEL: error: option 'opt' must be 0, 1 or 2, but is 3

// One kernel per op: how each op reads and writes. Fusion is tested beside this.

// COUNT: wrap-row-kernel: 26
// COUNT: genrec-form-row-kernels kernels: 26
// COUNT: genrec-form-row-kernels wrapped: 26

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!e4 = tensor<?x4xf32, #genrec.rows<@event>>

// Rows of this domain are aligned, parameters shared; constants move inside.

// CHECK-LABEL: genrec.model @roles
// CHECK: %[[BATCH:.*]]:2 = genrec.batch
// CHECK: %[[X:.*]] = genrec.feature
// CHECK: %[[P:.*]] = genrec.param @v
// CHECK: %[[A:.*]] = genrec.row_kernel %[[BATCH]]#0(%[[X]], %[[P]])
// CHECK-SAME: name = "mul"
// CHECK-SAME: operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role shared>]
// CHECK-SAME: result_roles = [#genrec<result_role aligned>]
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: f32, %[[V:.*]]: vector<4xf32>):
// CHECK-NEXT: %[[WIDE:.*]] = vector.broadcast %[[ROW]] : f32 to vector<4xf32>
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[WIDE]], %[[V]] : vector<4xf32>
// CHECK-NEXT: genrec.row_yield %[[Y]] : vector<4xf32>
// CHECK: genrec.row_kernel %[[BATCH]]#0(%[[A]])
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: vector<4xf32>):
// CHECK-NEXT: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<4xf32>
// CHECK-NEXT: arith.addf %[[ROW]], %[[TWO]]
// A fanout is an ancestor operand.
// CHECK: %[[F:.*]] = genrec.row_kernel %[[BATCH]]#1(%{{.*}}) attributes {name = "fanout", operand_roles = [#genrec<operand_role ancestor>]
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: vector<4xf32>):
// CHECK-NEXT: genrec.row_yield %[[ROW]]
// A pool is a pooled result, a sum over rows a reduced one.
// CHECK: genrec.row_kernel %[[BATCH]]#1(%[[F]]) attributes {name = "pool", {{.*}}pool_kinds = [#genrec<pool_kind max>], result_roles = [#genrec<result_role pooled>]
// CHECK: genrec.row_kernel %[[BATCH]]#1(%[[F]]) attributes {name = "reduce_rows", {{.*}}result_roles = [#genrec<result_role reduced>]} {{.*}} -> tensor<4xf32>
// CHECK-NEXT: ^bb0(%[[ROW:.*]]: vector<4xf32>, %[[SUM:.*]]: !genrec.accumulator<tensor<4xf32>>):
// CHECK-NEXT: genrec.accumulate %[[ROW]] into %[[SUM]]
// CHECK-NEXT: genrec.row_yield
genrec.model @roles {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %v = genrec.param @v : tensor<4xf32>
    %a = genrec.mul %x, %v : (!u, tensor<4xf32>) -> !u4
    %two = genrec.constant dense<2.0> : tensor<f32>
    %b = genrec.add %a, %two : (!u4, tensor<f32>) -> !u4
    %f = genrec.fanout %b to %event : (!u4, !genrec.domain<@event>) -> !e4
    %p = genrec.pool max %f to %user : (!e4, !genrec.domain<@user>) -> !u4
    %s = genrec.reduce_rows %f : (!e4) -> tensor<4xf32>
    %t = genrec.row_reduce sum %s : (tensor<4xf32>) -> tensor<f32>
    genrec.report_loss "s" %t, %t : tensor<f32>, tensor<f32>
    genrec.output "p" %p : !u4
  }
}

// -----

// Gathered sources stay tensors; gradients of gathers are scattered results.

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!ids = tensor<?xi64, #genrec.rows<@user>>
!i4 = tensor<?x4xf32, #genrec.rows<@items>>

// CHECK-LABEL: genrec.model @gathers
// CHECK: genrec.row_kernel %{{.*}}(%[[IDS:.*]], %[[W:.*]]) attributes {name = "embedding", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role source>]
// CHECK-NEXT: ^bb0(%[[I:.*]]: i64, %[[T:.*]]: tensor<8x4xf32>):
// CHECK-NEXT: genrec.row_gather %[[T]][%[[I]]] {clamp}
// CHECK: name = "gather_rows", operand_roles = [#genrec<operand_role source>, #genrec<operand_role aligned>]
// CHECK: name = "embedding_grad", {{.*}}result_roles = [#genrec<result_role scattered>]} {{.*}} -> tensor<8x4xf32>
// CHECK-NEXT: ^bb0(%[[I:.*]]: i64, %[[Y:.*]]: vector<4xf32>, %[[ACC:.*]]: !genrec.accumulator<tensor<8x4xf32>>):
// CHECK-NEXT: genrec.accumulate %[[Y]] into %[[ACC]] at %[[I]] {clamp}
// CHECK: name = "sampled_softmax_grad", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>, #genrec<operand_role source>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role scattered>]
// CHECK: ^bb0(%[[Q:.*]]: vector<4xf32>, %[[POS:.*]]: i64, %[[ITEMS:.*]]: tensor<?x4xf32, #genrec.rows<@items>>, %[[G:.*]]: f32, %[[ACC:.*]]: !genrec.accumulator
// CHECK: %[[INDEX:.*]] = genrec.random_index %[[ITEMS]] {stream = 256 : i64}
// CHECK: genrec.gather_dot %[[ITEMS]][%[[INDEX]]], %[[Q]]
// CHECK: genrec.gather_sum %[[ITEMS]][%[[INDEX]]], %[[C:.*]] :
// CHECK: genrec.accumulate %[[Q]] into %[[ACC]] at %[[INDEX]] times %[[C]] :
// CHECK: genrec.accumulate %{{.*}} into %[[ACC]] at %[[POS]] :
genrec.model @gathers {
  genrec.domain @user
  genrec.domain @items {kind = #genrec<domain_kind catalogue>}
  genrec.parameter @w : tensor<8x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %id = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %w = genrec.param @w : tensor<8x4xf32>
    %e = genrec.embedding %i of %w : (!ids, tensor<8x4xf32>) -> !u4
    %found = genrec.gather_rows %id at %i : (tensor<?xi64, #genrec.rows<@items>>, !ids) -> !ids
    genrec.output "found" %found : !ids
    %g = genrec.embedding_grad %i, %e : (!ids, !u4) -> tensor<8x4xf32>
    genrec.update_parameter @w by %g : tensor<8x4xf32>
    %all = genrec.embedding %id of %w : (tensor<?xi64, #genrec.rows<@items>>, tensor<8x4xf32>) -> !i4
    %dq, %di = genrec.sampled_softmax_grad %e, %i, %all, %x {negatives = 3 : i64, temperature = 0.5, stream = 256 : i64} : (!u4, !ids, !i4, !u) -> (!u4, !i4)
    genrec.output "dq" %dq : !u4
    %sum = genrec.reduce_rows %di : (!i4) -> tensor<4xf32>
    %total = genrec.row_reduce sum %sum : (tensor<4xf32>) -> tensor<f32>
    genrec.report_loss "sum" %total, %total : tensor<f32>, tensor<f32>
  }
}

// -----

// Shared tensors are rows of a fixed step domain: one row, or as many as a matrix has.
// A column slice that is read in place is a view and no kernel.

!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @shared
// CHECK-DAG: genrec.domain @rows_1 {{.*}}step
// CHECK-DAG: genrec.domain @rows_3 {{.*}}step
// CHECK-DAG: %[[ONE:.*]] = genrec.fixed_rows 1
// CHECK-DAG: %[[THREE:.*]] = genrec.fixed_rows 3
// CHECK: %[[M:.*]] = genrec.param @m
// CHECK: %[[C:.*]] = genrec.param @c
// CHECK: %[[ROWS:.*]] = genrec.shared_rows %[[M]] as %[[THREE]] : {{.*}} -> tensor<?x4xf32, #genrec.rows<@rows_3>>
// CHECK: %[[SCALED:.*]] = genrec.row_kernel %[[THREE]](%[[ROWS]], %[[C]]) attributes {name = "mul", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role shared>]
// CHECK: genrec.rows_as_shared %[[SCALED]] : {{.*}} -> tensor<3x4xf32>
// CHECK: %[[E:.*]] = genrec.row_kernel %[[ONE]](%[[C]]) attributes {name = "exp", operand_roles = [#genrec<operand_role shared>]
// CHECK: genrec.rows_as_shared %[[E]] : {{.*}} -> tensor<f32>
// CHECK-NOT: name = "slice_columns"
// CHECK: %[[VIEW:.*]] = genrec.slice_columns
// CHECK-NEXT: genrec.linear %[[VIEW]]
genrec.model @shared {
  genrec.domain @user
  genrec.parameter @m : tensor<3x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<2x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @c : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %m = genrec.param @m : tensor<3x4xf32>
    %c = genrec.param @c : tensor<f32>
    %w = genrec.param @w : tensor<2x2xf32>
    %scaled = genrec.mul %m, %c : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
    %e = genrec.exp %c : tensor<f32>
    genrec.update_parameter @m by %scaled : tensor<3x4xf32>
    genrec.update_parameter @c by %e : tensor<f32>
    %x = genrec.embedding %i of %m : (tensor<?xi64, #genrec.rows<@user>>, tensor<3x4xf32>) -> !u4
    %s = genrec.slice_columns %x from 2 : (!u4) -> !u2
    %y = genrec.linear %s, %w : (!u2, tensor<2x2xf32>) -> !u2
    genrec.output "y" %y : !u2
  }
}

// -----

// What body ops stand for what: random draws, transforms, casts that saturate, columns.

!u = tensor<?xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @bodies
// CHECK: genrec.row_hash murmur3 %{{.*}} {bits = 20 : i64, seed = 7 : i64}
// CHECK: arith.remsi
// CHECK: genrec.row_bucketize %{{.*}} {edges = array<f64: 1.000000e+00, 2.000000e+00>}
// CHECK: name = "cast"
// CHECK: arith.fptosi
// CHECK: arith.select
// CHECK: genrec.keep_mask {rate = 5.000000e-01 : f64, stream = 512 : i64} : i1
// CHECK: genrec.row_concat %{{.*}}, %{{.*}} : (f32, f32) -> vector<2xf32>
genrec.model @bodies {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !i
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %h = genrec.hash murmur3 %i {bits = 20 : i64, seed = 7 : i64} : (!i) -> !i
    %m = genrec.mod %h {divisor = 10 : i64} : (!i) -> !i
    %b = genrec.bucketize %x {edges = array<f64: 1.0, 2.0>} : (!u) -> !i
    %c = genrec.cast %x : (!u) -> !i
    %d = genrec.dropout %x {rate = 0.5, stream = 512 : i64} : (!u) -> !u
    %cc = genrec.concat_columns %d, %x : (!u, !u) -> tensor<?x2xf32, #genrec.rows<@user>>
    genrec.output "m" %m : !i
    genrec.output "b" %b : !i
    genrec.output "c" %c : !i
    genrec.output "cc" %cc : tensor<?x2xf32, #genrec.rows<@user>>
  }
}

// -----

// Gradients of lookups that are columns of one wider gradient are read there.

!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<2>, #genrec.rows<@user>>
!t2 = tensor<?x2xf32, #genrec.rows<@touched>>

// CHECK-LABEL: genrec.model @gradients_in_place
// CHECK: %[[ALL:.*]] = genrec.linear
// CHECK-NEXT: %[[A:.*]] = genrec.slice_columns %[[ALL]] from 0
// CHECK-NEXT: %[[B:.*]] = genrec.slice_columns %[[ALL]] from 2
// CHECK: genrec.unique_rows(%{{.*}}, %{{.*}}) by(%[[A]], %[[B]])
// CHECK: genrec.segment_sum %{{.*}}(%[[A]], %[[B]])
genrec.model @gradients_in_place {
  genrec.domain @user
  genrec.domain @touched kind step
  genrec.table @a dim 2 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %w = genrec.param @w : tensor<4x4xf32>
    %x = genrec.embedding %i of %w : (tensor<?xi64, #genrec.rows<@user>>, tensor<4x4xf32>) -> !u4
    %g = genrec.linear %x, %w : (!u4, tensor<4x4xf32>) -> !u4
    %ga = genrec.slice_columns %g from 0 : (!u4) -> !u2
    %gb = genrec.slice_columns %g from 2 : (!u4) -> !u2
    %ra = genrec.table_rows %i in @a : (tensor<?xi64, #genrec.rows<@user>>) -> !r
    %rb = genrec.table_rows %j in @a : (tensor<?xi64, #genrec.rows<@user>>) -> !r
    %d, %h = genrec.unique_rows (%ra, %rb) by (%ga, %gb) : (!r, !r, !u2, !u2) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<2>, #genrec.rows<@touched>>)
    %s = genrec.segment_sum %d (%ga, %gb) : (!genrec.domain<@touched>, !u2, !u2) -> !t2
    genrec.output "s" %s : !t2
  }
}

// -----

// Dot products of pairs, and their gradient, read columns where they are.

!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @pairs_in_place
// CHECK: %[[ALL:.*]] = genrec.linear
// CHECK-DAG: %[[X:.*]] = genrec.slice_columns %[[ALL]] from 1
// CHECK-DAG: %[[G:.*]] = genrec.slice_columns %[[ALL]] from 0
// CHECK-DAG: genrec.dot_interaction %[[X]]
// CHECK-DAG: genrec.dot_interaction_grad %[[X]], %[[G]]
genrec.model @pairs_in_place {
  genrec.domain @user
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %w = genrec.param @w : tensor<4x4xf32>
    %e = genrec.embedding %i of %w : (tensor<?xi64, #genrec.rows<@user>>, tensor<4x4xf32>) -> !u4
    %all = genrec.linear %e, %w : (!u4, tensor<4x4xf32>) -> !u4
    %x = genrec.slice_columns %all from 1 : (!u4) -> !u3
    %g = genrec.slice_columns %all from 0 : (!u4) -> !u3
    %p = genrec.dot_interaction %x {count = 3 : i64} : (!u3) -> !u3
    %d = genrec.dot_interaction_grad %x, %g {count = 3 : i64} : (!u3, !u3) -> !u3
    genrec.output "p" %p : !u3
    genrec.output "d" %d : !u3
  }
}

// -----

// Those that every row of a list reads are copied: they are read many times.

!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!r = tensor<?x!genrec.row<2>, #genrec.rows<@event>>
!t2 = tensor<?x2xf32, #genrec.rows<@touched>>

// CHECK-LABEL: genrec.model @gradients_of_lists
// CHECK: %[[ALL:.*]] = genrec.linear
// CHECK: %[[COPY:.*]] = genrec.row_kernel {{.*}}(%[[ALL]]
// CHECK: genrec.unique_rows(%{{.*}}) by(%[[COPY]])
// CHECK: genrec.segment_sum %{{.*}}(%[[COPY]])
genrec.model @gradients_of_lists {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @touched kind step
  genrec.table @a dim 2 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %j = genrec.feature %event "j" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %w = genrec.param @w : tensor<4x4xf32>
    %x = genrec.embedding %i of %w : (tensor<?xi64, #genrec.rows<@user>>, tensor<4x4xf32>) -> !u4
    %g = genrec.linear %x, %w : (!u4, tensor<4x4xf32>) -> !u4
    %ga = genrec.slice_columns %g from 0 : (!u4) -> !u2
    %ra = genrec.table_rows %j in @a : (tensor<?xi64, #genrec.rows<@event>>) -> !r
    %d, %h = genrec.unique_rows (%ra) by (%ga) : (!r, !u2) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<2>, #genrec.rows<@touched>>)
    %s = genrec.segment_sum %d (%ga) : (!genrec.domain<@touched>, !u2) -> !t2
    genrec.output "s" %s : !t2
  }
}
