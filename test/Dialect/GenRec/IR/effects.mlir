// RUN: genrec-opt %s --canonicalize --cse | FileCheck %s

!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
!row = tensor<?x!genrec.row<1>, #genrec.rows<@request>>

// Equal constants become one, and what nothing uses goes.
// CHECK-LABEL: func @constants
func.func @constants(%x: !num) -> !num {
  // CHECK-NEXT: %[[TWO:.*]] = genrec.constant dense<2.000000e+00> : tensor<f32>
  // CHECK-NEXT: %[[Y:.*]] = genrec.mul %{{.*}}, %[[TWO]]
  // CHECK-NEXT: genrec.add %[[Y]], %[[Y]]
  // CHECK-NEXT: return
  %0 = genrec.constant dense<2.0> : tensor<f32>
  %1 = genrec.constant dense<2.0> : tensor<f32>
  %2 = genrec.constant dense<3.0> : tensor<f32>
  %3 = genrec.mul %x, %0 : (!num, tensor<f32>) -> !num
  %4 = genrec.mul %x, %1 : (!num, tensor<f32>) -> !num
  %5 = genrec.mul %x, %2 : (!num, tensor<f32>) -> !num
  %6 = genrec.add %3, %4 : (!num, !num) -> !num
  return %6 : !num
}

// A kernel that only computes goes when nothing uses it, also with accumulators; one that loads goes
// too, for loading has no effect of its own; one that stores stays.
// CHECK-LABEL: func @kernels
func.func @kernels(%d: !request, %x: !num, %r: !row) {
  // CHECK-NOT: genrec.accumulate
  %0 = genrec.row_kernel %d(%x) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role reduced>]}
      : (!request, !num) -> tensor<f32> {
  ^bb0(%a: f32, %sum: !genrec.accumulator<tensor<f32>>):
    genrec.accumulate %a into %sum : !genrec.accumulator<tensor<f32>>, f32
    genrec.row_yield
  }
  %1 = genrec.row_kernel %d(%r) attributes {
      operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
      : (!request, !row) -> tensor<?x1xf32, #genrec.rows<@request>> {
  ^bb0(%a: !genrec.row<1>):
    %v = genrec.row_load %a : (!genrec.row<1>) -> vector<1xf32>
    genrec.row_yield %v : vector<1xf32>
  }
  // CHECK: genrec.row_kernel
  // CHECK: genrec.row_store
  genrec.row_kernel %d(%r) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = []}
      : (!request, !row) -> () {
  ^bb0(%a: !genrec.row<1>):
    %v = genrec.row_load %a : (!genrec.row<1>) -> vector<1xf32>
    genrec.row_store %v to %a : vector<1xf32>, !genrec.row<1>
    genrec.row_yield
  }
  return
}

// Two loads are one, but not across a store.
// CHECK-LABEL: func @order
func.func @order(%d: !request, %r: !row) -> (tensor<?x1xf32, #genrec.rows<@request>>, tensor<?x1xf32, #genrec.rows<@request>>) {
  // CHECK-COUNT-2: genrec.row_load
  // CHECK-NOT: genrec.row_load
  // CHECK: return
  %0:2 = genrec.row_kernel %d(%r) attributes {
      operand_roles = [#genrec<operand_role aligned>],
      result_roles = [#genrec<result_role aligned>, #genrec<result_role aligned>]}
      : (!request, !row) -> (tensor<?x1xf32, #genrec.rows<@request>>, tensor<?x1xf32, #genrec.rows<@request>>) {
  ^bb0(%a: !genrec.row<1>):
    %v = genrec.row_load %a : (!genrec.row<1>) -> vector<1xf32>
    %w = genrec.row_load %a : (!genrec.row<1>) -> vector<1xf32>
    %s = arith.addf %v, %w : vector<1xf32>
    genrec.row_store %s to %a : vector<1xf32>, !genrec.row<1>
    %t = genrec.row_load %a : (!genrec.row<1>) -> vector<1xf32>
    genrec.row_yield %v, %t : vector<1xf32>, vector<1xf32>
  }
  return %0#0, %0#1 : tensor<?x1xf32, #genrec.rows<@request>>, tensor<?x1xf32, #genrec.rows<@request>>
}
