// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec-attach-target{target=cuda},genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s
// RUN: genrec-opt %s --split-input-file --pass-pipeline='builtin.module(genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s --check-prefix=CPU

// A device makes the parts of a wide join side by side, as columns of one launch, which has the name of the kernel: all but
// the one that is there. Parts that differ in constants alone share a body, which reads them.

// CHECK-LABEL: genrec.model @parts
// CHECK: genrec.launch @row_make
// CHECK: genrec.launch_columns [@row_wide, @row_wide_2, @run_row_wide](%{{[^,]*}}, %[[X:[^,]*]], %[[ONE:[^,]*]], %{{[^,]*}}, %[[TWO:[^,]*]],
// CHECK-SAME: into(
// CHECK-SAME: name = "row_wide", places = array<i64: 0, 4, 0, 8, 0, 9, {{.*}}, 0, 21>, shapes = @run_row_wide_columns}
// CHECK-NOT: genrec.joined_at
// CHECK: emitc.func @row_wide(
// CHECK: emitc.func @row_wide_2(
// CHECK: arith.subf
// CHECK: %[[STRIDE:.*]] = "emitc.constant"() <{value = 22 : i64}>
// CHECK: mul %{{.*}}, %[[STRIDE]]
// CHECK: emitc.global @run_row_wide_columns : !emitc.array<15x

// CPU-LABEL: genrec.model @parts
// CPU: genrec.launch @row_wide
#aligned = #genrec<operand_role aligned>
#own = #genrec<result_role aligned>
!one = tensor<?xf32, #genrec.rows<@user>>
!four = tensor<?x4xf32, #genrec.rows<@user>>
genrec.model @parts {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %v = genrec.feature %user "v" : (!genrec.domain<@user>) -> !four
    %x0 = genrec.feature %user "x0" : (!genrec.domain<@user>) -> !one
    %x1 = genrec.feature %user "x1" : (!genrec.domain<@user>) -> !one
    %x2 = genrec.feature %user "x2" : (!genrec.domain<@user>) -> !one
    %x3 = genrec.feature %user "x3" : (!genrec.domain<@user>) -> !one
    %x4 = genrec.feature %user "x4" : (!genrec.domain<@user>) -> !one
    %x5 = genrec.feature %user "x5" : (!genrec.domain<@user>) -> !one
    %x6 = genrec.feature %user "x6" : (!genrec.domain<@user>) -> !one
    %x7 = genrec.feature %user "x7" : (!genrec.domain<@user>) -> !one
    %x8 = genrec.feature %user "x8" : (!genrec.domain<@user>) -> !one
    %x9 = genrec.feature %user "x9" : (!genrec.domain<@user>) -> !one
    %x10 = genrec.feature %user "x10" : (!genrec.domain<@user>) -> !one
    %x11 = genrec.feature %user "x11" : (!genrec.domain<@user>) -> !one
    %x12 = genrec.feature %user "x12" : (!genrec.domain<@user>) -> !one
    %x13 = genrec.feature %user "x13" : (!genrec.domain<@user>) -> !one
    %make = genrec.row_kernel %user(%v) attributes {name = "make", operand_roles = [#aligned], result_roles = [#own]} : (!genrec.domain<@user>, !four) -> !four {
    ^bb0(%a: vector<4xf32>):
      %e = math.exp %a : vector<4xf32>
      genrec.row_yield %e : vector<4xf32>
    }
    %wide = genrec.row_kernel %user(%make, %v, %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13) attributes {name = "wide", operand_roles = [#aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned], result_roles = [#own]} : (!genrec.domain<@user>, !four, !four, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one) -> tensor<?x22xf32, #genrec.rows<@user>> {
    ^bb0(%m: vector<4xf32>, %b: vector<4xf32>, %a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %a9: f32, %a10: f32, %a11: f32, %a12: f32, %a13: f32):
      %c0 = arith.constant 1.0 : f32
      %d0 = arith.subf %a0, %c0 : f32
      %c1 = arith.constant 2.0 : f32
      %d1 = arith.subf %a1, %c1 : f32
      %c2 = arith.constant 3.0 : f32
      %d2 = arith.subf %a2, %c2 : f32
      %c3 = arith.constant 4.0 : f32
      %d3 = arith.subf %a3, %c3 : f32
      %c4 = arith.constant 5.0 : f32
      %d4 = arith.subf %a4, %c4 : f32
      %c5 = arith.constant 6.0 : f32
      %d5 = arith.subf %a5, %c5 : f32
      %c6 = arith.constant 7.0 : f32
      %d6 = arith.subf %a6, %c6 : f32
      %c7 = arith.constant 8.0 : f32
      %d7 = arith.subf %a7, %c7 : f32
      %c8 = arith.constant 9.0 : f32
      %d8 = arith.subf %a8, %c8 : f32
      %c9 = arith.constant 10.0 : f32
      %d9 = arith.subf %a9, %c9 : f32
      %c10 = arith.constant 11.0 : f32
      %d10 = arith.subf %a10, %c10 : f32
      %c11 = arith.constant 12.0 : f32
      %d11 = arith.subf %a11, %c11 : f32
      %c12 = arith.constant 13.0 : f32
      %d12 = arith.subf %a12, %c12 : f32
      %c13 = arith.constant 14.0 : f32
      %d13 = arith.subf %a13, %c13 : f32
      %j = genrec.row_concat %m, %b, %d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10, %d11, %d12, %d13 : (vector<4xf32>, vector<4xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> vector<22xf32>
      genrec.row_yield %j : vector<22xf32>
    }
    genrec.output "wide" %wide : tensor<?x22xf32, #genrec.rows<@user>>
  }
}

// -----

// Of fewer parts a thread makes all.

// CHECK-LABEL: genrec.model @few
// CHECK: genrec.launch @row_few
#aligned = #genrec<operand_role aligned>
#own = #genrec<result_role aligned>
!one = tensor<?xf32, #genrec.rows<@user>>
!four = tensor<?x4xf32, #genrec.rows<@user>>
genrec.model @few {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %v = genrec.feature %user "v" : (!genrec.domain<@user>) -> !four
    %x0 = genrec.feature %user "x0" : (!genrec.domain<@user>) -> !one
    %x1 = genrec.feature %user "x1" : (!genrec.domain<@user>) -> !one
    %x2 = genrec.feature %user "x2" : (!genrec.domain<@user>) -> !one
    %x3 = genrec.feature %user "x3" : (!genrec.domain<@user>) -> !one
    %x4 = genrec.feature %user "x4" : (!genrec.domain<@user>) -> !one
    %x5 = genrec.feature %user "x5" : (!genrec.domain<@user>) -> !one
    %x6 = genrec.feature %user "x6" : (!genrec.domain<@user>) -> !one
    %x7 = genrec.feature %user "x7" : (!genrec.domain<@user>) -> !one
    %x8 = genrec.feature %user "x8" : (!genrec.domain<@user>) -> !one
    %x9 = genrec.feature %user "x9" : (!genrec.domain<@user>) -> !one
    %x10 = genrec.feature %user "x10" : (!genrec.domain<@user>) -> !one
    %x11 = genrec.feature %user "x11" : (!genrec.domain<@user>) -> !one
    %x12 = genrec.feature %user "x12" : (!genrec.domain<@user>) -> !one
    %x13 = genrec.feature %user "x13" : (!genrec.domain<@user>) -> !one
    %x14 = genrec.feature %user "x14" : (!genrec.domain<@user>) -> !one
    %few = genrec.row_kernel %user(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13, %x14) attributes {name = "few", operand_roles = [#aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned], result_roles = [#own]} : (!genrec.domain<@user>, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one) -> tensor<?x15xf32, #genrec.rows<@user>> {
    ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %a9: f32, %a10: f32, %a11: f32, %a12: f32, %a13: f32, %a14: f32):
      %d0 = math.exp %a0 : f32
      %d1 = math.exp %a1 : f32
      %d2 = math.exp %a2 : f32
      %d3 = math.exp %a3 : f32
      %d4 = math.exp %a4 : f32
      %d5 = math.exp %a5 : f32
      %d6 = math.exp %a6 : f32
      %d7 = math.exp %a7 : f32
      %d8 = math.exp %a8 : f32
      %d9 = math.exp %a9 : f32
      %d10 = math.exp %a10 : f32
      %d11 = math.exp %a11 : f32
      %d12 = math.exp %a12 : f32
      %d13 = math.exp %a13 : f32
      %d14 = math.exp %a14 : f32
      %j = genrec.row_concat %d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10, %d11, %d12, %d13, %d14 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> vector<15xf32>
      genrec.row_yield %j : vector<15xf32>
    }
    genrec.output "few" %few : tensor<?x15xf32, #genrec.rows<@user>>
  }
}

// -----

// What all parts are made of is made once.

// CHECK-LABEL: genrec.model @shared
// CHECK: genrec.launch @row_shared
#aligned = #genrec<operand_role aligned>
#own = #genrec<result_role aligned>
!one = tensor<?xf32, #genrec.rows<@user>>
!four = tensor<?x4xf32, #genrec.rows<@user>>
genrec.model @shared {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %v = genrec.feature %user "v" : (!genrec.domain<@user>) -> !four
    %x0 = genrec.feature %user "x0" : (!genrec.domain<@user>) -> !one
    %x1 = genrec.feature %user "x1" : (!genrec.domain<@user>) -> !one
    %x2 = genrec.feature %user "x2" : (!genrec.domain<@user>) -> !one
    %x3 = genrec.feature %user "x3" : (!genrec.domain<@user>) -> !one
    %x4 = genrec.feature %user "x4" : (!genrec.domain<@user>) -> !one
    %x5 = genrec.feature %user "x5" : (!genrec.domain<@user>) -> !one
    %x6 = genrec.feature %user "x6" : (!genrec.domain<@user>) -> !one
    %x7 = genrec.feature %user "x7" : (!genrec.domain<@user>) -> !one
    %x8 = genrec.feature %user "x8" : (!genrec.domain<@user>) -> !one
    %x9 = genrec.feature %user "x9" : (!genrec.domain<@user>) -> !one
    %x10 = genrec.feature %user "x10" : (!genrec.domain<@user>) -> !one
    %x11 = genrec.feature %user "x11" : (!genrec.domain<@user>) -> !one
    %x12 = genrec.feature %user "x12" : (!genrec.domain<@user>) -> !one
    %x13 = genrec.feature %user "x13" : (!genrec.domain<@user>) -> !one
    %x14 = genrec.feature %user "x14" : (!genrec.domain<@user>) -> !one
    %x15 = genrec.feature %user "x15" : (!genrec.domain<@user>) -> !one
    %shared = genrec.row_kernel %user(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13, %x14, %x15) attributes {name = "shared", operand_roles = [#aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned, #aligned], result_roles = [#own]} : (!genrec.domain<@user>, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one, !one) -> tensor<?x16xf32, #genrec.rows<@user>> {
    ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %a9: f32, %a10: f32, %a11: f32, %a12: f32, %a13: f32, %a14: f32, %a15: f32):
      %s0 = arith.mulf %a0, %a0 : f32
      %s1 = math.exp %s0 : f32
      %s2 = math.exp %s1 : f32
      %s3 = math.exp %s2 : f32
      %s4 = math.exp %s3 : f32
      %s5 = math.exp %s4 : f32
      %s6 = math.exp %s5 : f32
      %s7 = math.exp %s6 : f32
      %s8 = math.exp %s7 : f32
      %s9 = math.exp %s8 : f32
      %s10 = math.exp %s9 : f32
      %s11 = math.exp %s10 : f32
      %s12 = math.exp %s11 : f32
      %s13 = math.exp %s12 : f32
      %s14 = math.exp %s13 : f32
      %s15 = math.exp %s14 : f32
      %s16 = math.exp %s15 : f32
      %s17 = math.exp %s16 : f32
      %s18 = math.exp %s17 : f32
      %s19 = math.exp %s18 : f32
      %s20 = math.exp %s19 : f32
      %s21 = math.exp %s20 : f32
      %s22 = math.exp %s21 : f32
      %s23 = math.exp %s22 : f32
      %s24 = math.exp %s23 : f32
      %s25 = math.exp %s24 : f32
      %s26 = math.exp %s25 : f32
      %s27 = math.exp %s26 : f32
      %s28 = math.exp %s27 : f32
      %s29 = math.exp %s28 : f32
      %s30 = math.exp %s29 : f32
      %s31 = math.exp %s30 : f32
      %s32 = math.exp %s31 : f32
      %s33 = math.exp %s32 : f32
      %s34 = math.exp %s33 : f32
      %s35 = math.exp %s34 : f32
      %s36 = math.exp %s35 : f32
      %s37 = math.exp %s36 : f32
      %s38 = math.exp %s37 : f32
      %s39 = math.exp %s38 : f32
      %d0 = arith.addf %s39, %a0 : f32
      %d1 = arith.addf %s39, %a1 : f32
      %d2 = arith.addf %s39, %a2 : f32
      %d3 = arith.addf %s39, %a3 : f32
      %d4 = arith.addf %s39, %a4 : f32
      %d5 = arith.addf %s39, %a5 : f32
      %d6 = arith.addf %s39, %a6 : f32
      %d7 = arith.addf %s39, %a7 : f32
      %d8 = arith.addf %s39, %a8 : f32
      %d9 = arith.addf %s39, %a9 : f32
      %d10 = arith.addf %s39, %a10 : f32
      %d11 = arith.addf %s39, %a11 : f32
      %d12 = arith.addf %s39, %a12 : f32
      %d13 = arith.addf %s39, %a13 : f32
      %d14 = arith.addf %s39, %a14 : f32
      %d15 = arith.addf %s39, %a15 : f32
      %j = genrec.row_concat %d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8, %d9, %d10, %d11, %d12, %d13, %d14, %d15 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> vector<16xf32>
      genrec.row_yield %j : vector<16xf32>
    }
    genrec.output "shared" %shared : tensor<?x16xf32, #genrec.rows<@user>>
  }
}
