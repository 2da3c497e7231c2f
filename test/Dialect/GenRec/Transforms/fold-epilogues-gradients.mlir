// RUN: genrec-opt %s --genrec-fold-epilogues --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-fold-epilogues --genrec-pass-statistics --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: genrec-fold-epilogues gradients: 1

// Gradients of q, k and v are multiplied by the derivative of silu at columns of a product, rounded, and joined behind
// what is there before: by the op that makes them. What only the factors were for is gone.

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @folded
// CHECK: %[[H:.*]] = genrec.cast
// CHECK-NEXT: %[[X:.*]] = genrec.linear
// CHECK-NEXT: %[[OUT:.*]] = genrec.attention
// CHECK-NEXT: %[[DX:.*]], %[[DB:.*]] = genrec.fused_attention_grad silu %[[H]], %[[H]], %[[H]] position_bias %[[B:.*]] out %[[OUT]], %[[H]] of %[[X]] rest %[[H]] {bf16, causal, columns = array<i64: 16, 24, 8>, genrec.stage = #genrec<stage compute>, heads = 1 : i64} :
// CHECK-NEXT: genrec.weight_gradient %[[H]], %[[DX]]
// CHECK-NEXT: genrec.output
// CHECK-NEXT: genrec.mul %[[B]], %[[DB]]
genrec.model @folded {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rv, %rq, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// Left alone: a gradient that another op reads as well,

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @read
// CHECK-NOT: fused_attention_grad
genrec.model @read {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rv, %rq, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    genrec.output "dq" %dq : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// or what it was rounded to;

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @read_rounded
// CHECK-NOT: fused_attention_grad
genrec.model @read_rounded {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rv, %rq, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %e = genrec.weight_gradient %h, %rk {bf16} : (!h, !h) -> tensor<8x8xf32>
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// parts that stand elsewhere than their columns;

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @swapped
// CHECK-NOT: fused_attention_grad
genrec.model @swapped {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rq, %rv, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// one part behind them;

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @behind
// CHECK-NOT: fused_attention_grad
genrec.model @behind {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %rv, %rq, %rk, %h : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// columns of what row kernels compute;

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @computed
// CHECK-NOT: fused_attention_grad
genrec.model @computed {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<1.0> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %p = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %x = genrec.exp %p : !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rv, %rq, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}

// -----

// another function of these columns than the derivative of silu.

!r = tensor<?x8xf32, #genrec.rows<@list>>
!h = tensor<?x8xbf16, #genrec.rows<@list>>
!x = tensor<?x32xf32, #genrec.rows<@list>>

// CHECK-LABEL: genrec.model @half
// CHECK-NOT: fused_attention_grad
genrec.model @half {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.parameter @w : tensor<8x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<21xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @predict mode predict {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %f = genrec.feature %list "list.f" : (!genrec.domain<@list>) -> !r
    %w = genrec.param @w : tensor<8x32xf32>
    %b = genrec.param @b : tensor<21xf32>
    %one = genrec.constant dense<0.5> : tensor<f32>
    %h = genrec.cast %f : (!r) -> !h
    %x = genrec.linear %h, %w {bf16} : (!h, tensor<8x32xf32>) -> !x
    %xv = genrec.slice_columns %x from 8 : (!x) -> !r
    %xq = genrec.slice_columns %x from 16 : (!x) -> !r
    %xk = genrec.slice_columns %x from 24 : (!x) -> !r
    %sq0 = genrec.sigmoid %xq : !r
    %sq1 = genrec.sub %one, %sq0 : (tensor<f32>, !r) -> !r
    %sq2 = genrec.mul %xq, %sq1 : (!r, !r) -> !r
    %sq3 = genrec.add %one, %sq2 : (tensor<f32>, !r) -> !r
    %sq = genrec.mul %sq0, %sq3 : (!r, !r) -> !r
    %sk0 = genrec.sigmoid %xk : !r
    %sk1 = genrec.sub %one, %sk0 : (tensor<f32>, !r) -> !r
    %sk2 = genrec.mul %xk, %sk1 : (!r, !r) -> !r
    %sk3 = genrec.add %one, %sk2 : (tensor<f32>, !r) -> !r
    %sk = genrec.mul %sk0, %sk3 : (!r, !r) -> !r
    %sv0 = genrec.sigmoid %xv : !r
    %sv1 = genrec.sub %one, %sv0 : (tensor<f32>, !r) -> !r
    %sv2 = genrec.mul %xv, %sv1 : (!r, !r) -> !r
    %sv3 = genrec.add %one, %sv2 : (tensor<f32>, !r) -> !r
    %sv = genrec.mul %sv0, %sv3 : (!r, !r) -> !r
    %out = genrec.attention silu %h, %h, %h position_bias %b {bf16, heads = 1 : i64, causal} : (!h, !h, !h, tensor<21xf32>) -> !r
    %dq, %dk, %dv, %db = genrec.attention_grad silu %h, %h, %h position_bias %b out %out, %h {bf16, heads = 1 : i64, causal, genrec.stage = #genrec<stage compute>}
        : (!h, !h, !h, tensor<21xf32>, !r, !h) -> (!r, !r, !r) position_bias tensor<21xf32>
    %gq = genrec.mul %dq, %sq : (!r, !r) -> !r
    %gk = genrec.mul %dk, %sk : (!r, !r) -> !r
    %gv = genrec.mul %sv, %dv : (!r, !r) -> !r
    %rq = genrec.cast %gq : (!r) -> !h
    %rk = genrec.cast %gk : (!r) -> !h
    %rv = genrec.cast %gv : (!r) -> !h
    %dx = genrec.concat_columns %h, %rv, %rq, %rk : (!h, !h, !h, !h) -> tensor<?x32xbf16, #genrec.rows<@list>>
    %dw = genrec.weight_gradient %h, %dx {bf16} : (!h, tensor<?x32xbf16, #genrec.rows<@list>>) -> tensor<8x32xf32>
    genrec.output "o" %out : !r
    %keep = genrec.mul %b, %db : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  }
}
