// RUN: genrec-opt %s --genrec-mixed-precision --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-mixed-precision --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-mixed-precision --genrec-decompose-blocks --genrec-differentiate --split-input-file | FileCheck %s --check-prefix=STEP
// RUN: genrec-opt %s --genrec-decompose-blocks --genrec-differentiate --split-input-file | FileCheck %s --check-prefix=OWN

// COUNT: round-product: 5
// COUNT: genrec-mixed-precision products: 5

!u = tensor<?x4xf32, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@user>>
!w = tensor<4x4xf32>

// Every product, blocks included, and nothing else. One that has the attribute is not counted again.
// CHECK-LABEL: genrec.model @whole
// CHECK-SAME: genrec.decisions = ["mixed-precision: the factors of 4 products are rounded to bfloat16: asked for the whole model"]
// CHECK: %[[X:.*]] = genrec.mul %{{.*}} : (
// CHECK: genrec.linear %[[X]], %{{.*}} {bf16} :
// CHECK: genrec.cross_layer {{.*}} {bf16} :
// CHECK: genrec.dot_interaction {{.*}} {bf16, count = 2 : i64} :
// CHECK: genrec.linear {{.*}} {bf16} :
// CHECK: genrec.linear {{.*}} {bf16} :
// CHECK: genrec.loss

// Products of a block and of gradients get it from what they are made of.
// STEP-LABEL: genrec.model @whole
// STEP-COUNT-4: genrec.linear {{.*}} {bf16}
// STEP-DAG: genrec.weight_gradient {{.*}} {bf16}
// STEP-DAG: genrec.dot_interaction_grad {{.*}} {bf16, count = 2 : i64}
// STEP-DAG: genrec.linear {{.*}} {bf16, transposed}

// Without the pass, only the gradients of the layer that a front end marked.
// OWN-LABEL: genrec.model @whole
// OWN-COUNT-3: genrec.linear {{.*}} :
// OWN-COUNT-1: genrec.linear {{.*}} {bf16} :
// OWN: genrec.linear {{.*}} {bf16, transposed} :
// OWN: genrec.weight_gradient {{.*}} {bf16} :
// OWN-NOT: bf16
genrec.model @whole {
  genrec.domain @user
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @m : !w {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @one : tensor<4x1xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> !s
    %v = genrec.param @v : tensor<4xf32>
    %m = genrec.param @m : !w
    %one = genrec.param @one : tensor<4x1xf32>
    %x = genrec.mul %f, %v : (!s, tensor<4xf32>) -> !u
    %a = genrec.linear %x, %m : (!u, !w) -> !u
    %b = genrec.cross_layer %a, %a, %m, %v : (!u, !u, !w, tensor<4xf32>) -> !u
    %p = genrec.dot_interaction %b {count = 2 : i64} : (!u) -> tensor<?x1xf32, #genrec.rows<@user>>
    %y = genrec.linear %b, %one : (!u, tensor<4x1xf32>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %z = genrec.linear %a, %one {bf16} : (!u, tensor<4x1xf32>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %yz = genrec.add %y, %z : (tensor<?x1xf32, #genrec.rows<@user>>, tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %all = genrec.add %yz, %p : (tensor<?x1xf32, #genrec.rows<@user>>, tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %loss = genrec.row_reduce sum %all : (tensor<?x1xf32, #genrec.rows<@user>>) -> !s
    genrec.loss "l" %loss : !s
  }
}

// -----

!l = tensor<?x4xf32, #genrec.rows<@list>>

// A block hands it to its two layers and its attention.
// STEP-LABEL: genrec.model @block
// STEP: genrec.linear {{.*}} {bf16}
// STEP: genrec.attention silu {{.*}} {bf16,
// STEP: genrec.linear {{.*}} {bf16}
// STEP: genrec.attention_grad silu {{.*}} {bf16,
genrec.model @block {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @v : tensor<4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @uvqk : tensor<4x16xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @m : tensor<4x4xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main mode train {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> tensor<?xf32, #genrec.rows<@list>>
    %v = genrec.param @v : tensor<4xf32>
    %uvqk = genrec.param @uvqk : tensor<4x16xf32>
    %m = genrec.param @m : tensor<4x4xf32>
    %x = genrec.mul %f, %v : (tensor<?xf32, #genrec.rows<@list>>, tensor<4xf32>) -> !l
    %y = genrec.hstu_block silu %x, %uvqk, %m, %v {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, causal, fixed_length = 8.0 : f64, eps = 1.0e-6 : f64}
        : (!l, tensor<4x16xf32>, tensor<4x4xf32>, tensor<4xf32>) -> !l
    %loss = genrec.row_reduce sum %y : (!l) -> tensor<?xf32, #genrec.rows<@list>>
    genrec.loss "l" %loss : tensor<?xf32, #genrec.rows<@list>>
  }
}
