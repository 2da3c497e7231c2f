// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of the gradient of attention.

// The gradient follows the rules of attention.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %k: !vec4) {
  // expected-error@+1 {{'genrec.attention_grad' op 'k' must be rows of @request, [8] x f32 (the type of 'q'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %k, %q out %q, %q {heads = 1 : i64} : (!vec, !vec4, !vec, !vec, !vec) -> (!vec, !vec, !vec)
  return
}

// -----

// out has the type of v.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %o: !vec4) {
  // expected-error@+1 {{'genrec.attention_grad' op 'out' must be rows of @request, [8] x f32 (the type of 'v'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %q, %q out %o, %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec4, !vec) -> (!vec, !vec, !vec)
  return
}

// -----

// gradient has the type of v.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %o: !vec4) {
  // expected-error@+1 {{'genrec.attention_grad' op 'gradient' must be rows of @request, [8] x f32 (the type of 'v'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %q, %q out %q, %o {heads = 1 : i64} : (!vec, !vec, !vec, !vec, !vec4) -> (!vec, !vec, !vec)
  return
}

// -----

// dq has the type of q.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention_grad' op 'dq' must be rows of @request, [8] x f32 (the type of 'q'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %q, %q out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec, !vec) -> (!vec4, !vec, !vec)
  return
}

// -----

// dk has the type of k.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention_grad' op 'dk' must be rows of @request, [8] x f32 (the type of 'k'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %q, %q out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec, !vec) -> (!vec, !vec4, !vec)
  return
}

// -----

// dv has the type of v.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention_grad' op 'dv' must be rows of @request, [8] x f32 (the type of 'v'), but is rows of @request, [4] x f32}}
  %0:3 = genrec.attention_grad silu %q, %q, %q out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec, !vec) -> (!vec, !vec, !vec4)
  return
}

// -----

// A gradient of no operand.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%q: !vec) {
  // expected-error@+1 {{'genrec.attention_grad' op must give 'dposition_bias' where, and only where, 'position_bias' is an operand}}
  %0:4 = genrec.attention_grad silu %q, %q, %q out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !vec, !vec) -> (!vec, !vec, !vec) position_bias !shared8
  return
}

// -----

// An operand without gradient.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %b: !shared8, %t: !id) {
  // expected-error@+1 {{'genrec.attention_grad' op must give 'dtime_bias' where, and only where, 'time_bias' is an operand}}
  %0:3 = genrec.attention_grad silu %q, %q, %q time_bias %b time %t out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !shared8, !id, !vec, !vec) -> (!vec, !vec, !vec)
  return
}

// -----

// A bias gradient has the type of the bias.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
!id = tensor<?xi64, #genrec.rows<@request>>
!shared4 = tensor<4xf32>
func.func @test(%q: !vec, %b: !shared8, %t: !id) {
  // expected-error@+1 {{'genrec.attention_grad' op 'dtime_bias' must be shared [8] x f32 (the type of 'time_bias'), but is shared [4] x f32}}
  %0:4 = genrec.attention_grad silu %q, %q, %q time_bias %b time %t out %q, %q {heads = 1 : i64} : (!vec, !vec, !vec, !shared8, !id, !vec, !vec) -> (!vec, !vec, !vec) time_bias !shared4
  return
}

// -----

// Fused gradients give each column of x one gradient,
!f = tensor<?x8xf32, #genrec.rows<@request>>
!h = tensor<?x8xbf16, #genrec.rows<@request>>
!x = tensor<?x24xf32, #genrec.rows<@request>>
!y = tensor<?x24xbf16, #genrec.rows<@request>>
func.func @test(%h: !h, %f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op must give each column of 'x' one gradient, but column 8 is followed by a part at column 16}}
  %0 = genrec.fused_attention_grad silu %h, %h, %h out %f, %h of %x {columns = array<i64: 0, 16, 16>, heads = 1 : i64, bf16} : (!h, !h, !h, !f, !h, !x) -> !y
  return
}

// -----

// and all of them;
!f = tensor<?x8xf32, #genrec.rows<@request>>
!h = tensor<?x8xbf16, #genrec.rows<@request>>
!x = tensor<?x32xf32, #genrec.rows<@request>>
!y = tensor<?x32xbf16, #genrec.rows<@request>>
func.func @test(%h: !h, %f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op gives gradients of 24 columns, but 'x' has 32}}
  %0 = genrec.fused_attention_grad silu %h, %h, %h out %f, %h of %x {columns = array<i64: 0, 8, 16>, heads = 1 : i64, bf16} : (!h, !h, !h, !f, !h, !x) -> !y
  return
}

// -----

// the first ones are those of the rest.
!f = tensor<?x8xf32, #genrec.rows<@request>>
!h = tensor<?x8xbf16, #genrec.rows<@request>>
!x = tensor<?x32xf32, #genrec.rows<@request>>
!y = tensor<?x32xbf16, #genrec.rows<@request>>
func.func @test(%h: !h, %f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op must give each column of 'x' one gradient, but column 8 is followed by a part at column 0}}
  %0 = genrec.fused_attention_grad silu %h, %h, %h out %f, %h of %x rest %h {columns = array<i64: 0, 8, 16>, heads = 1 : i64, bf16} : (!h, !h, !h, !f, !h, !x, !h) -> !y
  return
}

// -----

// There are three parts.
!f = tensor<?x8xf32, #genrec.rows<@request>>
!h = tensor<?x8xbf16, #genrec.rows<@request>>
!x = tensor<?x24xf32, #genrec.rows<@request>>
!y = tensor<?x24xbf16, #genrec.rows<@request>>
func.func @test(%h: !h, %f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op needs 'columns' of q, k and v in 'x', but has 2}}
  %0 = genrec.fused_attention_grad silu %h, %h, %h out %f, %h of %x {columns = array<i64: 0, 8>, heads = 1 : i64, bf16} : (!h, !h, !h, !f, !h, !x) -> !y
  return
}

// -----

// The gradient of x is rounded,
!f = tensor<?x8xf32, #genrec.rows<@request>>
!h = tensor<?x8xbf16, #genrec.rows<@request>>
!x = tensor<?x24xf32, #genrec.rows<@request>>
!y = tensor<?x24xbf16, #genrec.rows<@request>>
func.func @test(%h: !h, %f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op 'dx' must be rows of @request, [24] x bf16 (the shape of 'x' in bf16), but is rows of @request, [24] x f32}}
  %0 = genrec.fused_attention_grad silu %h, %h, %h out %f, %h of %x {columns = array<i64: 0, 8, 16>, heads = 1 : i64, bf16} : (!h, !h, !h, !f, !h, !x) -> !x
  return
}

// -----

// and so are factors.
!f = tensor<?x8xf32, #genrec.rows<@request>>
!x = tensor<?x24xf32, #genrec.rows<@request>>
!y = tensor<?x24xbf16, #genrec.rows<@request>>
func.func @test(%f: !f, %x: !x) {
  // expected-error@+1 {{'genrec.fused_attention_grad' op 'q' must be rows of @request, [8] x bf16 (rounded to bf16 before), but is rows of @request, [8] x f32}}
  %0 = genrec.fused_attention_grad silu %f, %f, %f out %f, %f of %x {columns = array<i64: 0, 8, 16>, heads = 1 : i64, bf16} : (!f, !f, !f, !f, !f, !x) -> !y
  return
}
