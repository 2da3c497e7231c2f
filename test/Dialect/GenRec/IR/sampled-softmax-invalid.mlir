// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of sampled_softmax and its gradient.

// A query is a vector per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !num, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [] x f32}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!num, !id, !cvec) -> !num
  return
}

// -----

// Items are vectors of the size of the query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec4 = tensor<?x4xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec4) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'items' must be rows of a domain, [8] x f32 (vectors of the size of 'query'), but is rows of @items, [4] x f32}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec4) -> !num
  return
}

// -----

// Query and positive have one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !eid, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op mixes rows of @request and @event: 'query' has rows of @request, [8] x f32 and 'positive' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !eid, !cvec) -> !num
  return
}

// -----

// A positive is a catalogue row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %p: !num, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'positive' must be rows of @request, [] x i64 (a catalogue row each), but is rows of @request, [] x f32}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !num, !cvec) -> !num
  return
}

// -----

// A temperature is greater than 0.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'temperature' must be finite and greater than 0, but is 0}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.0 : f64, stream = 0 : i64} : (!vec, !id, !cvec) -> !num
  return
}

// -----

// Streams are numbered from 0.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = -1 : i64} : (!vec, !id, !cvec) -> !num
  return
}

// -----

// There are negatives.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{custom op 'genrec.sampled_softmax' 'genrec.sampled_softmax' op attribute 'negatives' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 0 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec) -> !num
  return
}

// -----

// sampled_softmax gives a loss per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'result' must be rows of @request, [] x f32 (a loss per row), but is rows of @request, [8] x f32}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec) -> !vec
  return
}

// -----

// Negatives come from a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.sampled_softmax' op 'items' must be of a domain of kind catalogue, but @event is of kind data}}
    %0 = genrec.sampled_softmax %q, %u, %n {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !evec) -> !num
  }
}

// -----

// The gradient follows the rules of sampled_softmax.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %p: !num, %i: !cvec, %g: !num) {
  // expected-error@+1 {{'genrec.sampled_softmax_grad' op 'positive' must be rows of @request, [] x i64 (a catalogue row each), but is rows of @request, [] x f32}}
  %0, %1 = genrec.sampled_softmax_grad %q, %p, %i, %g {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !num, !cvec, !num) -> (!vec, !cvec)
  return
}

// -----

// The gradient of a sampled softmax has rows of the query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%q: !vec, %p: !id, %i: !cvec, %g: !enum) {
  // expected-error@+1 {{'genrec.sampled_softmax_grad' op mixes rows of @request and @event: 'query' has rows of @request, [8] x f32 and 'gradient' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0, %1 = genrec.sampled_softmax_grad %q, %p, %i, %g {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec, !enum) -> (!vec, !cvec)
  return
}

// -----

// The gradient of a sampled softmax is a number per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax_grad' op 'gradient' must be rows of @request, [] x f32, but is rows of @request, [8] x f32}}
  %0, %1 = genrec.sampled_softmax_grad %q, %p, %i, %q {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec, !vec) -> (!vec, !cvec)
  return
}

// -----

// dquery has the type of query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec, %g: !num) {
  // expected-error@+1 {{'genrec.sampled_softmax_grad' op 'dquery' must be rows of @request, [8] x f32 (the type of 'query'), but is rows of @request, [] x f32}}
  %0, %1 = genrec.sampled_softmax_grad %q, %p, %i, %g {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec, !num) -> (!num, !cvec)
  return
}

// -----

// ditems has the type of items.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec, %g: !num) {
  // expected-error@+1 {{'genrec.sampled_softmax_grad' op 'ditems' must be rows of @items, [8] x f32 (the type of 'items'), but is rows of @request, [8] x f32}}
  %0, %1 = genrec.sampled_softmax_grad %q, %p, %i, %g {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec, !num) -> (!vec, !vec)
  return
}

// -----

// Gradients of negatives go to a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    %g = genrec.feature %r "g" : (!request) -> !num
    // expected-error@+1 {{'genrec.sampled_softmax_grad' op 'items' must be of a domain of kind catalogue, but @event is of kind data}}
    %0, %1 = genrec.sampled_softmax_grad %q, %u, %n, %g {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !evec, !num) -> (!vec, !evec)
  }
}

// -----

// Items may be rounded, the query not.
!vec = tensor<?x8xbf16, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xbf16, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %p: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.sampled_softmax' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [8] x bf16}}
  %0 = genrec.sampled_softmax %q, %p, %i {negatives = 4 : i64, temperature = 0.1 : f64, stream = 0 : i64} : (!vec, !id, !cvec) -> !num
  return
}

// -----

// The numbers of negatives are as many as their products.
!num = tensor<?xf32, #genrec.rows<@request>>
!dots = tensor<?x4xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%dot: !num, %dots: !dots, %p: !id, %drawn: tensor<3xi64>) {
  // expected-error@+1 {{'genrec.sampled_cross_entropy' op 'drawn' must be shared [4] x i64 (a number per negative), but is shared [3] x i64}}
  %0 = genrec.sampled_cross_entropy %dot, %dots, %p, %drawn {temperature = 0.1 : f64} : (!num, !dots, !id, tensor<3xi64>) -> !num
  return
}

// -----

// The temperature is positive.
!num = tensor<?xf32, #genrec.rows<@request>>
!dots = tensor<?x4xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%dot: !num, %dots: !dots, %p: !id, %drawn: tensor<4xi64>) {
  // expected-error@+1 {{'temperature'}}
  %0 = genrec.sampled_cross_entropy %dot, %dots, %p, %drawn {temperature = 0.0 : f64} : (!num, !dots, !id, tensor<4xi64>) -> !num
  return
}

// -----

// Gradients have the types of the products.
!num = tensor<?xf32, #genrec.rows<@request>>
!dots = tensor<?x4xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%dot: !num, %dots: !dots, %p: !id, %drawn: tensor<4xi64>) {
  // expected-error@+1 {{'genrec.sampled_cross_entropy_grad' op 'ddots' must be rows of @request, [4] x f32 (the type of 'dots'), but is rows of @request, [] x f32}}
  %0, %1 = genrec.sampled_cross_entropy_grad %dot, %dots, %p, %drawn, %dot {temperature = 0.1 : f64} : (!num, !dots, !id, tensor<4xi64>, !num) -> (!num, !num)
  return
}

// -----

// scatter_rows takes an index per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%x: !vec, %p: !eid) {
  // expected-error@+1 {{'genrec.scatter_rows' op mixes rows of @request and @event: 'x' has rows of @request, [8] x f32 and 'index' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.scatter_rows %x at %p : (!vec, !eid) -> !cvec
  return
}

// -----

// scatter_rows adds up into another domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @own {
  genrec.domain @request
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %x = genrec.feature %request "x" : (!genrec.domain<@request>) -> !vec
    %p = genrec.feature %request "p" : (!genrec.domain<@request>) -> !id
    // expected-error@+1 {{'genrec.scatter_rows' op 'result' has rows of the domain of 'x', but needs another one's}}
    %0 = genrec.scatter_rows %x at %p : (!vec, !id) -> !vec
  }
}
