// RUN: genrec-opt %s --genrec-graph-pipeline=target=cuda --genrec-verify-each | FileCheck %s
// RUN: genrec-opt %s --genrec-graph-pipeline --genrec-verify-each | FileCheck %s --check-prefix=CPU
// RUN: genrec-opt %s --genrec-graph-pipeline="target=cuda opt=0" --genrec-verify-each >/dev/null

// An HSTU block that is trained: the interpreter compares values before and after every pass. On a device all factors
// but weights are rounded by the kernels that make them; on the CPU by the calls.
// CHECK-LABEL: genrec.program @train
// CHECK: genrec.linear {{.*}} {bf16{{.*}} : (tensor<?x32xbf16, {{.*}} -> tensor<?x128xf32,
// CHECK: genrec.attention {{.*}} {bf16{{.*}} : (tensor<?x32xbf16, {{.*}}, tensor<?x32xbf16, {{.*}}, tensor<?x32xbf16, {{.*}} -> tensor<?x32xf32,
// CHECK: genrec.linear {{.*}} {bf16{{.*}} : (tensor<?x32xbf16,
// The gradient of u is rounded by the kernel that has its rows, before the gradients of q, k and v are there, which are
// rounded and joined with it by what makes them.
// CHECK: genrec.row_kernel {{.*}} -> (tensor<?x32xbf16, #genrec.rows<@list>>, tensor<?x32xbf16, #genrec.rows<@list>>, tensor<?x32xbf16, #genrec.rows<@list>>) {
// CHECK: genrec.weight_gradient {{.*}} : (tensor<?x32xbf16, {{.*}}, tensor<?x32xbf16, {{.*}} -> tensor<32x32xf32>
// CHECK: %[[DX:.*]] = genrec.fused_attention_grad {{.*}} columns = array<i64: 64, 96, 32>{{.*}} -> tensor<?x128xbf16, #genrec.rows<@list>>
// CHECK-NOT: genrec.row_kernel
// CHECK: genrec.linear %[[DX]], {{.*}} transposed} : (tensor<?x128xbf16,
// CHECK: genrec.weight_gradient {{.*}} : (tensor<?x32xbf16, {{.*}}, tensor<?x128xbf16, {{.*}} -> tensor<32x128xf32>

// CPU-LABEL: genrec.program @train
// CPU-NOT: xbf16
// CPU: genrec.fused_linear {{.*}} activation silu {bf16
!l = tensor<?x32xf32, #genrec.rows<@list>>
genrec.model @block {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @v : tensor<32xf32> {init = #genrec.init<uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @uvqk : tensor<32x128xf32> {init = #genrec.init<uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @m : tensor<32x32xf32> {init = #genrec.init<uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main mode all {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> tensor<?xf32, #genrec.rows<@list>>
    %v = genrec.param @v : tensor<32xf32>
    %uvqk = genrec.param @uvqk : tensor<32x128xf32>
    %m = genrec.param @m : tensor<32x32xf32>
    %x = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@list>>, tensor<32xf32>) -> !l
    %y = genrec.hstu_block silu %x, %uvqk, %m, %v {bf16, heads = 2 : i64, qk = 16 : i64, dv = 16 : i64, causal, fixed_length = 8.0 : f64, eps = 1.0e-6 : f64}
        : (!l, tensor<32x128xf32>, tensor<32x32xf32>, tensor<32xf32>) -> !l
    %loss = genrec.row_reduce sum %y : (!l) -> tensor<?xf32, #genrec.rows<@list>>
    genrec.loss "l" %loss : tensor<?xf32, #genrec.rows<@list>>
  }
}
