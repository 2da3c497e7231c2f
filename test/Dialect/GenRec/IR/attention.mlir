// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

!q = tensor<?x8xf32, #genrec.rows<@event>>
!v = tensor<?x12xf32, #genrec.rows<@event>>
!time = tensor<?xi64, #genrec.rows<@event>>

// CHECK-LABEL: func @attention
func.func @attention(%q: !q, %v: !v, %p: tensor<5xf32>, %t: tensor<128xf32>, %time: !time) {
  // Options that have their default are not printed.
  // CHECK: genrec.attention silu %{{.*}}, %{{.*}}, %{{.*}} {heads = 2 : i64} :
  %0 = genrec.attention silu %q, %q, %v {heads = 2 : i64, window = 0 : i64, scale = 1.0 : f64} : (!q, !q, !v) -> !v
  // CHECK: genrec.attention softmax %{{.*}}, %{{.*}}, %{{.*}} position_bias %{{.*}} time_bias %{{.*}} time %{{.*}} {causal, dropout = 1.000000e-01 : f64, heads = 4 : i64, next_event_time, scale = 5.000000e-01 : f64, stream = 7 : i64, window = 3 : i64}
  %1 = genrec.attention softmax %q, %q, %v position_bias %p time_bias %t time %time
      {heads = 4 : i64, causal, window = 3 : i64, scale = 0.5 : f64, next_event_time, dropout = 0.1 : f64, stream = 7 : i64}
      : (!q, !q, !v, tensor<5xf32>, tensor<128xf32>, !time) -> !v
  return
}

// CHECK-LABEL: func @gradients
func.func @gradients(%q: !q, %v: !v, %p: tensor<5xf32>, %t: tensor<64xf32>, %time: !time) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = genrec.attention_grad silu {{.*}} out %{{.*}}, %{{.*}} {heads = 1 : i64}
  // CHECK-SAME: -> (tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x12xf32, #genrec.rows<@event>>){{$}}
  %0:3 = genrec.attention_grad silu %q, %q, %v out %v, %v {heads = 1 : i64} : (!q, !q, !v, !v, !v) -> (!q, !q, !v)
  // CHECK: genrec.attention_grad
  // CHECK-SAME: -> ({{[^)]*}}) time_bias tensor<64xf32>{{$}}
  %1:4 = genrec.attention_grad silu %q, %q, %v time_bias %t time %time out %v, %v {heads = 1 : i64}
      : (!q, !q, !v, tensor<64xf32>, !time, !v, !v) -> (!q, !q, !v) time_bias tensor<64xf32>
  // CHECK: genrec.attention_grad
  // CHECK-SAME: -> ({{[^)]*}}) position_bias tensor<5xf32> time_bias tensor<64xf32>{{$}}
  %2:5 = genrec.attention_grad silu %q, %q, %v position_bias %p time_bias %t time %time out %v, %v {heads = 1 : i64}
      : (!q, !q, !v, tensor<5xf32>, tensor<64xf32>, !time, !v, !v) -> (!q, !q, !v) position_bias tensor<5xf32> time_bias tensor<64xf32>
  return
}

// CHECK-LABEL: func @block
func.func @block(%x: !q, %uvqk: tensor<8x32xf32>, %weight: tensor<12x8xf32>, %bias: tensor<8xf32>,
                 %t: tensor<64xf32>, %time: !time) {
  // CHECK: genrec.hstu_block silu %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} time_bias %{{.*}} time %{{.*}} {dv = 6 : i64, eps = {{9.9+[0-9]*E-7}} : f64, heads = 2 : i64, qk = 2 : i64}
  %0 = genrec.hstu_block silu %x, %uvqk, %weight, %bias time_bias %t time %time
      {heads = 2 : i64, qk = 2 : i64, dv = 6 : i64, eps = 1.0e-6 : f64}
      : (!q, tensor<8x32xf32>, tensor<12x8xf32>, tensor<8xf32>, tensor<64xf32>, !time) -> !q
  return
}
