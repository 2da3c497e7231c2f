// A model goes into the model file and comes back the same: text of the MLIR, then bytes of the file.
//
// RUN: genrec-translate --export-model %s -o %t.genrec
// RUN: genrec-translate --import-model %t.genrec -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: genrec-translate --import-model --mlir-print-debuginfo %t.genrec -o %t.places.mlir
// RUN: genrec-translate --export-model %t.places.mlir -o %t.again.genrec
// RUN: cmp %t.genrec %t.again.genrec
// RUN: genrec-opt %s -o %t.direct.mlir
// RUN: genrec-opt %t.mlir -o %t.imported.mlir
// RUN: diff %t.direct.mlir %t.imported.mlir

// CHECK: genrec.model @Everything
// CHECK-SAME: clip_norm = 1.000000e+00
// CHECK-SAME: schedule = {final = 1.000000e-01 : f64, kind = "cosine", steps = 1000 : i64, warmup = 10 : i64}
genrec.model @Everything attributes {clip_norm = 1.0 : f64, clip_value = 0.5 : f64,
    schedule = {final = 0.1 : f64, kind = "cosine", steps = 1000 : i64, warmup = 10 : i64}} {
  genrec.domain @request
  // CHECK: genrec.domain @history parent @request {column = "history"}
  genrec.domain @history parent @request {column = "history"}
  // CHECK: genrec.domain @event parent @request kind derived
  genrec.domain @event parent @request kind derived
  genrec.domain @movies kind catalogue {source = "movies.parquet", expected_rows = 3883 : i64}
  genrec.table @movie dim 4 {
    init = #genrec.init<truncated_normal, 0.02>,
    optimizer = #genrec.optimizer<adamw, {beta2 = 0.98 : f64, lr = 0.001 : f64}>}
  // CHECK: genrec.table @shop dim 2 {admit_after = 2 : i64, bounded = 100 : i64, evict = #genrec<evict_kind lfu>
  genrec.table @shop dim 2 {bounded = 100 : i64, evict = #genrec<evict_kind lfu>, ttl = 50 : i64, admit_after = 2 : i64,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<rowwise_adagrad, {eps = 1.0e-8 : f64}>}
  // CHECK: genrec.table @visit dim 2 {{{.*}}ttl = 86400 : i64, ttl_in_seconds}
  genrec.table @visit dim 2 {ttl = 86400 : i64, ttl_in_seconds,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // CHECK: genrec.table @street dim 2 {element = #genrec<row_element bf16>, hot_after = 7 : i64, {{.*}}rounding = #genrec<row_rounding stochastic>
  genrec.table @street dim 2 {element = #genrec<row_element bf16>, hot_after = 7 : i64, rounding = #genrec<row_rounding stochastic>,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @user dim 3 {id_bits = 40 : i64,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @weight : tensor<4x4xf32> {
    init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adagrad, {lr = 0.01 : f64}>}
  genrec.parameter @scale : tensor<f32> {
    init = #genrec.init<constant, 2.0>, optimizer = #genrec.optimizer<adam, {}>}
  // CHECK: genrec.program @main
  genrec.program @main {
    %request, %history = genrec.batch : !genrec.domain<@request>, !genrec.domain<@history>
    // CHECK: genrec.truncate {{.*}} {count = 3 : i64, keep = #genrec<keep first>}
    %event = genrec.truncate %history {count = 3 : i64, keep = #genrec<keep first>}
      : (!genrec.domain<@history>) -> !genrec.domain<@event>
    %movie = genrec.feature %history "history.movie" {nullable, padding_id = -1 : i64, id_bits = 52 : i64}
      : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %valid = genrec.feature_valid %history "history.movie"
      : (!genrec.domain<@history>) -> tensor<?xi1, #genrec.rows<@history>>
    %title = genrec.feature %history "history.title"
      : (!genrec.domain<@history>) -> tensor<?x!genrec.string, #genrec.rows<@history>>
    %age = genrec.feature %request "age"
      : (!genrec.domain<@request>) -> tensor<?xf64, #genrec.rows<@request>>
    // CHECK: genrec.hash murmur3 {{.*}} {bits = 40 : i64, seed = 7 : i64}
    %hashed = genrec.hash murmur3 %title {bits = 40 : i64, seed = 7 : i64}
      : (tensor<?x!genrec.string, #genrec.rows<@history>>) -> tensor<?xi64, #genrec.rows<@history>>
    // CHECK: genrec.bucketize {{.*}} {edges = array<f64: -5.000000e-01, 1.000000e+00, 1.000000e+300>}
    %bucket = genrec.bucketize %age {edges = array<f64: -0.5, 1.0, 1.0e300>}
      : (tensor<?xf64, #genrec.rows<@request>>) -> tensor<?xi64, #genrec.rows<@request>>
    %here = genrec.derive %movie into %event
      : (tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    // CHECK: genrec.lookup {{.*}} valid {{.*}} in @movie
    %all = genrec.lookup %movie valid %valid in @movie
      : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>)
      -> tensor<?x4xf32, #genrec.rows<@history>>
    %x = genrec.lookup %here in @movie
      : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    // CHECK: genrec.constant dense<[1.000000e-01, 2.000000e-01, 3.000000e-01, -4.000000e+00]>
    %bias = genrec.constant dense<[0.1, 0.2, 0.3, -4.0]> : tensor<4xf32>
    %weight = genrec.param @weight : tensor<4x4xf32>
    %scale = genrec.param @scale : tensor<f32>
    // CHECK: genrec.layer_norm {{.*}} bias {{.*}} {eps = 9.9999999999999995E-7 : f64}
    %norm = genrec.layer_norm %x bias %bias {eps = 1.0e-6 : f64}
      : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<4xf32>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %y = genrec.linear %norm, %weight
      : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<4x4xf32>) -> tensor<?x4xf32, #genrec.rows<@event>>
    // CHECK: genrec.attention softmax
    // CHECK-SAME: causal
    %z = genrec.attention softmax %y, %y, %y {causal, heads = 2 : i64, scale = 0.5 : f64, stream = 256 : i64}
      : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<?x4xf32, #genrec.rows<@event>>,
         tensor<?x4xf32, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %scaled = genrec.mul %z, %scale
      : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<f32>) -> tensor<?x4xf32, #genrec.rows<@event>>
    // CHECK: genrec.pool last
    %query = genrec.pool last %scaled to %request
      : (tensor<?x4xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?x4xf32, #genrec.rows<@request>>
    %next, %has_next = genrec.lead %here {distance = 2 : i64}
      : (tensor<?xi64, #genrec.rows<@event>>)
      -> (tensor<?xi64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>)
    %movies = genrec.catalogue : !genrec.domain<@movies>
    %ids = genrec.feature %movies "movie"
      : (!genrec.domain<@movies>) -> tensor<?xi64, #genrec.rows<@movies>>
    %items = genrec.lookup %ids in @movie
      : (tensor<?xi64, #genrec.rows<@movies>>) -> tensor<?x4xf32, #genrec.rows<@movies>>
    %positive = genrec.resolve %next valid %has_next in %ids {allow_missing}
      : (tensor<?xi64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>,
         tensor<?xi64, #genrec.rows<@movies>>) -> tensor<?xi64, #genrec.rows<@event>>
    %loss = genrec.sampled_softmax %scaled, %positive, %items
      {negatives = 3 : i64, shared, stream = 512 : i64, temperature = 0.05 : f64}
      : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<?xi64, #genrec.rows<@event>>,
         tensor<?x4xf32, #genrec.rows<@movies>>) -> tensor<?xf32, #genrec.rows<@event>>
    // CHECK: genrec.loss "next" {{.*}} valid {{.*}} {scale = 5.000000e-01 : f64}
    genrec.loss "next" %loss valid %has_next {scale = 0.5 : f64}
      : tensor<?xf32, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>
    %index, %score = genrec.top_k %query, %items
      : (tensor<?x4xf32, #genrec.rows<@request>>, tensor<?x4xf32, #genrec.rows<@movies>>)
      -> (tensor<?x2xi64, #genrec.rows<@request>>, tensor<?x2xf32, #genrec.rows<@request>>)
    // CHECK: genrec.metric ranking "ranking" {{.*}} {at = array<i64: 1, 2>, note = "nothing excluded"}
    genrec.metric ranking "ranking" %bucket {at = array<i64: 1, 2>, note = "nothing excluded"}
      : tensor<?xi64, #genrec.rows<@request>>
    // CHECK: genrec.output "top" {{.*}} : tensor<?x2xi64, #genrec.rows<@request>>
    genrec.output "top" %index : tensor<?x2xi64, #genrec.rows<@request>>
  }
}
