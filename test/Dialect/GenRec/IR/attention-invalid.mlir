// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of attention.

// q is a float vector.
!ids = tensor<?x8xi64, #genrec.rows<@request>>
func.func @test(%q: !ids) {
  // expected-error@+1 {{'genrec.attention' op 'q' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [8] x i64}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64} : (!ids, !ids, !ids) -> !ids
  return
}

// -----

// q, k and v have rows of one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !vec, %v: !evec) {
  // expected-error@+1 {{'genrec.attention' op mixes rows of @request and @event: 'q' has rows of @request, [8] x f32 and 'v' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.attention silu %q, %q, %v {heads = 1 : i64} : (!vec, !vec, !evec) -> !evec
  return
}

// -----

// k has the type of q.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %k: !vec4) {
  // expected-error@+1 {{'genrec.attention' op 'k' must be rows of @request, [8] x f32 (the type of 'q'), but is rows of @request, [4] x f32}}
  %0 = genrec.attention silu %q, %k, %q {heads = 1 : i64} : (!vec, !vec4, !vec) -> !vec
  return
}

// -----

// v is a vector.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %v: !num) {
  // expected-error@+1 {{'genrec.attention' op 'v' must be rows of @request, [d] x f32, but is rows of @request, [] x f32}}
  %0 = genrec.attention silu %q, %q, %v {heads = 1 : i64} : (!vec, !vec, !num) -> !num
  return
}

// -----

// Heads split q.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %v: !vec4) {
  // expected-error@+1 {{'genrec.attention' op splits 'q' into 3 heads, but it is rows of @request, [8] x f32}}
  %0 = genrec.attention silu %q, %q, %v {heads = 3 : i64} : (!vec, !vec, !vec4) -> !vec4
  return
}

// -----

// Heads split v.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %v: !vec4) {
  // expected-error@+1 {{'genrec.attention' op splits 'v' into 8 heads, but it is rows of @request, [4] x f32}}
  %0 = genrec.attention silu %q, %q, %v {heads = 8 : i64} : (!vec, !vec, !vec4) -> !vec4
  return
}

// -----

// A window is not negative.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'window' must be at least 0, but is -1}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, window = -1 : i64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// A fixed length is not negative.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'fixed_length' must be finite and at least 0, but is -1}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, fixed_length = -1.0 : f64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// Dropout is a rate.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'dropout' must be in [0, 1), but is 1.5}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, dropout = 1.5 : f64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// Streams are numbered from 0.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'stream' must be at least 0, but is -3}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, stream = -3 : i64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// A scale is finite.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'scale' must be finite, but is inf}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, scale = 0x7FF0000000000000 : f64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// softmax has no fixed length.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'fixed_length' divides silu scores; softmax scores sum to 1, so it must be 0, but is 2.000000e+02}}
  %0 = genrec.attention softmax %q, %q, %q {heads = 1 : i64, fixed_length = 200.0 : f64} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// next_event_time needs times.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'next_event_time' says how times are compared, but there is no 'time_bias'}}
  %0 = genrec.attention silu %q, %q, %q {heads = 1 : i64, next_event_time} : (!vec, !vec, !vec) -> !vec
  return
}

// -----

// position_bias is a shared vector.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention' op 'position_bias' must be shared [d] x f32, but is rows of @request, [8] x f32}}
  %0 = genrec.attention silu %q, %q, %q position_bias %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec) -> !vec
  return
}

// -----

// position_bias has a middle.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%q: !vec, %b: !shared8) {
  // expected-error@+1 {{'genrec.attention' op 'position_bias' must have an odd size, one middle for distance 0, but has 8}}
  %0 = genrec.attention silu %q, %q, %q position_bias %b {heads = 1 : i64} : (!vec, !vec, !vec, !shared8) -> !vec
  return
}

// -----

// time_bias needs time.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%q: !vec, %b: !shared8) {
  // expected-error@+1 {{'genrec.attention' op needs 'time_bias' and 'time' together, but has only 'time_bias'}}
  %0 = genrec.attention silu %q, %q, %q time_bias %b {heads = 1 : i64} : (!vec, !vec, !vec, !shared8) -> !vec
  return
}

// -----

// time needs time_bias.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %t: !id) {
  // expected-error@+1 {{'genrec.attention' op needs 'time_bias' and 'time' together, but has only 'time'}}
  %0 = genrec.attention silu %q, %q, %q time %t {heads = 1 : i64} : (!vec, !vec, !vec, !id) -> !vec
  return
}

// -----

// time_bias is a shared vector.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %b: !mat, %t: !id) {
  // expected-error@+1 {{'genrec.attention' op 'time_bias' must be shared [d] x f32, but is shared [8, 4] x f32}}
  %0 = genrec.attention silu %q, %q, %q time_bias %b time %t {heads = 1 : i64} : (!vec, !vec, !vec, !mat, !id) -> !vec
  return
}

// -----

// time_bias has at most 128 buckets.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %t: !id, %b: tensor<129xf32>) {
  // expected-error@+1 {{'genrec.attention' op 'time_bias' must have at most 128 buckets, but has 129}}
  %0 = genrec.attention silu %q, %q, %q time_bias %b time %t {heads = 1 : i64} : (!vec, !vec, !vec, tensor<129xf32>, !id) -> !vec
  return
}

// -----

// time has rows of q.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
!eid = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%q: !vec, %b: !shared8, %t: !eid) {
  // expected-error@+1 {{'genrec.attention' op mixes rows of @request and @event: 'q' has rows of @request, [8] x f32 and 'time' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.attention silu %q, %q, %q time_bias %b time %t {heads = 1 : i64} : (!vec, !vec, !vec, !shared8, !eid) -> !vec
  return
}

// -----

// time is in seconds.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %b: !shared8, %t: !num) {
  // expected-error@+1 {{'genrec.attention' op 'time' must be rows of @request, [] x i64 (seconds), but is rows of @request, [] x f32}}
  %0 = genrec.attention silu %q, %q, %q time_bias %b time %t {heads = 1 : i64} : (!vec, !vec, !vec, !shared8, !num) -> !vec
  return
}

// -----

// The result has the type of v.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %v: !vec4) {
  // expected-error@+1 {{'genrec.attention' op 'result' must be rows of @request, [4] x f32 (the type of 'v'), but is rows of @request, [8] x f32}}
  %0 = genrec.attention silu %q, %q, %v {heads = 1 : i64} : (!vec, !vec, !vec4) -> !vec
  return
}

// -----

// A prefix of context is no shorter than nothing.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !evec) {
  // expected-error@+1 {{'genrec.attention' op 'contextual' must be at least 0, but is -1}}
  %0 = genrec.attention silu %x, %x, %x {heads = 1 : i64, contextual = -1 : i64} : (!evec, !evec, !evec) -> !evec
  return
}

// -----

// Targets are counted.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !evec, %t: !num) {
  // expected-error@+1 {{'genrec.attention' op 'target' must be rows of a domain, [] x i64 (how many rows at the end of a list are targets), but is rows of @request, [] x f32}}
  %0 = genrec.attention silu %x, %x, %x target %t {heads = 1 : i64} : (!evec, !evec, !evec, !num) -> !evec
  return
}

// -----

// They are counted per list.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!eid = tensor<?xi64, #genrec.rows<@event>>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %request, %event = genrec.batch : !request, !event
    %id = genrec.feature %event "events.id" : (!event) -> !eid
    %x = genrec.lookup %id in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.attention' op 'target' has a row per list of @event, so it must be rows of its parent, but is rows of @event, [] x i64}}
    %0 = genrec.attention silu %x, %x, %x target %id {heads = 1 : i64} : (!evec, !evec, !evec, !eid) -> !evec
  }
}
