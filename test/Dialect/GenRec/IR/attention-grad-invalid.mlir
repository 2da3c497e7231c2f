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
