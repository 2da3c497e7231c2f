// RUN: sed s/ROWS/32/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=PRIVATE
// RUN: sed s/ROWS/33/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=TERMS

// Of a sum into rows that an index picks, each chunk has its own where these are few; else rows leave terms, which are
// added behind the kernel, and no row waits for another: most threads have one row, for which no loop is unrolled.
// PRIVATE: emitc.func @row_sums
// PRIVATE: call_opaque "kernels::chunkBegin"
// PRIVATE: call_opaque "kernels::clearSums"
// PRIVATE-NOT: unroll 1
// PRIVATE: call_opaque "kernels::addRow"
// PRIVATE: emitc.global @row_sums_sums : !emitc.array<1x!emitc.opaque<"kernels::SumShape">> {{.*}}[#genrec.fields<>]
// TERMS: emitc.func @row_sums
// TERMS-NOT: kernels::chunkBegin
// TERMS: call_opaque "kernels::termsOf"{{.*}}template_args = [1, 1, 4, #emitc.opaque<"false">, #emitc.opaque<"false">]
// TERMS: verbatim "#pragma unroll 1"
// TERMS-NEXT: for
// TERMS: %[[TERMS:.*]] = call_opaque "kernels::rowTerms"{{.*}}template_args = [1, 1, 4, #emitc.opaque<"false">, #emitc.opaque<"false">, 0, 0]
// TERMS: call_opaque "kernels::addRow"(%[[TERMS]],
// TERMS: emitc.global @row_sums_sums {{.*}}[#genrec.fields<"terms" = 1 : i64, "vectors" = 1 : i64, "width" = 4 : i64, "stride" = 4 : i64, "domain" = 0 : i64, "isScaled" = false, "firstTerms" = [0]>]

// Sums of one float take no more of a row's memory than that.
// TERMS: emitc.func @row_scalars
// TERMS: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 1, 16, 0]
// TERMS: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 1, 16, 4]
// TERMS-NOT: emitc.array
// TERMS: call_opaque "kernels::meetTeam"
// TERMS: call_opaque "kernels::addRows"{{.*}}template_args = [1, 1, 16]
// TERMS: call_opaque "kernels::addRows"{{.*}}template_args = [1, 1, 16]
// TERMS: emitc.global @row_scalars_mapping {{.*}}"sharedBytes" = 16 : i64, "isSpread" = true
genrec.model @sums {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<4xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<4xf32>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %n = genrec.constant dense<1> : tensor<i64>
    %i = genrec.broadcast_rows %n to %user : (tensor<i64>, !genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %rows = genrec.row_kernel %user(%x, %i) attributes {name = "sums", operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role aligned>], result_roles = [#genrec<result_role scattered>]} : (!genrec.domain<@user>, tensor<?x4xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>) -> tensor<ROWSx4xf32> {
    ^bb0(%v: vector<4xf32>, %k: i64, %a: !genrec.accumulator<tensor<ROWSx4xf32>>):
      genrec.accumulate %v into %a at %k {clamp} : !genrec.accumulator<tensor<ROWSx4xf32>>, vector<4xf32>, i64
      genrec.row_yield
    }
    %scalars:2 = genrec.row_kernel %user(%i) attributes {name = "scalars", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>, #genrec<result_role reduced>]} : (!genrec.domain<@user>, tensor<?xi64, #genrec.rows<@user>>) -> (tensor<f32>, tensor<f32>) {
    ^bb0(%k: i64, %a: !genrec.accumulator<tensor<f32>>, %b: !genrec.accumulator<tensor<f32>>):
      %f = arith.sitofp %k : i64 to f32
      %one = arith.constant 1.0 : f32
      genrec.accumulate %f into %a : !genrec.accumulator<tensor<f32>>, f32
      genrec.accumulate %one into %b : !genrec.accumulator<tensor<f32>>, f32
      genrec.row_yield
    }
  }
}
