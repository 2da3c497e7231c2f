// RUN: genrec-opt %s --genrec-attach-target=target=cuda --genrec-outline-kernels | FileCheck %s
// RUN: genrec-opt %s --genrec-outline-kernels | FileCheck %s --check-prefix=CPU

// A lane has 16 elements of each row that is reduced, and registers for four such rows: the others are computed behind
// the reductions of these, whose sums are left before.
// CHECK: emitc.func @row_sums
// CHECK: for
// CHECK: for
// CHECK-COUNT-4: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK-COUNT-4: call_opaque "kernels::rowSum"
// CHECK-COUNT-4: assign
// CHECK: for
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: call_opaque "kernels::rowSum"
// CHECK: assign

// CPU: emitc.func @row_sums
// CPU-COUNT-5: arith.mulf
// CPU-COUNT-5: call_opaque "kernels::rowSum"
!u = tensor<?x64xf32, #genrec.rows<@user>>
!s = tensor<f32>
#reduced = #genrec<result_role reduced>
genrec.model @sums {
  genrec.domain @user
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %c = genrec.constant dense<1.0> : tensor<64xf32>
    %x = genrec.broadcast_rows %c to %user : (tensor<64xf32>, !genrec.domain<@user>) -> !u
    %sums:5 = genrec.row_kernel %user(%x) attributes {name = "sums", operand_roles = [#genrec<operand_role aligned>], result_roles = [#reduced, #reduced, #reduced, #reduced, #reduced]} : (!genrec.domain<@user>, !u) -> (!s, !s, !s, !s, !s) {
    ^bb0(%v: vector<64xf32>, %a: !genrec.accumulator<!s>, %b: !genrec.accumulator<!s>, %d: !genrec.accumulator<!s>, %e: !genrec.accumulator<!s>, %f: !genrec.accumulator<!s>):
      %1 = arith.constant dense<1.5> : vector<64xf32>
      %2 = arith.constant dense<2.5> : vector<64xf32>
      %3 = arith.constant dense<3.5> : vector<64xf32>
      %4 = arith.constant dense<4.5> : vector<64xf32>
      %p1 = arith.mulf %v, %1 : vector<64xf32>
      %p2 = arith.mulf %v, %2 : vector<64xf32>
      %p3 = arith.mulf %v, %3 : vector<64xf32>
      %p4 = arith.mulf %v, %4 : vector<64xf32>
      %p5 = arith.mulf %v, %v : vector<64xf32>
      %s1 = vector.reduction <add>, %p1 : vector<64xf32> into f32
      %s2 = vector.reduction <add>, %p2 : vector<64xf32> into f32
      %s3 = vector.reduction <add>, %p3 : vector<64xf32> into f32
      %s4 = vector.reduction <add>, %p4 : vector<64xf32> into f32
      %s5 = vector.reduction <add>, %p5 : vector<64xf32> into f32
      genrec.accumulate %s1 into %a : !genrec.accumulator<!s>, f32
      genrec.accumulate %s2 into %b : !genrec.accumulator<!s>, f32
      genrec.accumulate %s3 into %d : !genrec.accumulator<!s>, f32
      genrec.accumulate %s4 into %e : !genrec.accumulator<!s>, f32
      genrec.accumulate %s5 into %f : !genrec.accumulator<!s>, f32
      genrec.row_yield
    }
  }
}
