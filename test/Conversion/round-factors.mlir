// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors))' | FileCheck %s
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors,genrec-fold-epilogues,genrec-form-row-kernels))' | FileCheck %s --check-prefix=FORM
// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-round-factors,genrec-fold-epilogues,genrec-form-row-kernels),genrec-attach-target{target=cuda},genrec.model(genrec-plan-memory),genrec-outline-kernels,genrec-lower-to-runtime)' | FileCheck %s --check-prefix=CALLS

!x = tensor<?x32xf32, #genrec.rows<@event>>
!wide = tensor<?x128xf32, #genrec.rows<@event>>

// A value is rounded once for all products that read it. Neither a product without bf16, nor one of sizes that no
// library takes, nor one of rows that are no whole multiples of 16 bytes reads a rounded factor.
// CHECK-LABEL: genrec.program @train
// CHECK: %[[X:.*]] = genrec.tanh
// CHECK-NEXT: %[[R:.*]] = genrec.cast %[[X]] : (tensor<?x32xf32, #genrec.rows<@event>>) -> tensor<?x32xbf16, #genrec.rows<@event>>
// CHECK: %[[WIDE:.*]] = genrec.linear %[[R]], %{{.*}} {bf16} : (tensor<?x32xbf16, {{.*}} -> tensor<?x128xf32,
// An activation that slices alone read is applied to slices, by each row op that reads one: a kernel behind another
// product computes it again of the product's rows.
// CHECK-NOT: genrec.silu %[[WIDE]]
// CHECK: %[[UPPER:.*]] = genrec.slice_columns %[[WIDE]] from 0
// CHECK: %[[SQ:.*]] = genrec.slice_columns %[[WIDE]] from 32
// CHECK-NEXT: %[[Q:.*]] = genrec.silu %[[SQ]]
// CHECK-NEXT: %[[RQ:.*]] = genrec.cast %[[Q]]
// CHECK: %[[RK:.*]] = genrec.cast
// CHECK: %[[RV:.*]] = genrec.cast
// CHECK: %[[A:.*]] = genrec.attention silu %[[RQ]], %[[RK]], %[[RV]] {bf16, {{.*}}xbf16, {{.*}} -> tensor<?x32xf32,
// CHECK: %[[U:.*]] = genrec.silu %[[UPPER]]
// CHECK-NEXT: %[[G:.*]] = genrec.mul %[[A]], %[[U]]
// CHECK: %[[RG:.*]] = genrec.cast %[[G]] :
// CHECK: genrec.attention_grad silu %[[RQ]], %[[RK]], %[[RV]] out %[[A]], %[[RG]] {bf16
// CHECK: genrec.weight_gradient %[[R]], %[[RG]] {bf16}
// CHECK: genrec.linear %[[X]], %{{[^ ]*}} : (tensor<?x32xf32,
// CHECK: genrec.linear %[[X]], %{{[^ ]*}} {bf16} : (tensor<?x32xf32,
// CHECK: genrec.linear %{{[^ ]*}}, %{{[^ ]*}} {bf16} : (tensor<?x36xf32,
// CHECK: %[[AGAIN:.*]] = genrec.silu %[[UPPER]]
// CHECK-NEXT: genrec.mul %{{.*}}, %[[AGAIN]]

// The kernel that makes a value makes its factor; what products alone read is stored rounded alone.
// FORM-LABEL: genrec.program @train
// FORM: genrec.row_kernel {{.*}} -> (tensor<?x32xf32, #genrec.rows<@event>>, tensor<?x32xbf16, #genrec.rows<@event>>)
// FORM: %[[T:.*]] = math.tanh
// FORM-NEXT: %[[B:.*]] = arith.truncf %[[T]] : vector<32xf32> to vector<32xbf16>
// FORM-NEXT: genrec.row_yield %[[T]], %[[B]]
// FORM: genrec.linear %{{.*}} {bf16} : (tensor<?x32xbf16,
// FORM: genrec.row_kernel {{.*}} -> (tensor<?x32xbf16, #genrec.rows<@event>>, tensor<?x32xbf16, #genrec.rows<@event>>, tensor<?x32xbf16, #genrec.rows<@event>>)
// FORM: genrec.row_kernel {{.*}} -> tensor<?x32xbf16, #genrec.rows<@event>> {
// FORM: genrec.row_kernel {{.*}} -> tensor<?x168xf32, #genrec.rows<@event>> {
// FORM: math.exp

// The kernel of a rounded value writes zeros behind its last row, and no other launch does.
// CALLS: emitc.func @row_event_tanh_cast(
// CALLS-NOT: clearRowsBehind
// CALLS: call_opaque "kernels::clearRowsBehind"(%{{[^ ]*}}, %arg3, %{{[^ ]*}}) : (!emitc.ptr<!emitc.opaque<"genrec_domain">>, !emitc.ptr<!emitc.opaque<"kernels::Bf16">>, i64)
// CALLS-NOT: clearRowsBehind
// CALLS: call_opaque "kernels::roundedFactor"(%{{.*}}) : (f32) -> !emitc.opaque<"kernels::Bf16">
// CALLS: emitc.func @train_compute
// CALLS-NOT: clearRowsBehind
// CALLS: call_opaque "kernels::launch"
// CALLS: call_opaque "kernels::linear"
// CALLS: "kernels::RoundedFactors"
// CALLS: call_opaque "kernels::attention"
genrec.model @layer {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.parameter @w : tensor<32x128xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @small : tensor<32x8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @odd : tensor<36x32xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %e = genrec.feature %event "e" : (!genrec.domain<@event>) -> tensor<?x36xf32, #genrec.rows<@event>>
    %w = genrec.param @w : tensor<32x128xf32>
    %small = genrec.param @small : tensor<32x8xf32>
    %odd = genrec.param @odd : tensor<36x32xf32>
    %from = genrec.slice_columns %e from 4 : (tensor<?x36xf32, #genrec.rows<@event>>) -> !x
    %x = genrec.tanh %from : !x
    %pre = genrec.linear %x, %w {bf16} : (!x, tensor<32x128xf32>) -> !wide
    %y = genrec.silu %pre : !wide
    %u = genrec.slice_columns %y from 0 : (!wide) -> !x
    %q = genrec.slice_columns %y from 32 : (!wide) -> !x
    %k = genrec.slice_columns %y from 64 : (!wide) -> !x
    %v = genrec.slice_columns %y from 96 : (!wide) -> !x
    %a = genrec.attention silu %q, %k, %v {bf16, causal, heads = 2 : i64, fixed_length = 8.0 : f64} : (!x, !x, !x) -> !x
    %g = genrec.mul %a, %u : (!x, !x) -> !x
    %dq, %dk, %dv = genrec.attention_grad silu %q, %k, %v out %a, %g {bf16, causal, heads = 2 : i64, fixed_length = 8.0 : f64} : (!x, !x, !x, !x, !x) -> (!x, !x, !x)
    %dw = genrec.weight_gradient %x, %g {bf16} : (!x, !x) -> tensor<32x32xf32>
    %plain = genrec.linear %x, %dw : (!x, tensor<32x32xf32>) -> !x
    %tiles = genrec.linear %x, %small {bf16} : (!x, tensor<32x8xf32>) -> tensor<?x8xf32, #genrec.rows<@event>>
    %uneven = genrec.linear %e, %odd {bf16} : (tensor<?x36xf32, #genrec.rows<@event>>, tensor<36x32xf32>) -> !x
    %late = genrec.mul %plain, %u : (!x, !x) -> !x
    %s = genrec.concat_columns %dq, %dk, %dv, %late, %tiles, %uneven : (!x, !x, !x, !x, tensor<?x8xf32, #genrec.rows<@event>>, !x) -> tensor<?x168xf32, #genrec.rows<@event>>
    genrec.output "s" %s : tensor<?x168xf32, #genrec.rows<@event>>
  }
}
