// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-blocks))' --split-input-file | FileCheck %s
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-blocks,genrec-plan-memory))' --split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-blocks,genrec-plan-memory),genrec-outline-kernels,genrec-lower-to-runtime)' --split-input-file | FileCheck %s --check-prefix=CALLS

// Calls over a list's rows form a run; what stands between them and needs none of them goes first, what
// needs their sum, or pools their rows, goes after. A sum over rows of the model's data alone goes first, too.

!x = tensor<?x16xf32, #genrec.rows<@event>>
!w = tensor<16x16xf32>

// CHECK-LABEL: genrec.model @run
// CHECK: genrec.row_kernel {{.*}}name = "count"
// CHECK-NOT: genrec.row_block
// CHECK: genrec.row_kernel {{.*}}name = "of_users"
// CHECK: genrec.row_kernel {{.*}}genrec.row_block = #genrec.row_block<@event, 0>, name = "wide"
// CHECK: genrec.linear {{.*}}genrec.row_block = #genrec.row_block<@event, 0>
// CHECK-NEXT: genrec.slice_columns
// CHECK: genrec.attention {{.*}}genrec.row_block = #genrec.row_block<@event, 0>
// CHECK: genrec.weight_gradient {{.*}}genrec.row_block = #genrec.row_block<@event, 0>
// CHECK: genrec.row_kernel {{.*}}genrec.row_block = #genrec.row_block<@event, 0>, name = "total"
// CHECK: genrec.row_kernel {{.*}}name = "of_sum"
// CHECK-NOT: genrec.row_block
// CHECK: genrec.row_kernel {{.*}}name = "pooled"

// What only the run reads takes places in the run; a value that others read has memory for all rows,
// for as long as the run lasts.
// PLAN-LABEL: genrec.model @run
// PLAN: #genrec.buffer<name = "wide", domain = @event, bytes_per_row = 64, first = 6, last = 10, block = 0>
// PLAN-SAME: #genrec.buffer<name = "linear", domain = @event, bytes_per_row = 64, first = 7, last = 10, block = 0, offset = 64>
// PLAN-SAME: #genrec.buffer<name = "attention", domain = @event, bytes_per_row = 32, first = 6, last = {{[0-9]+}}>

// CALLS: emitc.func @predict_blocks_0(%{{.*}}: !emitc.ptr<!emitc.opaque<"kernels::RowBlock">>)
// CALLS: call_opaque "kernels::blockRows"
// CALLS: call_opaque "kernels::localRows"
// CALLS: call_opaque "kernels::linear"
// CALLS: call_opaque "kernels::attention"
// CALLS: call_opaque "kernels::weightGradient"
// CALLS: emitc.func @predict_compute(%{{.*}}: !emitc.ptr<!emitc.opaque<"genrec_step">>)
// CALLS-NOT: call_opaque "kernels::linear"
// CALLS: call_opaque "kernels::runRowBlocks"
genrec.model @run {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %e = genrec.feature %event "e" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %w = genrec.param @w : !w
    %x = genrec.row_kernel %event(%e) attributes {name = "wide", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@event>, tensor<?xf32, #genrec.rows<@event>>) -> !x {
    ^bb0(%v: f32):
      %wide = vector.broadcast %v : f32 to vector<16xf32>
      genrec.row_yield %wide : vector<16xf32>
    }
    %y = genrec.linear %x, %w : (!x, !w) -> !x
    %part = genrec.slice_columns %y from 8 : (!x) -> tensor<?x8xf32, #genrec.rows<@event>>
    %count = genrec.row_kernel %event(%e) attributes {name = "count", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>]} : (!genrec.domain<@event>, tensor<?xf32, #genrec.rows<@event>>) -> tensor<f32> {
    ^bb0(%v: f32, %a: !genrec.accumulator<tensor<f32>>):
      genrec.accumulate %v into %a : !genrec.accumulator<tensor<f32>>, f32
      genrec.row_yield
    }
    %of_users = genrec.row_kernel %user(%u) attributes {name = "of_users", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %a = genrec.attention silu %part, %part, %part {heads = 1 : i64, causal} : (tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>) -> tensor<?x8xf32, #genrec.rows<@event>>
    %dw = genrec.weight_gradient %x, %y : (!x, !x) -> !w
    %total = genrec.row_kernel %event(%a, %count) attributes {name = "total", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role shared>], result_roles = [#genrec<result_role reduced>]} : (!genrec.domain<@event>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%v: vector<8xf32>, %c: f32, %sum: !genrec.accumulator<tensor<8xf32>>):
      genrec.accumulate %v into %sum : !genrec.accumulator<tensor<8xf32>>, vector<8xf32>
      genrec.row_yield
    }
    %of_sum = genrec.row_kernel %user(%u, %total) attributes {name = "of_sum", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role shared>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>, tensor<8xf32>) -> tensor<?xf32, #genrec.rows<@user>> {
    ^bb0(%v: f32, %c: vector<8xf32>):
      genrec.row_yield %v : f32
    }
    %pooled = genrec.row_kernel %event(%a) attributes {name = "pooled", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind mean>], result_roles = [#genrec<result_role pooled>]} : (!genrec.domain<@event>, tensor<?x8xf32, #genrec.rows<@event>>) -> tensor<?x8xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<8xf32>):
      genrec.row_yield %v : vector<8xf32>
    }
    genrec.output "a" %a : tensor<?x8xf32, #genrec.rows<@event>>
  }
}

// -----

// Outputs keep their order, also where one is read of a run and the next is not.

!x = tensor<?x16xf32, #genrec.rows<@event>>
!w = tensor<16x16xf32>

// CHECK-LABEL: genrec.model @order
// CHECK: genrec.linear {{.*}} {genrec.row_block =
// CHECK: genrec.output "last"
// CHECK: genrec.output "early"
// PLAN-LABEL: genrec.model @order
// CALLS: runRowBlocks
genrec.model @order {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %e = genrec.feature %event "e" : (!genrec.domain<@event>) -> tensor<?xf32, #genrec.rows<@event>>
    %w = genrec.param @w : !w
    %x = genrec.row_kernel %event(%e) attributes {name = "wide", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@event>, tensor<?xf32, #genrec.rows<@event>>) -> !x {
    ^bb0(%v: f32):
      %wide = vector.broadcast %v : f32 to vector<16xf32>
      genrec.row_yield %wide : vector<16xf32>
    }
    %y = genrec.linear %x, %w : (!x, !w) -> !x
    %last = genrec.row_kernel %event(%y) attributes {name = "last", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind sum>], result_roles = [#genrec<result_role pooled>]} : (!genrec.domain<@event>, !x) -> tensor<?x16xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<16xf32>):
      genrec.row_yield %v : vector<16xf32>
    }
    genrec.output "last" %last : tensor<?x16xf32, #genrec.rows<@user>>
    genrec.output "early" %u : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// Rows of no lists form no runs.

!x = tensor<?x16xf32, #genrec.rows<@user>>
!w = tensor<16x16xf32>

// CHECK-LABEL: genrec.model @no_lists
// CHECK-NOT: genrec.row_block
// PLAN-LABEL: genrec.model @no_lists
// CALLS-NOT: runRowBlocks
genrec.model @no_lists {
  genrec.domain @user
  genrec.parameter @w : !w {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %w = genrec.param @w : !w
    %x = genrec.row_kernel %user(%u) attributes {name = "wide", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, tensor<?xf32, #genrec.rows<@user>>) -> !x {
    ^bb0(%v: f32):
      %wide = vector.broadcast %v : f32 to vector<16xf32>
      genrec.row_yield %wide : vector<16xf32>
    }
    %y = genrec.linear %x, %w : (!x, !w) -> !x
    %z = genrec.linear %y, %w : (!x, !w) -> !x
    genrec.output "z" %z : !x
  }
}
