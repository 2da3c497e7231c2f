// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors))' --split-input-file | FileCheck %s
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors,genrec-form-row-kernels))' --split-input-file | FileCheck %s --check-prefix=FORM
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors,genrec-form-row-kernels),genrec-attach-target{target=cuda},genrec-outline-kernels)' --split-input-file | FileCheck %s --check-prefix=CUDA
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-form-row-kernels),genrec-outline-kernels)' --split-input-file | FileCheck %s --check-prefix=CPU

// Items that row kernels gather are stored as bf16, and rounded once. What gathers no rows reads the floats.
// CHECK-LABEL: genrec.model @softmax
// CHECK: %[[ITEMS:.*]] = genrec.tanh
// CHECK: %[[STORED:.*]] = genrec.cast %[[ITEMS]] : (tensor<?x1024xf32, #genrec.rows<@items>>) -> tensor<?x1024xbf16, #genrec.rows<@items>>
// CHECK: %[[Q:.*]] = genrec.round_factor
// CHECK: genrec.sampled_softmax %[[Q]], %{{.*}}, %[[STORED]]
// CHECK: genrec.sampled_softmax_grad %[[Q]], %{{.*}}, %[[STORED]]
// CHECK-SAME: -> (tensor<?x1024xf32, #genrec.rows<@user>>, tensor<?x1024xf32, #genrec.rows<@items>>)

// FORM-LABEL: genrec.model @softmax
// FORM: genrec.row_kernel {{.*}} -> tensor<?x1024xbf16, #genrec.rows<@items>> {
// FORM: arith.truncf
// FORM-NEXT: genrec.row_yield %{{.*}} : vector<1024xbf16>
// FORM: %[[R:.*]] = arith.truncf %{{.*}} : vector<1024xf32> to vector<1024xbf16>
// FORM-NEXT: %[[QUERY:.*]] = arith.extf %[[R]] : vector<1024xbf16> to vector<1024xf32>
// FORM: genrec.gather_dot %{{.*}}, %[[QUERY]] : (tensor<?x1024xbf16, #genrec.rows<@items>>, vector<4xi64>, vector<1024xf32>) -> vector<4xf32>
// FORM: %[[ROW:.*]] = genrec.row_gather {{.*}} -> vector<1024xbf16>
// FORM-NEXT: arith.extf %[[ROW]]
// FORM: genrec.gather_sum {{.*}} -> vector<1024xf32>

// A row leaves one vector, rounded, of which all of its terms are multiples: the positive's, too, which is not computed.
// CUDA-LABEL: emitc.func @row_
// CUDA: emitc.func @row_{{.*}}Bf16
// CUDA: call_opaque "kernels::termsOf"{{.*}}template_args = [5, 1, 1024, #emitc.opaque<"true">, #emitc.opaque<"true">]
// CUDA: call_opaque "kernels::roundedFactor"
// CUDA: call_opaque "kernels::widened"
// CUDA: call_opaque "kernels::gatherSoftmax"
// CUDA: call_opaque "kernels::storePack"
// CUDA: arith.mulf
// CUDA-NOT: arith.mulf
// CUDA: call_opaque "kernels::softmaxSum"
// CUDA: call_opaque "kernels::rowTerms"{{.*}}template_args = [5, 1, 1024, #emitc.opaque<"true">, #emitc.opaque<"true">, 0, 0]
// CUDA: call_opaque "kernels::scatterAddOuter"
// CUDA: call_opaque "kernels::rowTerms"{{.*}}template_args = [5, 1, 1024, #emitc.opaque<"true">, #emitc.opaque<"true">, 4, 0]
// CUDA-NOT: "kernels::addRow"
// CUDA: call_opaque "kernels::addMultiple"

// On the CPU they stay floats.
// CPU: call_opaque "kernels::roundedFactor"
// CPU: call_opaque "kernels::widened"
// CPU: call_opaque "kernels::gatherDot"
// CPU-NOT: genrec.cast
!q = tensor<?x1024xf32, #genrec.rows<@user>>
!n = tensor<?xi64, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>
!i = tensor<?x1024xf32, #genrec.rows<@items>>
genrec.model @softmax {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %c = genrec.constant dense<1.0> : tensor<1024xf32>
    %year = genrec.feature %items "year" : (!genrec.domain<@items>) -> tensor<?xf32, #genrec.rows<@items>>
    %rows = genrec.mul %year, %c : (tensor<?xf32, #genrec.rows<@items>>, tensor<1024xf32>) -> !i
    %vectors = genrec.tanh %rows : !i
    %rounded = genrec.round_factor %vectors : !i
    %age = genrec.feature %user "age" : (!genrec.domain<@user>) -> !s
    %x = genrec.mul %age, %c : (!s, tensor<1024xf32>) -> !q
    %positive = genrec.feature %user "positive" : (!genrec.domain<@user>) -> !n
    %query = genrec.round_factor %x : !q
    %loss = genrec.sampled_softmax %query, %positive, %rounded {negatives = 4 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!q, !n, !i) -> !s
    %dq, %di = genrec.sampled_softmax_grad %query, %positive, %rounded, %loss {negatives = 4 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!q, !n, !i, !s) -> (!q, !i)
    genrec.output "dq" %dq : !q
    genrec.output "di" %di : !i
  }
}

// -----

// Rows that are no whole multiples of 8 stay floats, rounded.
// CHECK-LABEL: genrec.model @odd
// CHECK-NOT: bf16
!q = tensor<?x12xf32, #genrec.rows<@user>>
!n = tensor<?xi64, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>
!i = tensor<?x12xf32, #genrec.rows<@items>>
genrec.model @odd {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.program @predict mode predict {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %c = genrec.constant dense<1.0> : tensor<12xf32>
    %rows = genrec.broadcast_rows %c to %items : (tensor<12xf32>, !genrec.domain<@items>) -> !i
    %rounded = genrec.round_factor %rows : !i
    %x = genrec.broadcast_rows %c to %user : (tensor<12xf32>, !genrec.domain<@user>) -> !q
    %one = genrec.constant dense<1> : tensor<i64>
    %positive = genrec.broadcast_rows %one to %user : (tensor<i64>, !genrec.domain<@user>) -> !n
    %query = genrec.round_factor %x : !q
    %loss = genrec.sampled_softmax %query, %positive, %rounded {negatives = 4 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!q, !n, !i) -> !s
    genrec.output "loss" %loss : !s
  }
}
