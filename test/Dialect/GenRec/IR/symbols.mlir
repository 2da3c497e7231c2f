// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

// Defaults are not printed; keywords are.
// CHECK-LABEL: genrec.model @small {
// CHECK-NEXT: genrec.domain @request
// CHECK-NEXT: genrec.domain @event parent @request {column = "events"}
// CHECK-NEXT: genrec.domain @recent parent @request kind derived
// CHECK-NEXT: genrec.domain @last parent @recent kind derived
// CHECK-NEXT: genrec.domain @items kind catalogue {source = "items.parquet"}
// CHECK-NEXT: genrec.domain @rows kind step
// CHECK-NEXT: genrec.table @item dim 8 {init = #genrec.init<normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<sgd, {}>}
// CHECK-NEXT: genrec.parameter @scalar : tensor<f32>
// CHECK-NEXT: genrec.program @main {
// CHECK-NEXT: }
genrec.model @small {
  genrec.domain @request kind data
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @recent parent @request kind derived
  genrec.domain @last parent @recent kind derived
  genrec.domain @items kind catalogue {source = "items.parquet"}
  genrec.domain @rows kind step
  genrec.table @item dim 8 {
    id_bits = 52 : i64, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @scalar : tensor<f32> {
    init = #genrec.init<constant, -1.0>, optimizer = #genrec.optimizer<adagrad, {initial_accumulator = 0.1}>}
  genrec.program @main mode all {
  }
}

// One program of each mode; every entry of a schedule.
// CHECK-LABEL: genrec.model @specialised
// CHECK-SAME: clip_norm = 1.000000e+00 : f64, clip_value = 5.000000e-01 : f64
// CHECK-SAME: schedule = {final = 1.000000e-01 : f64, kind = "linear", steps = 10000 : i64, warmup = 100 : i64}
// CHECK: genrec.table @item dim 1 {id_bits = 63 : i64
// CHECK-SAME: #genrec.optimizer<adam, {per_row_step = 1.000000e+00 : f64}>
// CHECK: genrec.program @a {
// CHECK: genrec.program @b mode train {
// CHECK: genrec.program @c mode evaluate {
// CHECK: genrec.program @d mode predict {
genrec.model @specialised attributes {
    clip_norm = 1.0 : f64, clip_value = 0.5 : f64,
    schedule = {kind = "linear", warmup = 100 : i64, steps = 10000 : i64, final = 0.1 : f64}} {
  genrec.domain @request
  genrec.table @item dim 1 {
    id_bits = 63 : i64, init = #genrec.init<xavier_uniform, 1.0>,
    optimizer = #genrec.optimizer<adam, {per_row_step = 1.0}>}
  genrec.program @a {
  }
  genrec.program @b mode train {
  }
  genrec.program @c mode evaluate {
  }
  genrec.program @d mode predict {
  }
}

// Initial values and optimizers, each kind with what it may say.
// CHECK-LABEL: genrec.model @kinds
// CHECK: #genrec.init<zeros, 0.000000e+00 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 1.000000e-01 : f64, momentum = 9.000000e-01 : f64, weight_decay = 1.000000e-02 : f64}>
// CHECK: #genrec.init<truncated_normal, 2.000000e-02 : f64>, optimizer = #genrec.optimizer<adagrad, {eps = 1.000000e-08 : f64}>
// CHECK: #genrec.init<uniform, 5.000000e-02 : f64>, optimizer = #genrec.optimizer<adam, {beta1 = 8.000000e-01 : f64}>
// CHECK: #genrec.init<xavier_normal, 1.000000e+00 : f64>, optimizer = #genrec.optimizer<adamw, {beta2 = 0.97{{9+[0-9]*}} : f64}>
genrec.model @kinds {
  genrec.parameter @a : tensor<4xf32> {
    init = #genrec.init<zeros, 0.0>,
    optimizer = #genrec.optimizer<sgd, {lr = 0.1, momentum = 0.9, weight_decay = 0.01}>}
  genrec.parameter @b : tensor<4xf32> {
    init = #genrec.init<truncated_normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {eps = 1.0e-8}>}
  genrec.parameter @c : tensor<4xf32> {
    init = #genrec.init<uniform, 0.05>, optimizer = #genrec.optimizer<adam, {beta1 = 0.8}>}
  genrec.parameter @d : tensor<4x8xf32> {
    init = #genrec.init<xavier_normal, 1.0>, optimizer = #genrec.optimizer<adamw, {beta2 = 0.98}>}
}
