// RUN: sed s/WIDTH/50/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefixes=CHECK,W50
// RUN: sed s/WIDTH/64/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefixes=CHECK,W64
// RUN: sed s/WIDTH/421/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefixes=CHECK,W421
// RUN: sed s/WIDTH/1024/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefixes=CHECK,W1024
// RUN: sed s/WIDTH/2048/g %s | genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefixes=CHECK,W2048
// RUN: sed s/WIDTH/60000/g %s | not genrec-opt --genrec-attach-target=target=cuda --genrec-outline-kernels 2>&1 | FileCheck %s --check-prefix=WIDE

// The width of a row decides how many threads it has, and what its values are aligned to how many of them a thread
// has side by side. Values stay in registers; from a warp of packs on reductions go through shared memory.
genrec.model @norm {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<WIDTHxf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<WIDTHxf32>, !genrec.domain<@user>) -> tensor<?xWIDTHxf32, #genrec.rows<@user>>
    %y, %s, %t = genrec.row_kernel %user(%x) attributes {name = "norm", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>, #genrec<result_role reduced>]} : (!genrec.domain<@user>, tensor<?xWIDTHxf32, #genrec.rows<@user>>) -> (tensor<?xWIDTHxf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>, tensor<WIDTHxf32>) {
    ^bb0(%v: vector<WIDTHxf32>, %a: !genrec.accumulator<tensor<WIDTHxf32>>):
      %square = arith.mulf %v, %v : vector<WIDTHxf32>
      %total = vector.reduction <add>, %square : vector<WIDTHxf32> into f32
      %totals = vector.broadcast %total : f32 to vector<WIDTHxf32>
      %result = arith.mulf %v, %totals : vector<WIDTHxf32>
      genrec.accumulate %v into %a : !genrec.accumulator<tensor<WIDTHxf32>>, vector<WIDTHxf32>
      genrec.row_yield %result, %total : vector<WIDTHxf32>, f32
    }
    genrec.output "y" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}

// Each chunk of rows has sums of its own. Where what a block's rows add fits into shared memory (24 KiB), they are
// worked on at the same time, and then added in the order of rows; else one after the other, and the sums are kept.
// CHECK: emitc.func @row_norm
// W50-SAME: "__launch_bounds__(256, 3)"
// W64-SAME: "__launch_bounds__(128)"
// W421-SAME: "__launch_bounds__(256, 3)"
// W1024-SAME: "__launch_bounds__(128)"
// W2048-SAME: "__launch_bounds__(256)"
// W50: call_opaque "kernels::chunkOfTeam"{{.*}}template_args = [8]
// W64: call_opaque "kernels::chunkOfTeam"{{.*}}template_args = [4]
// W421: call_opaque "kernels::chunkOfTeam"{{.*}}template_args = [32]
// W1024: call_opaque "kernels::firstRow"
// W2048: call_opaque "kernels::firstRow"
// CHECK: call_opaque "kernels::chunkBegin"
// CHECK: call_opaque "kernels::chunkEnd"
// CHECK: if
// W50: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 8, 208, 0]}
// W64: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 4, 256, 0]}
// W421: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 32, 1696, 0]}
// W50: call_opaque "kernels::teamRows"
// W50: -> !emitc.array<8xf32>
// W64: -> !emitc.array<16xf32>
// W421: -> !emitc.array<14xf32>
// W1024: -> !emitc.array<32xf32>
// W2048: -> !emitc.array<8xf32>
// CHECK-NOT: kernels::clearSums
// W1024: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 32, 4096, 0]}
// W2048: call_opaque "kernels::sharedArray"{{.*}}template_args = [f32, 256, 8192, 0]}
// W50: verbatim "#pragma unroll 1"
// CHECK: for
// W50: if
// W50: call_opaque "kernels::loadPack"{{.*}}template_args = [2]
// What the row adds, where it is computed.
// W50: call_opaque "kernels::storePack"{{.*}}template_args = [2]
// W64: call_opaque "kernels::loadPack"{{.*}}template_args = [4]
// W421-NOT: kernels::loadPack
// W1024: call_opaque "kernels::loadPack"{{.*}}template_args = [4]
// W50: call_opaque "kernels::rowSum"{{.*}}template_args = [50, 8, 2]
// W64: call_opaque "kernels::rowSum"{{.*}}template_args = [64, 4, 4]
// W421: call_opaque "kernels::rowSum"{{.*}}template_args = [421, 32, 1]
// W1024: call_opaque "kernels::rowSum"{{.*}}template_args = [1024, 32, 4]
// W2048: call_opaque "kernels::rowSum"{{.*}}template_args = [2048, 256, 4]
// CHECK: call_opaque "kernels::isFirstLane"
// The sums of the chunk, behind its rows.
// W1024: load
// W2048: load
// W50: call_opaque "kernels::meetTeam"
// W50: call_opaque "kernels::addRows"{{.*}}template_args = [50, 8, 208]
// W50: call_opaque "kernels::meetTeam"
// W64: call_opaque "kernels::addRows"{{.*}}template_args = [64, 4, 256]
// W421: call_opaque "kernels::addRows"{{.*}}template_args = [421, 32, 1696]
// W50: emitc.global @row_norm_mapping {{.*}}<"lanes" = 8 : i64, "sharedBytes" = 208 : i64, "isSpread" = true>
// W64: emitc.global @row_norm_mapping {{.*}}<"lanes" = 4 : i64, "sharedBytes" = 256 : i64, "isSpread" = true>
// W421: emitc.global @row_norm_mapping {{.*}}<"lanes" = 32 : i64, "sharedBytes" = 1696 : i64, "isSpread" = true>
// W1024: emitc.global @row_norm_mapping {{.*}}<"lanes" = 32 : i64, "sharedBytes" = 4096 : i64, "isSpread" = false>
// W2048: emitc.global @row_norm_mapping {{.*}}<"lanes" = 256 : i64, "sharedBytes" = 8192 : i64, "isSpread" = false>

// WIDE: error: needs 240000 bytes of shared memory for the vectors of a row, but a block of a device has 232448; use fewer or shorter vectors, or --target=cpu
