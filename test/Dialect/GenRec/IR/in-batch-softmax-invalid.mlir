// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of in_batch_softmax and its gradient.

// A query is a vector per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !num, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!num, !num, !id) -> (!num, !two)
  return
}

// -----

// It is no rounded one: in-batch softmax is f32.
!vec = tensor<?x8xbf16, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [8] x bf16}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !id) -> (!num, !two)
  return
}

// -----

// Items are vectors of the size of the query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !vec4, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'item' must be rows of @request, [8] x f32 (the type of 'query'), but is rows of @request, [4] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %i, %id {temperature = 0.1 : f64} : (!vec, !vec4, !id) -> (!num, !two)
  return
}

// -----

// Query and item have one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !evec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op mixes rows of @request and @event: 'query' has rows of @request, [8] x f32 and 'item' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0:2 = genrec.in_batch_softmax %q, %i, %id {temperature = 0.1 : f64} : (!vec, !evec, !id) -> (!num, !two)
  return
}

// -----

// So do the ids.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op mixes rows of @request and @event: 'query' has rows of @request, [8] x f32 and 'id' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !id) -> (!num, !two)
  return
}

// -----

// Ids are integers of 64 bits.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !num) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'id' must be rows of @request, [] x i64 (an item's id each), but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !num) -> (!num, !two)
  return
}

// -----

// log_q is a number per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'log_q' must be rows of @request, [] x f32, but is rows of @request, [8] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id log_q %q {temperature = 0.1 : f64} : (!vec, !vec, !id, !vec) -> (!num, !two)
  return
}

// -----

// valid is a flag per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'valid' must be rows of @request, [] x i1, but is rows of @request, [] x i64}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id valid %id {temperature = 0.1 : f64} : (!vec, !vec, !id, !id) -> (!num, !two)
  return
}

// -----

// A temperature is greater than 0.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'temperature' must be finite and greater than 0, but is 0}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.0 : f64} : (!vec, !vec, !id) -> (!num, !two)
  return
}

// -----

// It gives a loss per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'result' must be rows of @request, [] x f32 (a loss per row), but is rows of @request, [8] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !id) -> (!vec, !two)
  return
}

// -----

// And two numbers per row for the gradient.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id) {
  // expected-error@+1 {{'genrec.in_batch_softmax' op 'kept' must be rows of @request, [2] x f32 (log Σ exp and a share of it), but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !id) -> (!num, !num)
  return
}

// -----

// A catalogue is no part of a batch.
!items = !genrec.domain<@items>
!id = tensor<?xi64, #genrec.rows<@items>>
!vec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@items>>
!two = tensor<?x2xf32, #genrec.rows<@items>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-note@+1 {{domain declared here}}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %items = genrec.catalogue : !items
    %id = genrec.feature %items "id" : (!items) -> !id
    %q = genrec.lookup %id in @item : (!id) -> !vec
    // expected-error@+1 {{'genrec.in_batch_softmax' op 'query' must be of a domain of kind data or derived, but @items is of kind catalogue}}
    %0:2 = genrec.in_batch_softmax %q, %q, %id {temperature = 0.1 : f64} : (!vec, !vec, !id) -> (!num, !two)
  }
}

// -----

// The gradient is one of a loss per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id, %kept: !two) {
  // expected-error@+1 {{'genrec.in_batch_softmax_grad' op 'gradient' must be rows of @request, [] x f32 (of the loss per row), but is rows of @request, [8] x f32}}
  %0:2 = genrec.in_batch_softmax_grad %q, %q, %id, %kept, %q {temperature = 0.1 : f64} : (!vec, !vec, !id, !two, !vec) -> (!vec, !vec)
  return
}

// -----

// It takes what the forward op kept.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id, %g: !num) {
  // expected-error@+1 {{'genrec.in_batch_softmax_grad' op 'kept' must be rows of @request, [2] x f32 (log Σ exp and a share of it), but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax_grad %q, %q, %id, %g, %g {temperature = 0.1 : f64} : (!vec, !vec, !id, !num, !num) -> (!vec, !vec)
  return
}

// -----

// dquery has the type of query, ditem that of item.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id, %kept: !two, %g: !num) {
  // expected-error@+1 {{'genrec.in_batch_softmax_grad' op 'dquery' must be rows of @request, [8] x f32 (the type of 'query'), but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax_grad %q, %q, %id, %kept, %g {temperature = 0.1 : f64} : (!vec, !vec, !id, !two, !num) -> (!num, !vec)
  return
}

// -----

!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!two = tensor<?x2xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %id: !id, %kept: !two, %g: !num) {
  // expected-error@+1 {{'genrec.in_batch_softmax_grad' op 'ditem' must be rows of @request, [8] x f32 (the type of 'item'), but is rows of @request, [] x f32}}
  %0:2 = genrec.in_batch_softmax_grad %q, %q, %id, %kept, %g {temperature = 0.1 : f64} : (!vec, !vec, !id, !two, !num) -> (!vec, !num)
  return
}
