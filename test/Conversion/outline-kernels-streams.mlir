// RUN: genrec-opt %s --genrec-outline-kernels | FileCheck %s
// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s --check-prefix=CUDA

// A loop over elements writes at most 8 vectors on the CPU, as each is a line of the caches: ten parts of a row are two loops,
// and what has ops in common is in one of them. On a device a thread has all at once.

// CHECK: emitc.func @row_parts
// CHECK: for
// CHECK: for
// CHECK: math.exp
// CHECK-COUNT-8: assign
// CHECK: for
// CHECK-NOT: math.exp
// CHECK-COUNT-2: assign
// CHECK-NOT: assign
// CHECK: return
// CUDA: emitc.func @row_parts
// CUDA: call_opaque "kernels::firstOfPack"
// CUDA-NOT: call_opaque "kernels::firstOfPack"
// CUDA: return
!v = tensor<?x16xf32, #genrec.rows<@user>>
#aligned = #genrec<operand_role aligned>
genrec.model @streams {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %x0 = genrec.feature %user "x0" : (!genrec.domain<@user>) -> !v
    %x1 = genrec.feature %user "x1" : (!genrec.domain<@user>) -> !v
    %x2 = genrec.feature %user "x2" : (!genrec.domain<@user>) -> !v
    %x3 = genrec.feature %user "x3" : (!genrec.domain<@user>) -> !v
    %x4 = genrec.feature %user "x4" : (!genrec.domain<@user>) -> !v
    %x5 = genrec.feature %user "x5" : (!genrec.domain<@user>) -> !v
    %x6 = genrec.feature %user "x6" : (!genrec.domain<@user>) -> !v
    %x7 = genrec.feature %user "x7" : (!genrec.domain<@user>) -> !v
    %x8 = genrec.feature %user "x8" : (!genrec.domain<@user>) -> !v
    %x9 = genrec.feature %user "x9" : (!genrec.domain<@user>) -> !v
    %row = genrec.row_kernel %user(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9) attributes {name = "parts", operand_roles = [#aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned], result_roles = [#genrec<result_role aligned>]} : (!genrec.domain<@user>, !v, !v, !v, !v, !v, !v, !v, !v, !v, !v) -> tensor<?x160xf32, #genrec.rows<@user>> {
    ^bb0(%a0: vector<16xf32>, %a1: vector<16xf32>, %a2: vector<16xf32>, %a3: vector<16xf32>, %a4: vector<16xf32>, %a5: vector<16xf32>, %a6: vector<16xf32>, %a7: vector<16xf32>, %a8: vector<16xf32>, %a9: vector<16xf32>):
      %e = math.exp %a0 : vector<16xf32>
      %s0 = arith.addf %e, %a0 : vector<16xf32>
      %s1 = arith.addf %e, %a1 : vector<16xf32>
      %s2 = arith.addf %e, %a2 : vector<16xf32>
      %joined = genrec.row_concat %s0, %s1, %s2, %a3, %a4, %a5, %a6, %a7, %a8, %a9 : (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<160xf32>
      genrec.row_yield %joined : vector<160xf32>
    }
    genrec.output "row" %row : tensor<?x160xf32, #genrec.rows<@user>>
  }
}
