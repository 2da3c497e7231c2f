// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of the HSTU block.

// x is a vector per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !num, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'x' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!num, !u, !w, !shared8) -> !num
  return
}

// -----

// uvqk gives u, v, q and k.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'uvqk' must be shared [8, 24] x f32 (d by 2 * heads * dv + 2 * heads * qk), but is shared [8, 16] x f32}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 8 : i64, eps = 0.1 : f64} : (!vec, !u, !w, !shared8) -> !vec
  return
}

// -----

// out_weight leads back.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!mat = tensor<8x4xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !mat, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'out_weight' must be shared [4, 8] x f32 (heads * dv by d), but is shared [8, 4] x f32}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!vec, !u, !mat, !shared8) -> !vec
  return
}

// -----

// out_bias has an element per column.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared4 = tensor<4xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared4) {
  // expected-error@+1 {{'genrec.hstu_block' op 'out_bias' must be shared [8] x f32 (an element per column), but is shared [4] x f32}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!vec, !u, !w, !shared4) -> !vec
  return
}

// -----

// The block has silu scores.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op is defined with silu scores, but has softmax}}
  %0 = genrec.hstu_block softmax %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!vec, !u, !w, !shared8) -> !vec
  return
}

// -----

// The block follows the rules of attention.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'window' must be at least 0, but is -1}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64, window = -1 : i64} : (!vec, !u, !w, !shared8) -> !vec
  return
}

// -----

// The block follows the rules of biases.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8, %t: !id) {
  // expected-error@+1 {{'genrec.hstu_block' op needs 'time_bias' and 'time' together, but has only 'time'}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b time %t {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!vec, !u, !w, !shared8, !id) -> !vec
  return
}

// -----

// eps is not negative.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'eps' must be finite and at least 0, but is -0.1}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = -0.1 : f64} : (!vec, !u, !w, !shared8) -> !vec
  return
}

// -----

// linear_dropout is a rate.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'linear_dropout' must be in [0, 1), but is 1}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64, linear_dropout = 1.0 : f64} : (!vec, !u, !w, !shared8) -> !vec
  return
}

// -----

// The block keeps the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!u = tensor<8x16xf32>
!w = tensor<4x8xf32>
!shared8 = tensor<8xf32>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %u: !u, %w: !w, %b: !shared8) {
  // expected-error@+1 {{'genrec.hstu_block' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @request, [4] x f32}}
  %0 = genrec.hstu_block silu %x, %u, %w, %b {heads = 1 : i64, qk = 4 : i64, dv = 4 : i64, eps = 0.1 : f64} : (!vec, !u, !w, !shared8) -> !vec4
  return
}
