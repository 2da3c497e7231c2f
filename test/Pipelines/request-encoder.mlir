// The history of a request copied to every impression, encoded and attended to there: after
// sink-fanout nothing but the meeting of candidate and event is left to the pairs, forwards and
// backwards, and the interpreter finds the same losses, gradients and rows after every pass.

// RUN: genrec-opt %s --genrec-graph-pipeline --genrec-verify-each | FileCheck %s
// RUN: genrec-opt %s --genrec-graph-pipeline=sink-fanout=false | FileCheck %s --check-prefix=NAIVE

// CHECK-LABEL: genrec.program @train
// CHECK-NOT: genrec.{{attention|fused_linear|linear|weight_gradient|attention_grad}} {{.*}}rows<@seen>
// CHECK: genrec.attention silu {{.*}}rows<@history>
// CHECK-NOT: genrec.{{attention|fused_linear|linear|weight_gradient|attention_grad}} {{.*}}rows<@seen>
// CHECK: genrec.attention_grad silu {{.*}}rows<@history>
// CHECK-NOT: genrec.{{attention|fused_linear|linear|weight_gradient|attention_grad}} {{.*}}rows<@seen>
// CHECK-LABEL: genrec.program @

// NAIVE-LABEL: genrec.program @train
// NAIVE: genrec.attention silu {{.*}}rows<@seen>
// NAIVE: genrec.attention_grad silu {{.*}}rows<@seen>

!id_seen = tensor<?xi64, #genrec.rows<@seen>>
!id_event = tensor<?xi64, #genrec.rows<@history>>
!id_shown = tensor<?xi64, #genrec.rows<@impression>>
!seen = tensor<?x4xf32, #genrec.rows<@seen>>
!shown = tensor<?x4xf32, #genrec.rows<@impression>>
!one_seen = tensor<?xf32, #genrec.rows<@seen>>
!one_shown = tensor<?xf32, #genrec.rows<@impression>>

genrec.model @Encoder {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impression"}
  genrec.domain @history parent @request {column = "history"}
  genrec.domain @seen parent @impression kind derived
  genrec.table @item dim 4 {init = #genrec.init<truncated_normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @position.weight : tensor<6x4xf32> {init = #genrec.init<normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @block.uvqk : tensor<4x16xf32> {init = #genrec.init<normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @block.out_weight : tensor<4x4xf32> {init = #genrec.init<xavier_uniform, 1.000000e+00 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @block.out_bias : tensor<4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.key.weight : tensor<4x4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.key.bias : tensor<4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.values.weight : tensor<4x4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.values.bias : tensor<4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.query.weight : tensor<4x4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @attention.query.bias : tensor<4xf32> {init = #genrec.init<uniform, 5.000000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @head.weight : tensor<12x1xf32> {init = #genrec.init<uniform, 0.28867513459481292 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @head.bias : tensor<1xf32> {init = #genrec.init<uniform, 0.28867513459481292 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.program @main {
    %0:3 = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@history>
    %1 = genrec.pair_domains %0#1, %0#2 : (!genrec.domain<@impression>, !genrec.domain<@history>) -> !genrec.domain<@seen>
    %2 = genrec.feature %0#2 "history.item" : (!genrec.domain<@history>) -> !id_event
    %3 = genrec.mod %2 {divisor = 9 : i64} : (!id_event) -> !id_event
    %4 = genrec.pair_rows %3 into %1 : (!id_event, !genrec.domain<@seen>) -> !id_seen
    %5 = genrec.lookup %4 in @item : (!id_seen) -> !seen
    %6 = genrec.position %1 {from_end} : (!genrec.domain<@seen>) -> !id_seen
    %7 = genrec.param @position.weight : tensor<6x4xf32>
    %8 = genrec.embedding %6 of %7 : (!id_seen, tensor<6x4xf32>) -> !seen
    %9 = genrec.add %5, %8 : (!seen, !seen) -> !seen
    %10 = genrec.param @block.uvqk : tensor<4x16xf32>
    %11 = genrec.param @block.out_weight : tensor<4x4xf32>
    %12 = genrec.param @block.out_bias : tensor<4xf32>
    %13 = genrec.hstu_block silu %9, %10, %11, %12 {causal, dv = 4 : i64, eps = 9.9999999999999995E-7 : f64, fixed_length = 6.000000e+00 : f64, heads = 1 : i64, qk = 4 : i64, stream = 3328 : i64} : (!seen, tensor<4x16xf32>, tensor<4x4xf32>, tensor<4xf32>) -> !seen
    %14 = genrec.feature %0#1 "impression.item" : (!genrec.domain<@impression>) -> !id_shown
    %15 = genrec.mod %14 {divisor = 9 : i64} : (!id_shown) -> !id_shown
    %16 = genrec.lookup %15 in @item : (!id_shown) -> !shown
    %17 = genrec.param @attention.key.weight : tensor<4x4xf32>
    %18 = genrec.param @attention.key.bias : tensor<4xf32>
    %19 = genrec.linear %13, %17 bias %18 : (!seen, tensor<4x4xf32>, tensor<4xf32>) -> !seen
    %20 = genrec.param @attention.values.weight : tensor<4x4xf32>
    %21 = genrec.param @attention.values.bias : tensor<4xf32>
    %22 = genrec.linear %13, %20 bias %21 : (!seen, tensor<4x4xf32>, tensor<4xf32>) -> !seen
    %23 = genrec.param @attention.query.weight : tensor<4x4xf32>
    %24 = genrec.param @attention.query.bias : tensor<4xf32>
    %25 = genrec.linear %16, %23 bias %24 : (!shown, tensor<4x4xf32>, tensor<4xf32>) -> !shown
    %26 = genrec.fanout %25 to %1 : (!shown, !genrec.domain<@seen>) -> !seen
    %27 = genrec.mul %26, %19 : (!seen, !seen) -> !seen
    %28 = genrec.row_reduce sum %27 : (!seen) -> !one_seen
    %29 = genrec.constant dense<5.000000e-01> : tensor<f32>
    %30 = genrec.mul %28, %29 : (!one_seen, tensor<f32>) -> !one_seen
    %31 = genrec.pool max %30 to %0#1 : (!one_seen, !genrec.domain<@impression>) -> !one_shown
    %32 = genrec.fanout %31 to %1 : (!one_shown, !genrec.domain<@seen>) -> !one_seen
    %33 = genrec.sub %30, %32 : (!one_seen, !one_seen) -> !one_seen
    %34 = genrec.exp %33 : !one_seen
    %35 = genrec.mul %22, %34 : (!seen, !one_seen) -> !seen
    %36 = genrec.pool sum %35 to %0#1 : (!seen, !genrec.domain<@impression>) -> !shown
    %37 = genrec.pool sum %34 to %0#1 : (!one_seen, !genrec.domain<@impression>) -> !one_shown
    %38 = genrec.constant dense<9.99999997E-7> : tensor<f32>
    %39 = genrec.maximum %37, %38 : (!one_shown, tensor<f32>) -> !one_shown
    %40 = genrec.div %36, %39 : (!shown, !one_shown) -> !shown
    %41 = genrec.pool mean %13 to %0#1 : (!seen, !genrec.domain<@impression>) -> !shown
    %42 = genrec.concat_columns %16, %40, %41 : (!shown, !shown, !shown) -> tensor<?x12xf32, #genrec.rows<@impression>>
    %43 = genrec.param @head.weight : tensor<12x1xf32>
    %44 = genrec.param @head.bias : tensor<1xf32>
    %45 = genrec.linear %42, %43 bias %44 : (tensor<?x12xf32, #genrec.rows<@impression>>, tensor<12x1xf32>, tensor<1xf32>) -> tensor<?x1xf32, #genrec.rows<@impression>>
    %46 = genrec.row_reduce sum %45 : (tensor<?x1xf32, #genrec.rows<@impression>>) -> !one_shown
    %47 = genrec.feature %0#1 "impression.label" : (!genrec.domain<@impression>) -> !one_shown
    %48 = genrec.bce_with_logits %46, %47 : (!one_shown, !one_shown) -> !one_shown
    genrec.loss "click" %48 : !one_shown
    %49 = genrec.sigmoid %46 : !one_shown
    genrec.output "probability" %49 : !one_shown
  }
}
