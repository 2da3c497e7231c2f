// RUN: genrec-opt %s --plugin=%build/lib/own_op.so --split-input-file --verify-diagnostics

// x0 holds rows.
!s = tensor<4xf32>
!w = tensor<4x4xf32>
func.func @test(%x: !s, %w: !w) {
  // expected-error@+1 {{'own.gated_cross' op 'x0' must be rows of a domain, [d] x f32, but is shared [4] x f32}}
  %0 = own.gated_cross %x, %x, %w, %x, %w : (!s, !s, !w, !s, !w) -> !s
  return
}

// -----

// x is as x0.
!r = tensor<?x4xf32, #genrec.rows<@request>>
!h = tensor<?x4xf32, #genrec.rows<@history>>
!s = tensor<4xf32>
!w = tensor<4x4xf32>
func.func @test(%x0: !r, %x: !h, %w: !w, %b: !s) {
  // expected-error@+1 {{'own.gated_cross' op 'x' must be rows of @request, [4] x f32}}
  %0 = own.gated_cross %x0, %x, %w, %b, %w : (!r, !h, !w, !s, !w) -> !r
  return
}

// -----

// The weight is square.
!r = tensor<?x4xf32, #genrec.rows<@request>>
!s = tensor<4xf32>
!w = tensor<4x4xf32>
!n = tensor<4x3xf32>
func.func @test(%x: !r, %n: !n, %w: !w, %b: !s) {
  // expected-error@+1 {{'own.gated_cross' op 'weight' must be shared [4, 4] x f32, but is shared [4, 3] x f32}}
  %0 = own.gated_cross %x, %x, %n, %b, %w : (!r, !r, !n, !s, !w) -> !r
  return
}

// -----

// The bias has an element per column.
!r = tensor<?x4xf32, #genrec.rows<@request>>
!s = tensor<3xf32>
!w = tensor<4x4xf32>
func.func @test(%x: !r, %w: !w, %b: !s) {
  // expected-error@+1 {{'own.gated_cross' op 'bias' must be shared [4] x f32, but is shared [3] x f32}}
  %0 = own.gated_cross %x, %x, %w, %b, %w : (!r, !r, !w, !s, !w) -> !r
  return
}

// -----

// The gate is as the weight.
!r = tensor<?x4xf32, #genrec.rows<@request>>
!s = tensor<4xf32>
!w = tensor<4x4xf32>
!n = tensor<4xf32>
func.func @test(%x: !r, %w: !w, %b: !s) {
  // expected-error@+1 {{'own.gated_cross' op 'gate' must be shared [4, 4] x f32, but is shared [4] x f32}}
  %0 = own.gated_cross %x, %x, %w, %b, %b : (!r, !r, !w, !s, !s) -> !r
  return
}

// -----

// The result is as x0.
!r = tensor<?x4xf32, #genrec.rows<@request>>
!t = tensor<?x3xf32, #genrec.rows<@request>>
!s = tensor<4xf32>
!w = tensor<4x4xf32>
func.func @test(%x: !r, %w: !w, %b: !s) {
  // expected-error@+1 {{'own.gated_cross' op 'result' must be rows of @request, [4] x f32}}
  %0 = own.gated_cross %x, %x, %w, %b, %w : (!r, !r, !w, !s, !w) -> !t
  return
}
