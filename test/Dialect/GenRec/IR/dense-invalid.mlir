// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of dense layers.

// linear takes rows.
!shared8 = tensor<8xf32>
!mat = tensor<8x4xf32>
!shared4 = tensor<4xf32>
func.func @test(%x: !shared8, %w: !mat) {
  // expected-error@+1 {{'genrec.linear' op 'x' must be rows of a domain, [d] x f32 or f64, but is shared [8] x f32}}
  %0 = genrec.linear %x, %w : (!shared8, !mat) -> !shared4
  return
}

// -----

// weight has a row per column of x.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !vec4, %w: !mat) {
  // expected-error@+1 {{'genrec.linear' op 'weight' must be shared [4, d] x f32 (a row per column of 'x'), but is shared [8, 4] x f32}}
  %0 = genrec.linear %x, %w : (!vec4, !mat) -> !vec4
  return
}

// -----

// A transposed weight has a column per column of x.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %w: !mat) {
  // expected-error@+1 {{'genrec.linear' op 'weight' must be shared [n, 8] x f32 (a column per column of 'x'), but is shared [8, 4] x f32}}
  %0 = genrec.linear %x, %w {transposed} : (!vec, !mat) -> !vec4
  return
}

// -----

// weight is shared.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.linear' op 'weight' must be shared [8, d] x f32 (a row per column of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.linear %x, %x : (!vec, !vec) -> !vec4
  return
}

// -----

// weight has the element type of x.
!vec64 = tensor<?x8xf64, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec64, %w: !mat) {
  // expected-error@+1 {{'genrec.linear' op 'weight' must be shared [8, d] x f64 (a row per column of 'x'), but is shared [8, 4] x f32}}
  %0 = genrec.linear %x, %w : (!vec64, !mat) -> !vec4
  return
}

// -----

// bias has an element per column of the result.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!shared8 = tensor<8xf32>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %w: !mat, %b: !shared8) {
  // expected-error@+1 {{'genrec.linear' op 'bias' must be shared [4] x f32 (an element per column of the result), but is shared [8] x f32}}
  %0 = genrec.linear %x, %w bias %b : (!vec, !mat, !shared8) -> !vec4
  return
}

// -----

// linear gives rows of x times weight.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !vec, %w: !mat) {
  // expected-error@+1 {{'genrec.linear' op 'result' must be rows of @request, [4] x f32 (x times weight), but is rows of @request, [8] x f32}}
  %0 = genrec.linear %x, %w : (!vec, !mat) -> !vec
  return
}

// -----

// weight_gradient takes rows.
!shared8 = tensor<8xf32>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !shared8, %y: !vec) {
  // expected-error@+1 {{'genrec.weight_gradient' op 'x' must be rows of a domain, [d] x f32 or f64, but is shared [8] x f32}}
  %0 = genrec.weight_gradient %x, %y : (!shared8, !vec) -> !mat
  return
}

// -----

// weight_gradient takes one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!mat88 = tensor<8x8xf32>
func.func @test(%x: !vec, %y: !evec) {
  // expected-error@+1 {{'genrec.weight_gradient' op mixes rows of @request and @event: 'x' has rows of @request, [8] x f32 and 'y' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.weight_gradient %x, %y : (!vec, !evec) -> !mat88
  return
}

// -----

// weight_gradient takes two vectors.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %y: !num) {
  // expected-error@+1 {{'genrec.weight_gradient' op 'y' must be rows of @request, [d] x f32, but is rows of @request, [] x f32}}
  %0 = genrec.weight_gradient %x, %y : (!vec, !num) -> !shared8
  return
}

// -----

// weight_gradient gives columns by columns.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !vec, %y: !vec4) {
  // expected-error@+1 {{'genrec.weight_gradient' op 'result' must be shared [4, 8] x f32 (columns of 'x' by columns of 'y'), but is shared [8, 4] x f32}}
  %0 = genrec.weight_gradient %y, %x : (!vec4, !vec) -> !mat
  return
}

// -----

// reduce_rows takes rows of numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag) {
  // expected-error@+1 {{'genrec.reduce_rows' op 'x' must be rows of a domain, of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.reduce_rows %x : (!flag) -> tensor<i1>
  return
}

// -----

// reduce_rows gives a shared row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.reduce_rows' op 'result' must be shared [8] x f32 (the sum of the rows of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.reduce_rows %x : (!vec) -> !vec
  return
}

// -----

// Random numbers are drawn for the rows of the domain.
!request = !genrec.domain<@request>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.random_uniform' op 'result' must be rows of @request, of element type f32, but is rows of @event, [] x f32}}
  %0 = genrec.random_uniform %d {stream = 0 : i64} : (!request) -> !enum
  return
}

// -----

// Random numbers have a stream.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.random_uniform' op 'stream' must be at least 0, but is -3}}
  %0 = genrec.random_uniform %d {stream = -3 : i64} : (!request) -> !num
  return
}
