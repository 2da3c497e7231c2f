// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of layers of ranking models.

// Vectors of one size lie end to end.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!out = tensor<?x3xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dot_interaction' op needs 3 vectors end to end, but 'x' has 8 columns}}
  %0 = genrec.dot_interaction %x {count = 3 : i64} : (!vec) -> !out
  return
}

// -----

// One vector makes no pair.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!out = tensor<?x1xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dot_interaction' op needs at least 2 vectors, or 'self', but 'count' is 1}}
  %0 = genrec.dot_interaction %x {count = 1 : i64} : (!vec) -> !out
  return
}

// -----

// A product per pair.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!out = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dot_interaction' op 'result' must be rows of @request, [10] x f32 (a product per pair of 4 vectors), but is rows of @request, [4] x f32}}
  %0 = genrec.dot_interaction %x {count = 4 : i64, self} : (!vec) -> !out
  return
}

// -----

// The gradient has x's type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!out = tensor<?x1xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %g: !out) {
  // expected-error@+1 {{'genrec.dot_interaction_grad' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @request, [1] x f32}}
  %0 = genrec.dot_interaction_grad %x, %g {count = 2 : i64} : (!vec, !out) -> !out
  return
}

// -----

// A full cross layer's weight is square.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %w: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'genrec.cross_layer' op 'weight' must be shared [8, 8] x f32 (square, a row per column of 'x'), but is shared [4, 8] x f32}}
  %0 = genrec.cross_layer %x, %x, %w, %b : (!vec, !vec, tensor<4x8xf32>, tensor<8xf32>) -> !vec
  return
}

// -----

// A low-rank one goes through r columns.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %r: tensor<8x2xf32>) {
  // expected-error@+1 {{'genrec.cross_layer' op 'weight' must be shared [2, 8] x f32 (a row per column of 'reduce'), but is shared [4, 8] x f32}}
  %0 = genrec.cross_layer %x, %x, %w, %b reduce %r : (!vec, !vec, tensor<4x8xf32>, tensor<8xf32>, tensor<8x2xf32>) -> !vec
  return
}

// -----

// x0 and x are alike.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %y: !evec, %w: tensor<8x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'genrec.cross_layer' op 'x' must be rows of @request, [8] x f32 (the type of 'x0'), but is rows of @event, [8] x f32}}
  %0 = genrec.cross_layer %x, %y, %w, %b : (!vec, !evec, tensor<8x8xf32>, tensor<8xf32>) -> !vec
  return
}

// -----

// Every expert has a logit.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!gate = tensor<?x3xf32, #genrec.rows<@request>>
!out = tensor<?x2xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %g: !gate) {
  // expected-error@+1 {{'genrec.mixture' op has 3 'logits', but 'experts' are 8 columns, which is no multiple of that}}
  %0 = genrec.mixture %x, %g : (!vec, !gate) -> !out
  return
}

// -----

// A gate keeps at most all experts.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!gate = tensor<?x4xf32, #genrec.rows<@request>>
!out = tensor<?x2xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %g: !gate) {
  // expected-error@+1 {{'genrec.mixture' op 'top_k' must be 0 to 4, but is 5}}
  %0 = genrec.mixture %x, %g {top_k = 5 : i64} : (!vec, !gate) -> !out
  return
}

// -----

// The result is one expert's row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!gate = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %g: !gate) {
  // expected-error@+1 {{'genrec.mixture' op 'result' must be rows of @request, [2] x f32 (one expert's row), but is rows of @request, [8] x f32}}
  %0 = genrec.mixture %x, %g : (!vec, !gate) -> !vec
  return
}

// -----

// softmax takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.softmax' op 'x' must be a tensor, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.softmax %x : !num
  return
}

// -----

// The keys of cross attention are as wide as its queries.
!vec = tensor<?x8xf32, #genrec.rows<@item>>
!key = tensor<?x6xf32, #genrec.rows<@event>>
func.func @test(%q: !vec, %k: !key) {
  // expected-error@+1 {{'genrec.cross_attention' op 'k' must be rows of a domain, [8] x f32 (as wide as 'q'), but is rows of @event, [6] x f32}}
  %0 = genrec.cross_attention %q, %k, %k {heads = 1 : i64} : (!vec, !key, !key) -> !vec
  return
}

// -----

// Its values are rows of the keys' list.
!ivec = tensor<?x8xf32, #genrec.rows<@item>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !ivec, %k: !evec) {
  // expected-error@+1 {{'genrec.cross_attention' op 'v' must be rows of @event, [d] x f32, but is rows of @item, [8] x f32}}
  %0 = genrec.cross_attention %q, %k, %q {heads = 1 : i64} : (!ivec, !evec, !ivec) -> !ivec
  return
}

// -----

// Heads divide its rows.
!ivec = tensor<?x8xf32, #genrec.rows<@item>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !ivec, %k: !evec) {
  // expected-error@+1 {{'genrec.cross_attention' op splits 'q' into 3 heads, but it is rows of @item, [8] x f32}}
  %0 = genrec.cross_attention %q, %k, %k {heads = 3 : i64} : (!ivec, !evec, !evec) -> !ivec
  return
}

// -----

// It gives a row of v per query.
!ivec = tensor<?x8xf32, #genrec.rows<@item>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !ivec, %k: !evec) {
  // expected-error@+1 {{'genrec.cross_attention' op 'result' must be rows of @item, [8] x f32 (a row of 'v' per row of 'q'), but is rows of @event, [8] x f32}}
  %0 = genrec.cross_attention %q, %k, %k {heads = 1 : i64} : (!ivec, !evec, !evec) -> !evec
  return
}

// -----

// Its gradient takes one of the result.
!ivec = tensor<?x8xf32, #genrec.rows<@item>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !ivec, %k: !evec) {
  // expected-error@+1 {{'genrec.cross_attention_grad' op 'gradient' must be rows of @item, [8] x f32 (a row of 'v' per row of 'q'), but is rows of @event, [8] x f32}}
  %0:3 = genrec.cross_attention_grad %q, %k, %k, %k {heads = 1 : i64} : (!ivec, !evec, !evec, !evec) -> (!ivec, !evec, !evec)
  return
}

// -----

// Queries and keys have a parent in common.
!ivec = tensor<?x8xf32, #genrec.rows<@item>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "event"}
  genrec.domain @shown parent @request {column = "shown"}
  genrec.domain @item parent @shown {column = "shown.item"}
  genrec.table @t dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %request, %event, %shown, %item = genrec.batch : !genrec.domain<@request>, !genrec.domain<@event>, !genrec.domain<@shown>, !genrec.domain<@item>
    %i = genrec.feature %item "shown.item.id" : (!genrec.domain<@item>) -> tensor<?xi64, #genrec.rows<@item>>
    %e = genrec.feature %event "event.id" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %q = genrec.lookup %i in @t : (tensor<?xi64, #genrec.rows<@item>>) -> !ivec
    %k = genrec.lookup %e in @t : (tensor<?xi64, #genrec.rows<@event>>) -> !evec
    // expected-error@+1 {{'genrec.cross_attention' op takes keys of a list below the queries or below their parent, but @event is no such list of @item}}
    %0 = genrec.cross_attention %q, %k, %k {heads = 1 : i64} : (!ivec, !evec, !evec) -> !ivec
    genrec.output "x" %0 : !ivec
  }
}
