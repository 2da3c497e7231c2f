// DIN's activation unit over pairs of impressions and events: three quarters of its first layer are
// products of one half alone, forwards and backwards; the interpreter agrees after every pass.

// RUN: genrec-opt %s --genrec-graph-pipeline --genrec-verify-each | FileCheck %s

// CHECK-LABEL: genrec.program @train
// CHECK: %[[W:.*]]:4 = genrec.split_shared
// CHECK: genrec.linear {{.*}}%[[W]]#1 {{.*}}(tensor<?x8xf32, #genrec.rows<@history>>
// CHECK: genrec.linear {{.*}}%[[W]]#2 {{.*}}(tensor<?x8xf32, #genrec.rows<@impression>>
// CHECK: genrec.fused_linear {{.*}}%[[W]]#0 bias {{.*}}(tensor<?x8xf32, #genrec.rows<@impression>>
// CHECK: genrec.linear {{.*}}%[[W]]#2 {{.*}}(tensor<?x8xf32, #genrec.rows<@history>>
// CHECK: genrec.linear {{.*}}%[[W]]#3 {{.*}}(tensor<?x8xf32, #genrec.rows<@seen>>
// CHECK-COUNT-3: genrec.weight_gradient {{.*}}(tensor<?x8xf32, #genrec.rows<@{{history|impression}}>>
// CHECK-LABEL: genrec.program @

!one_seen = tensor<?xf32, #genrec.rows<@seen>>
!row_seen = tensor<?x8xf32, #genrec.rows<@seen>>
!one_shown = tensor<?xf32, #genrec.rows<@impression>>
!id_shown = tensor<?xi64, #genrec.rows<@impression>>
!row_shown = tensor<?x8xf32, #genrec.rows<@impression>>
!id_event = tensor<?xi64, #genrec.rows<@history>>
!row_event = tensor<?x8xf32, #genrec.rows<@history>>

genrec.model @M {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impression"}
  genrec.domain @history parent @request {column = "history"}
  genrec.domain @seen parent @impression kind derived
  genrec.table @item dim 8 {init = #genrec.init<truncated_normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @din.weigh.layers.0.weight : tensor<32x5xf32> {init = #genrec.init<uniform, 0.17677669529663687 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @din.weigh.layers.0.bias : tensor<5xf32> {init = #genrec.init<uniform, 0.17677669529663687 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @din.weigh.layers.1.weight : tensor<5x1xf32> {init = #genrec.init<uniform, 0.44721359549995793 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @din.weigh.layers.1.bias : tensor<1xf32> {init = #genrec.init<uniform, 0.44721359549995793 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @head.weight : tensor<16x1xf32> {init = #genrec.init<uniform, 2.500000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.parameter @head.bias : tensor<1xf32> {init = #genrec.init<uniform, 2.500000e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
  genrec.program @main {
    %0:3 = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@history>
    %1 = genrec.feature %0#1 "impression.item" : (!genrec.domain<@impression>) -> !id_shown
    %2 = genrec.mod %1 {divisor = 9 : i64} : (!id_shown) -> !id_shown
    %3 = genrec.lookup %2 in @item : (!id_shown) -> !row_shown
    %4 = genrec.feature %0#2 "history.item" : (!genrec.domain<@history>) -> !id_event
    %5 = genrec.mod %4 {divisor = 9 : i64} : (!id_event) -> !id_event
    %6 = genrec.lookup %5 in @item : (!id_event) -> !row_event
    %7 = genrec.pair_domains %0#1, %0#2 : (!genrec.domain<@impression>, !genrec.domain<@history>) -> !genrec.domain<@seen>
    %8 = genrec.fanout %3 to %7 : (!row_shown, !genrec.domain<@seen>) -> !row_seen
    %9 = genrec.pair_rows %6 into %7 : (!row_event, !genrec.domain<@seen>) -> !row_seen
    %10 = genrec.sub %8, %9 : (!row_seen, !row_seen) -> !row_seen
    %11 = genrec.mul %8, %9 : (!row_seen, !row_seen) -> !row_seen
    %12 = genrec.concat_columns %8, %9, %10, %11 : (!row_seen, !row_seen, !row_seen, !row_seen) -> tensor<?x32xf32, #genrec.rows<@seen>>
    %13 = genrec.param @din.weigh.layers.0.weight : tensor<32x5xf32>
    %14 = genrec.param @din.weigh.layers.0.bias : tensor<5xf32>
    %15 = genrec.linear %12, %13 bias %14 : (tensor<?x32xf32, #genrec.rows<@seen>>, tensor<32x5xf32>, tensor<5xf32>) -> tensor<?x5xf32, #genrec.rows<@seen>>
    %16 = genrec.sigmoid %15 : tensor<?x5xf32, #genrec.rows<@seen>>
    %17 = genrec.param @din.weigh.layers.1.weight : tensor<5x1xf32>
    %18 = genrec.param @din.weigh.layers.1.bias : tensor<1xf32>
    %19 = genrec.linear %16, %17 bias %18 : (tensor<?x5xf32, #genrec.rows<@seen>>, tensor<5x1xf32>, tensor<1xf32>) -> tensor<?x1xf32, #genrec.rows<@seen>>
    %20 = genrec.row_reduce sum %19 : (tensor<?x1xf32, #genrec.rows<@seen>>) -> !one_seen
    %21 = genrec.pool max %20 to %0#1 : (!one_seen, !genrec.domain<@impression>) -> !one_shown
    %22 = genrec.fanout %21 to %7 : (!one_shown, !genrec.domain<@seen>) -> !one_seen
    %23 = genrec.sub %20, %22 : (!one_seen, !one_seen) -> !one_seen
    %24 = genrec.exp %23 : !one_seen
    %25 = genrec.pool sum %24 to %0#1 : (!one_seen, !genrec.domain<@impression>) -> !one_shown
    %26 = genrec.fanout %25 to %7 : (!one_shown, !genrec.domain<@seen>) -> !one_seen
    %27 = genrec.div %24, %26 : (!one_seen, !one_seen) -> !one_seen
    %28 = genrec.mul %9, %27 : (!row_seen, !one_seen) -> !row_seen
    %29 = genrec.pool sum %28 to %0#1 : (!row_seen, !genrec.domain<@impression>) -> !row_shown
    %30 = genrec.concat_columns %3, %29 : (!row_shown, !row_shown) -> tensor<?x16xf32, #genrec.rows<@impression>>
    %31 = genrec.param @head.weight : tensor<16x1xf32>
    %32 = genrec.param @head.bias : tensor<1xf32>
    %33 = genrec.linear %30, %31 bias %32 : (tensor<?x16xf32, #genrec.rows<@impression>>, tensor<16x1xf32>, tensor<1xf32>) -> tensor<?x1xf32, #genrec.rows<@impression>>
    %34 = genrec.row_reduce sum %33 : (tensor<?x1xf32, #genrec.rows<@impression>>) -> !one_shown
    %35 = genrec.feature %0#1 "impression.label" : (!genrec.domain<@impression>) -> !one_shown
    %36 = genrec.bce_with_logits %34, %35 : (!one_shown, !one_shown) -> !one_shown
    genrec.loss "click" %36 : !one_shown
    genrec.output "p" %34 : !one_shown
  }
}
