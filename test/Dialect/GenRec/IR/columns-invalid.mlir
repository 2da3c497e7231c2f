// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of what is done along a row: reductions, columns, norms, dropout.

// row_reduce takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.row_reduce' op 'x' must be a tensor, [d] x i32, i64, f32 or f64 (kind sum), but is rows of @request, [] x f32}}
  %0 = genrec.row_reduce sum %x : (!num) -> !num
  return
}

// -----

// A mean is of floats.
!ids = tensor<?x8xi64, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !ids) {
  // expected-error@+1 {{'genrec.row_reduce' op 'x' must be a tensor, [d] x f32 or f64 (kind mean), but is rows of @request, [8] x i64}}
  %0 = genrec.row_reduce mean %x : (!ids) -> !id
  return
}

// -----

// row_reduce gives a scalar per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.row_reduce' op 'result' must be rows of @request, [] x f32 (a value per row of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.row_reduce max %x : (!vec) -> !vec
  return
}

// -----

// concat_columns joins something.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test() {
  // expected-error@+1 {{'genrec.concat_columns' op needs at least one part}}
  %0 = "genrec.concat_columns"() : () -> !vec
  return
}

// -----

// concat_columns takes one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %y: !evec) {
  // expected-error@+1 {{'genrec.concat_columns' op mixes rows of @request and @event: 'part 0' has rows of @request, [8] x f32 and 'part 1' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.concat_columns %x, %y : (!vec, !evec) -> !vec
  return
}

// -----

// concat_columns takes rows or shared tensors, not both.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
func.func @test(%x: !vec, %y: !shared8) {
  // expected-error@+1 {{'genrec.concat_columns' op 'part 1' must be rows of @request, [d] x f32 (as part 0), but is shared [8] x f32}}
  %0 = genrec.concat_columns %x, %y : (!vec, !shared8) -> !vec
  return
}

// -----

// concat_columns takes one element type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec64 = tensor<?x8xf64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !vec64) {
  // expected-error@+1 {{'genrec.concat_columns' op 'part 1' must be rows of @request, [d] x f32 (as part 0), but is rows of @request, [8] x f64}}
  %0 = genrec.concat_columns %x, %y : (!vec, !vec64) -> !vec
  return
}

// -----

// concat_columns takes vectors and scalars.
!shared8 = tensor<8xf32>
!mat = tensor<8x4xf32>
func.func @test(%x: !shared8, %y: !mat) {
  // expected-error@+1 {{'genrec.concat_columns' op 'part 1' must be shared [d] x f32 (as part 0), but is shared [8, 4] x f32}}
  %0 = genrec.concat_columns %x, %y : (!shared8, !mat) -> !shared8
  return
}

// -----

// concat_columns gives all columns.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %y: !num) {
  // expected-error@+1 {{'genrec.concat_columns' op 'result' must be rows of @request, [9] x f32 (the parts end to end), but is rows of @request, [8] x f32}}
  %0 = genrec.concat_columns %x, %y, %x : (!vec4, !num, !vec4) -> !vec
  return
}

// -----

// concat_columns takes no strings.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !text) {
  // expected-error@+1 {{'genrec.concat_columns' op 'part 0' must be a tensor of element type i1, i32, i64, f32 or f64, but is rows of @request, [] x !genrec.string}}
  %0 = genrec.concat_columns %x : (!text) -> !vec
  return
}

// -----

// slice_columns takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.slice_columns' op 'x' must be a tensor, [d] x i1, i32, i64, f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.slice_columns %x from 0 : (!num) -> !num
  return
}

// -----

// slice_columns keeps rows.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared4 = tensor<4xf32>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.slice_columns' op 'result' must be rows of @request, [d] x f32 (a range of the columns of 'x'), but is shared [4] x f32}}
  %0 = genrec.slice_columns %x from 0 : (!vec) -> !shared4
  return
}

// -----

// slice_columns takes columns that there are.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.slice_columns' op takes columns [5, 9) of 'x', which has 8}}
  %0 = genrec.slice_columns %x from 5 : (!vec) -> !vec4
  return
}

// -----

// slice_columns starts in the row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.slice_columns' op takes columns [-1, 3) of 'x', which has 8}}
  %0 = genrec.slice_columns %x from -1 : (!vec) -> !vec4
  return
}

// -----

// layer_norm takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.layer_norm' op 'x' must be a tensor, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.layer_norm %x {eps = 0.1 : f64} : (!num) -> !num
  return
}

// -----

// scale has an element per column.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared4 = tensor<4xf32>
func.func @test(%x: !vec, %s: !shared4) {
  // expected-error@+1 {{'genrec.layer_norm' op 'scale' must be shared [8] x f32 (an element per column of 'x'), but is shared [4] x f32}}
  %0 = genrec.layer_norm %x scale %s {eps = 0.1 : f64} : (!vec, !shared4) -> !vec
  return
}

// -----

// bias is shared.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.layer_norm' op 'bias' must be shared [8] x f32 (an element per column of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.layer_norm %x bias %x {eps = 0.1 : f64} : (!vec, !vec) -> !vec
  return
}

// -----

// layer_norm keeps the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.layer_norm' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @event, [8] x f32}}
  %0 = genrec.layer_norm %x {eps = 0.1 : f64} : (!vec) -> !evec
  return
}

// -----

// eps is not negative.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.layer_norm' op 'eps' must be finite and at least 0, but is -0.1}}
  %0 = genrec.layer_norm %x {eps = -0.1 : f64} : (!vec) -> !vec
  return
}

// -----

// rms_norm takes floats.
!ids = tensor<?x8xi64, #genrec.rows<@request>>
func.func @test(%x: !ids) {
  // expected-error@+1 {{'genrec.rms_norm' op 'x' must be a tensor, [d] x f32 or f64, but is rows of @request, [8] x i64}}
  %0 = genrec.rms_norm %x {eps = 0.1 : f64} : (!ids) -> !ids
  return
}

// -----

// scale of rms_norm has an element per column.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared4 = tensor<4xf32>
func.func @test(%x: !vec, %s: !shared4) {
  // expected-error@+1 {{'genrec.rms_norm' op 'scale' must be shared [8] x f32 (an element per column of 'x'), but is shared [4] x f32}}
  %0 = genrec.rms_norm %x scale %s {eps = 0.1 : f64} : (!vec, !shared4) -> !vec
  return
}

// -----

// eps of rms_norm is finite.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.rms_norm' op 'eps' must be finite and at least 0, but is nan}}
  %0 = genrec.rms_norm %x {eps = 0x7FF8000000000000 : f64} : (!vec) -> !vec
  return
}

// -----

// l2_normalize takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.l2_normalize' op 'x' must be a tensor, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.l2_normalize %x {eps = 0.1 : f64} : (!num) -> !num
  return
}

// -----

// eps of l2_normalize is not negative.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.l2_normalize' op 'eps' must be finite and at least 0, but is -1}}
  %0 = genrec.l2_normalize %x {eps = -1.0 : f64} : (!vec) -> !vec
  return
}

// -----

// dropout takes rows.
!shared8 = tensor<8xf32>
func.func @test(%x: !shared8) {
  // expected-error@+1 {{'genrec.dropout' op 'x' must be rows of a domain, of element type f32 or f64, but is shared [8] x f32}}
  %0 = genrec.dropout %x {rate = 0.5 : f64, stream = 0 : i64} : (!shared8) -> !shared8
  return
}

// -----

// dropout keeps the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dropout' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @request, [] x f32}}
  %0 = genrec.dropout %x {rate = 0.5 : f64, stream = 0 : i64} : (!vec) -> !num
  return
}

// -----

// Not everything is dropped.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dropout' op 'rate' must be in [0, 1), but is 1}}
  %0 = genrec.dropout %x {rate = 1.0 : f64, stream = 0 : i64} : (!vec) -> !vec
  return
}

// -----

// Streams are numbered from 0.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.dropout' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.dropout %x {rate = 0.5 : f64, stream = -1 : i64} : (!vec) -> !vec
  return
}
