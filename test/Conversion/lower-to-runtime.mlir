// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory),genrec-outline-kernels,genrec-lower-to-runtime)' | FileCheck %s

genrec.model @m {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @touched {kind = #genrec<domain_kind step>}
  genrec.table @movies dim 4 {id_bits = 20 : i64, init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.parameter @w : tensor<4x6xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %ids = genrec.feature %history "history.movie" {id_bits = 20 : i64} : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %lengths = genrec.length %history {genrec.stage = #genrec<stage copy>} : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@user>>
    %rows = genrec.table_rows %ids in @movies : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x!genrec.row<4>, #genrec.rows<@history>>
    %x = genrec.row_kernel %history(%rows) attributes {name = "load", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@history>, tensor<?x!genrec.row<4>, #genrec.rows<@history>>) -> tensor<?x4xf32, #genrec.rows<@history>> {
    ^bb0(%row: !genrec.row<4>):
      %v = genrec.row_load %row : (!genrec.row<4>) -> vector<4xf32>
      genrec.row_yield %v : vector<4xf32>
    }
    %w = genrec.param @w : tensor<4x6xf32>
    %y = genrec.linear %x, %w : (tensor<?x4xf32, #genrec.rows<@history>>, tensor<4x6xf32>) -> tensor<?x6xf32, #genrec.rows<@history>>
    %z, %pre = genrec.fused_linear %x, %w residual %y activation silu : (tensor<?x4xf32, #genrec.rows<@history>>, tensor<4x6xf32>, tensor<?x6xf32, #genrec.rows<@history>>) -> (tensor<?x6xf32, #genrec.rows<@history>>, tensor<?x6xf32, #genrec.rows<@history>>)
    %touched, %handles = genrec.unique_rows(%rows) by(%x) : (tensor<?x!genrec.row<4>, #genrec.rows<@history>>, tensor<?x4xf32, #genrec.rows<@history>>) -> (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>)
    %sums = genrec.segment_sum %touched(%x) : (!genrec.domain<@touched>, tensor<?x4xf32, #genrec.rows<@history>>) -> tensor<?x4xf32, #genrec.rows<@touched>>
    %read = genrec.segment_sum %touched(%x) : (!genrec.domain<@touched>, tensor<?x4xf32, #genrec.rows<@history>>) -> tensor<?x4xf32, #genrec.rows<@touched>>
    genrec.row_kernel %touched(%handles, %read) attributes {name = "update", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = []} : (!genrec.domain<@touched>, tensor<?x!genrec.row<4>, #genrec.rows<@touched>>, tensor<?x4xf32, #genrec.rows<@touched>>) -> () {
    ^bb0(%row: !genrec.row<4>, %sum: vector<4xf32>):
      genrec.row_store %sum to %row : vector<4xf32>, !genrec.row<4>
      genrec.row_yield
    }
    %one = genrec.constant dense<1.0> : tensor<f32>
    genrec.report_loss "l" %one, %one : tensor<f32>, tensor<f32>
  }
}

// CHECK-NOT: genrec.
// CHECK: emitc.global static const @constant_constant_0
// CHECK: emitc.func @row_load

// CHECK: emitc.func @train_copy(%{{.*}}: !emitc.ptr<!emitc.opaque<"genrec_step">>)
// CHECK: call_opaque "kernels::lengths"

// CHECK: emitc.func @train_compute
// CHECK: call_opaque "genrec_rt_table_rows"
// CHECK: call_opaque "kernels::launch"
// CHECK: call_opaque "kernels::linear"
// CHECK-SAME: template_args = [4, 6, #emitc.opaque<"false">, #emitc.opaque<"false">]
// CHECK: call_opaque "kernels::fusedLinear"
// CHECK-SAME: template_args = [4, 6, #emitc.opaque<"false">, #emitc.opaque<"kernels::Activation::silu">, #emitc.opaque<"false">, #emitc.opaque<"true">, #emitc.opaque<"true">]
// CHECK: call_opaque "genrec_rt_unique_rows"
// CHECK: call_opaque "genrec_rt_segment_sum"
// A sum that one kernel reads is added up there.
// CHECK-NOT: call_opaque "genrec_rt_segment_sum"
// CHECK: %[[SUMS:.*]] = call_opaque "kernels::segmentSums"
// CHECK: assign %[[SUMS]] : !emitc.opaque<"kernels::SegmentSums"> to %[[PLACE:.*]] : <!emitc.opaque<"kernels::SegmentSums">>
// CHECK: %[[POINTER:.*]] = address_of %[[PLACE]]
// CHECK: call_opaque "kernels::launch"({{.*}}, %[[POINTER]])
// CHECK: call_opaque "genrec_rt_report_loss"

// What the step makes is bounded by what it is made of.
// CHECK: emitc.func @capacity_touched
// CHECK: emitc.global static const @model_domains
// CHECK-SAME: "name" = "touched", "kind" = #emitc.opaque<"GENREC_DOMAIN_STEP">, "parent" = -1 : i64, "capacity" = #emitc.opaque<"capacity_touched">
// CHECK: emitc.global static const @model_features
// CHECK-SAME: "column" = "history.movie", "domain" = 1 : i64, "type" = #emitc.opaque<"GENREC_I64">
// CHECK-SAME: "id_bits" = 20 : i64, "table" = "movies"
// CHECK: emitc.global static const @model_tables
// CHECK-SAME: "optimizer" = #genrec.fields<"kind" = 1 : i64, "states" = 1 : i64
// CHECK: emitc.global static const @train_buffers
// CHECK: emitc.global static const @model_programs
// CHECK-SAME: "copy" = #emitc.opaque<"train_copy">, "dispatch" = #emitc.opaque<"nullptr">, "compute" = #emitc.opaque<"train_compute">
// CHECK: emitc.func @genrec_model()
