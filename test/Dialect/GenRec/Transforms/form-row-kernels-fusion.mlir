// RUN: genrec-opt %s --genrec-form-row-kernels=opt=2 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-form-row-kernels=opt=1 --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: genrec-opt %s --genrec-form-row-kernels=opt=2 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: fuse-row-kernels:
// COUNT: recompute-row-op: 1
// COUNT: genrec-form-row-kernels kept-buffers: 5
// COUNT: genrec-form-row-kernels kernels: 17
// COUNT: genrec-form-row-kernels recomputed: 1

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!e4 = tensor<?x4xf32, #genrec.rows<@event>>
!e = tensor<?xf32, #genrec.rows<@event>>

// Everything between two library ops is one kernel: chains, siblings that read
// the same rows, fanned out values and pools. Equal parts are computed once. Sums
// over all rows have a kernel of their own, as this one pools.

// CHECK-LABEL: genrec.model @vertical
// CHECK: %[[X:.*]] = genrec.feature
// CHECK: %[[U:.*]] = genrec.feature
// CHECK: %[[K:.*]]:3 = genrec.row_kernel %{{.*}}(%[[X]], %{{.*}}, %[[U]])
// CHECK-SAME: genrec.ops = "mul, fanout, mul, silu, sigmoid, pool"
// CHECK-SAME: operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role shared>, #genrec<operand_role ancestor>]
// CHECK-SAME: result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>, #genrec<result_role pooled>]
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: genrec.row_yield %{{.*}}, %[[SIGMOID:.*]], %[[SIGMOID]] : vector<4xf32>, vector<4xf32>, vector<4xf32>
// CHECK: genrec.linear %[[K]]#0
// CHECK: genrec.row_kernel %{{.*}}(%[[K]]#1) attributes {name = "event_reduce_rows"
// CHECK-SAME: result_roles = [#genrec<result_role reduced>]
// CHECK: genrec.accumulate
genrec.model @vertical {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %x = genrec.feature %event "events.x" : (!genrec.domain<@event>) -> !e
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> !u
    %v = genrec.param @v : tensor<4xf32>
    %w = genrec.param @w : tensor<4x4xf32>
    %a = genrec.mul %x, %v : (!e, tensor<4xf32>) -> !e4
    %f = genrec.fanout %u to %event : (!u, !genrec.domain<@event>) -> !e
    %b = genrec.mul %a, %f : (!e4, !e) -> !e4
    %silu = genrec.silu %b : !e4
    %sigmoid = genrec.sigmoid %b : !e4
    %y = genrec.linear %silu, %w : (!e4, tensor<4x4xf32>) -> !e4
    %p = genrec.pool sum %sigmoid to %user : (!e4, !genrec.domain<@user>) -> !u4
    %s = genrec.reduce_rows %sigmoid : (!e4) -> tensor<4xf32>
    genrec.update_parameter @v by %s : tensor<4xf32>
    %q = genrec.pool max %y to %user : (!e4, !genrec.domain<@user>) -> !u4
    genrec.output "p" %p : !u4
    genrec.output "q" %q : !u4
  }
}

// -----

// A library op stands between two kernels. What is cheap is computed again
// (opt=2), what is not is kept, with the reason. opt=1 keeps all.

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @recompute
// CHECK: genrec.notes = ["user_exp_mul keeps exp (rows of @user, [4] x f32) for user_add: computing it again would cost {{[0-9]+}} bytes per row, keeping it 32"]
// CHECK: %[[K:.*]]:2 = genrec.row_kernel {{.*}}genrec.ops = "mul, dropout, exp, neg, mul"
// CHECK: genrec.row_yield %[[DROPPED:.*]], %[[MUL:.*]] : vector<4xf32>, vector<4xf32>
// CHECK: %[[Y:.*]] = genrec.linear %[[K]]#1
// CHECK: genrec.row_kernel %{{.*}}(%{{.*}}, %[[Y]]
// CHECK-SAME: genrec.ops = "neg, add, add"
// CHECK: arith.negf
// ONE-LABEL: genrec.model @recompute
// ONE: genrec.row_kernel {{.*}}genrec.ops = "mul, dropout, exp, neg, mul"
// ONE: genrec.row_yield %{{.*}}, %{{.*}}, %{{.*}} :
// ONE: genrec.linear
// ONE: genrec.row_kernel {{.*}}genrec.ops = "add, add"
genrec.model @recompute {
  genrec.domain @user
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !u
    %v = genrec.param @v : tensor<4xf32>
    %w = genrec.param @w : tensor<4x4xf32>
    %a = genrec.mul %x, %v : (!u, tensor<4xf32>) -> !u4
    %d = genrec.dropout %a {rate = 0.5, stream = 256 : i64} : (!u4) -> !u4
    %e = genrec.exp %d : !u4
    %n = genrec.neg %e : !u4
    %m = genrec.mul %n, %e : (!u4, !u4) -> !u4
    %y = genrec.linear %m, %w : (!u4, tensor<4x4xf32>) -> !u4
    %s = genrec.add %y, %e : (!u4, !u4) -> !u4
    %t = genrec.add %s, %n : (!u4, !u4) -> !u4
    genrec.output "t" %t : !u4
  }
}

// -----

// Arithmetic on shared scalars is done inside the kernels that need it, and in
// one of its own where a report needs it. Nothing crosses stages; kernels
// without a common row stay apart; updates come last.

!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @apart
// CHECK: %[[C:.*]] = genrec.param @c
// CHECK: genrec.row_kernel %{{.*}}(%{{.*}}) attributes {{.*}}genrec.ops = "hash, mod", genrec.stage = #genrec<stage copy>
// CHECK: genrec.row_kernel %{{.*}}(%{{.*}}) attributes {{.*}}stage compute{{.*}}name = "user_cast"
// CHECK: genrec.row_kernel %{{.*}}(%[[C]]) attributes {{.*}}name = "shared_exp"
// CHECK: genrec.row_kernel %{{.*}}(%[[C]], %{{.*}}) attributes {genrec.ops = "exp, mul"
// CHECK: math.exp
// CHECK: genrec.report_loss
// CHECK: genrec.output "c"
// CHECK: genrec.row_store
genrec.model @apart {
  genrec.domain @user
  genrec.domain @c_rows {kind = #genrec<domain_kind step>}
  genrec.parameter @c : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch {genrec.stage = #genrec<stage copy>} : !genrec.domain<@user>
    %rowsd, %rows = genrec.parameter_rows @c {genrec.stage = #genrec<stage compute>} : () -> (!genrec.domain<@c_rows>, tensor<?x!genrec.row<1>, #genrec.rows<@c_rows>>)
    genrec.row_kernel %rowsd(%rows) attributes {genrec.stage = #genrec<stage compute>, name = "update", operand_roles = [#genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@c_rows>, tensor<?x!genrec.row<1>, #genrec.rows<@c_rows>>) -> () {
    ^bb0(%row: !genrec.row<1>):
      %old = genrec.row_load %row : (!genrec.row<1>) -> vector<1xf32>
      genrec.row_store %old to %row : vector<1xf32>, !genrec.row<1>
      genrec.row_yield
    }
    %i = genrec.feature %user "i" {genrec.stage = #genrec<stage copy>} : (!genrec.domain<@user>) -> !i
    %x = genrec.feature %user "x" {genrec.stage = #genrec<stage copy>} : (!genrec.domain<@user>) -> !u
    %c = genrec.param @c {genrec.stage = #genrec<stage compute>} : tensor<f32>
    %h = genrec.hash xxh3 %i {bits = 20 : i64, genrec.stage = #genrec<stage copy>} : (!i) -> !i
    %m = genrec.mod %h {divisor = 10 : i64, genrec.stage = #genrec<stage copy>} : (!i) -> !i
    %f = genrec.cast %m {genrec.stage = #genrec<stage compute>} : (!i) -> !u
    %e = genrec.exp %c {genrec.stage = #genrec<stage compute>} : tensor<f32>
    %y = genrec.mul %x, %e {genrec.stage = #genrec<stage compute>} : (!u, tensor<f32>) -> !u
    genrec.report_loss "e" %e, %c {genrec.stage = #genrec<stage compute>} : tensor<f32>, tensor<f32>
    genrec.output "f" %f {genrec.stage = #genrec<stage compute>} : !u
    genrec.output "c" %y {genrec.stage = #genrec<stage compute>} : !u
  }
}

// -----

// A slice of a value in memory reads those columns only, in every kernel; a slice
// read in place by a library op is a view.

!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @slices
// CHECK: %[[L:.*]] = genrec.linear
// CHECK: %[[S:.*]] = genrec.row_kernel %{{.*}}(%[[L]]) attributes {name = "user_silu"
// CHECK: %[[VIEW:.*]] = genrec.slice_columns %[[S]] from 0
// CHECK: genrec.linear %[[VIEW]]
// CHECK: genrec.row_kernel %{{.*}}(%[[S]],
// CHECK: genrec.row_slice %{{.*}} from 2
genrec.model @slices {
  genrec.domain @user
  genrec.parameter @w : tensor<4x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @k : tensor<2x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %w = genrec.param @w : tensor<4x4xf32>
    %k = genrec.param @k : tensor<2x2xf32>
    %x = genrec.embedding %i of %w : (tensor<?xi64, #genrec.rows<@user>>, tensor<4x4xf32>) -> !u4
    %l = genrec.linear %x, %w : (!u4, tensor<4x4xf32>) -> !u4
    %s = genrec.silu %l : !u4
    %a = genrec.slice_columns %s from 0 : (!u4) -> !u2
    %b = genrec.slice_columns %s from 2 : (!u4) -> !u2
    %y = genrec.linear %a, %k : (!u2, tensor<2x2xf32>) -> !u2
    %z = genrec.add %y, %b : (!u2, !u2) -> !u2
    genrec.output "z" %z : !u2
  }
}

// -----

// A kernel pools into one domain. What pools into another one has a kernel of its own, and
// sums over all rows have one, too.

!u = tensor<?xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@session>>
!e = tensor<?xf32, #genrec.rows<@event>>

// CHECK-LABEL: genrec.model @reductions
// CHECK: %[[BATCH:.*]]:3 = genrec.batch
// CHECK: %[[X:.*]] = genrec.feature
// CHECK: %[[A:.*]]:4 = genrec.row_kernel %[[BATCH]]#2(%[[X]]) attributes {genrec.ops = "mul, pool, neg, pool"
// CHECK-SAME: result_roles = [#genrec<result_role aligned>, #genrec<result_role pooled>, #genrec<result_role aligned>, #genrec<result_role pooled>]
// CHECK: genrec.row_kernel %[[BATCH]]#2(%[[A]]#0) attributes {name = "event_pool"
// CHECK-SAME: result_roles = [#genrec<result_role pooled>]
// CHECK: genrec.row_kernel %[[BATCH]]#2(%[[A]]#0) attributes {name = "event_reduce_rows"
// CHECK-SAME: result_roles = [#genrec<result_role reduced>]
// CHECK: genrec.row_kernel %[[BATCH]]#2(%[[X]]) attributes {name = "event_reduce_rows_2"
// CHECK-SAME: result_roles = [#genrec<result_role reduced>]
genrec.model @reductions {
  genrec.domain @user
  genrec.domain @session parent @user {column = "sessions"}
  genrec.domain @event parent @session {column = "sessions.events"}
  genrec.program @predict mode predict {
    %user, %session, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@session>, !genrec.domain<@event>
    %x = genrec.feature %event "sessions.events.x" : (!genrec.domain<@event>) -> !e
    %d = genrec.mul %x, %x : (!e, !e) -> !e
    %a = genrec.pool sum %d to %session : (!e, !genrec.domain<@session>) -> !s
    %b = genrec.pool sum %d to %user : (!e, !genrec.domain<@user>) -> !u
    %n = genrec.neg %d : !e
    %c = genrec.pool max %n to %session : (!e, !genrec.domain<@session>) -> !s
    %s = genrec.reduce_rows %d : (!e) -> tensor<f32>
    %t = genrec.reduce_rows %x : (!e) -> tensor<f32>
    genrec.report_loss "s" %s, %t : tensor<f32>, tensor<f32>
    genrec.output "a" %a : !s
    genrec.output "b" %b : !u
    genrec.output "c" %c : !s
    genrec.output "n" %n : !e
  }
}
