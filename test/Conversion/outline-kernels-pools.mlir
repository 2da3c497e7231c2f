// RUN: genrec-opt %s --genrec-outline-kernels | FileCheck %s --check-prefix=CPU
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=CUDA

// Floats of a list are added up in pieces of 256 rows. On the CPU a loop over its rows adds up one after the other; on a
// device each has threads of its own, unless the kernel has sums over all rows besides. The greatest has no order.
genrec.model @pools {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.program @predict mode predict {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %x = genrec.feature %history "history.x" : (!genrec.domain<@history>) -> tensor<?xf32, #genrec.rows<@history>>
    %sum, %most = genrec.row_kernel %history(%x) attributes {name = "split", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind sum>, #genrec<pool_kind max>], result_roles = [#genrec<result_role pooled>, #genrec<result_role pooled>]} : (!genrec.domain<@history>, tensor<?xf32, #genrec.rows<@history>>) -> (tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) {
    ^bb0(%v: f32):
      genrec.row_yield %v, %v : f32, f32
    }
    %other, %total = genrec.row_kernel %history(%x) attributes {name = "summed", operand_roles = [#genrec<operand_role aligned>], pool_kinds = [#genrec<pool_kind sum>], result_roles = [#genrec<result_role pooled>, #genrec<result_role reduced>]} : (!genrec.domain<@history>, tensor<?xf32, #genrec.rows<@history>>) -> (tensor<?xf32, #genrec.rows<@user>>, tensor<f32>) {
    ^bb0(%v: f32, %a: !genrec.accumulator<tensor<f32>>):
      genrec.accumulate %v into %a : !genrec.accumulator<tensor<f32>>, f32
      genrec.row_yield %v : f32
    }
    %c = genrec.constant dense<1.0> : tensor<64xf32>
    %wide = genrec.row_kernel %history(%c) attributes {name = "wide", operand_roles = [#genrec<operand_role shared>], pool_kinds = [#genrec<pool_kind mean>], result_roles = [#genrec<result_role pooled>]} : (!genrec.domain<@history>, tensor<64xf32>) -> tensor<?x64xf32, #genrec.rows<@user>> {
    ^bb0(%v: vector<64xf32>):
      genrec.row_yield %v : vector<64xf32>
    }
    genrec.output "y" %sum : tensor<?xf32, #genrec.rows<@user>>
  }
}

// CPU-NOT: splits_lists
// CPU: emitc.func @row_split
// CPU: %[[PIECE:.*]] = "emitc.constant"() <{value = 256 : i64}>
// CPU: cmp gt
// CPU: if
// CPU: for
// CPU: cmp eq
// CPU: if
// CPU-NOT: PoolShape

// CUDA: genrec.launch @row_split {{.*}}splits_lists
// CUDA: genrec.launch @row_summed
// CUDA-NOT: splits_lists
// CUDA: genrec.launch @row_wide
// CUDA: emitc.func @row_split
// CUDA: call_opaque "kernels::poolUnits"
// CUDA: call_opaque "kernels::poolUnit"{{.*}}template_args = [1]
// CUDA: call_opaque "kernels::poolStart"{{.*}}template_args = [f32]
// CUDA: for
// CUDA: call_opaque "kernels::pooledPlace"{{.*}}template_args = [1, 8, 0]
// CUDA: call_opaque "kernels::pooledPlace"{{.*}}template_args = [1, 8, 4]
// CUDA: emitc.global @row_split_pools {{.*}}<"domain" = 1 : i64, "depth" = 1 : i64, "words" = 8 : i64, "count" = 2 : i64, "results" = [
// CUDA-SAME: <"pointer" = 1 : i64, "width" = 1 : i64, "word" = 0 : i64, "of" = #emitc.opaque<"kernels::PoolOf::sum">, "isInteger" = false>
// CUDA-SAME: <"pointer" = 2 : i64, "width" = 1 : i64, "word" = 4 : i64, "of" = #emitc.opaque<"kernels::PoolOf::max">, "isInteger" = false>
// CUDA: emitc.func @row_summed
// CUDA: call_opaque "kernels::chunkBegin"
// CUDA-NOT: row_summed_pools

// Rows that are pooled are written in packs.
// CUDA: emitc.func @row_wide
// CUDA: call_opaque "kernels::pooledPlace"{{.*}}template_args = [64, 64, 0]
// CUDA: call_opaque "kernels::meanDivisor"
// CUDA: call_opaque "kernels::storePack"{{.*}}template_args = [4]
