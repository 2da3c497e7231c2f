// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of body ops that draw, transform and reshape.

// A mask is i1.
!v8 = vector<8xf32>
func.func @test() {
  // expected-error@+1 {{'genrec.keep_mask' op 'result' must be i1 or a vector of i1, but is vector<8xf32>}}
  %0 = genrec.keep_mask {rate = 0.5 : f64, stream = 0 : i64} : !v8
  return
}

// -----

// A mask keeps something.
func.func @test() {
  // expected-error@+1 {{'genrec.keep_mask' op 'rate' must be in [0, 1), but is 1}}
  %0 = genrec.keep_mask {rate = 1.0 : f64, stream = 0 : i64} : i1
  return
}

// -----

// Streams are numbered from 0.
func.func @test() {
  // expected-error@+1 {{'genrec.keep_mask' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.keep_mask {rate = 0.5 : f64, stream = -1 : i64} : i1
  return
}

// -----

// Row numbers are of a source with rows.
!scalar = tensor<f32>
!i4 = vector<4xi64>
func.func @test(%x: !scalar) {
  // expected-error@+1 {{'genrec.random_index' op 'source' must be of rank 1 or 2, but is tensor<f32>}}
  %0 = genrec.random_index %x {stream = 0 : i64} : (!scalar) -> !i4
  return
}

// -----

// Row numbers are a vector of i64.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%x: !cvec) {
  // expected-error@+1 {{'genrec.random_index' op 'result' must be a vector of i64, but is i64}}
  %0 = genrec.random_index %x {stream = 0 : i64} : (!cvec) -> i64
  return
}

// -----

// Draws have a stream from 0.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
func.func @test(%x: !cvec) {
  // expected-error@+1 {{'genrec.random_index' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.random_index %x {stream = -1 : i64} : (!cvec) -> !i4
  return
}

// -----

// row_round takes vectors of f32.
func.func @test(%x: vector<4xf64>) {
  // expected-error@+1 {{'genrec.row_round' op 'x' must be a vector of f32, but is vector<4xf64>}}
  %0 = genrec.row_round %x by %x : vector<4xf64>, vector<4xf64>
  return
}

// -----

// It takes as many random bits as elements.
func.func @test(%x: vector<4xf32>, %bits: vector<5xi16>) {
  // expected-error@+1 {{'genrec.row_round' op 'bits' must be vector<4xi16> (16 random bits per element), but is vector<5xi16>}}
  %0 = genrec.row_round %x by %bits : vector<4xf32>, vector<5xi16>
  return
}

// -----

// Random bits are 16 per element.
func.func @test() {
  // expected-error@+1 {{'genrec.row_bits' op 'result' must be a vector of i16, but is vector<4xi32>}}
  %0 = genrec.row_bits {stream = 0 : i64} : vector<4xi32>
  return
}

// -----

func.func @test() {
  // expected-error@+1 {{'genrec.row_bits' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.row_bits {stream = -1 : i64} : vector<4xi16>
  return
}

// -----

// row_hash takes i64 and strings.
func.func @test(%x: f32) {
  // expected-error@+1 {{'genrec.row_hash' op 'x' must be i64, a vector of i64 or !genrec.string, but is f32}}
  %0 = genrec.row_hash xxh3 %x {bits = 8 : i64, seed = 0 : i64} : (f32) -> i64
  return
}

// -----

// row_hash gives i64.
!str = !genrec.string
func.func @test(%x: !str) {
  // expected-error@+1 {{'genrec.row_hash' op 'result' must be i64 (a hash per element of 'x'), but is !genrec.string}}
  %0 = genrec.row_hash xxh3 %x {bits = 8 : i64, seed = 0 : i64} : (!str) -> !str
  return
}

// -----

// row_hash gives up to 63 bits.
func.func @test(%x: i64) {
  // expected-error@+1 {{'genrec.row_hash' op 'bits' must be 1 to 63, but is 0}}
  %0 = genrec.row_hash xxh3 %x {bits = 0 : i64, seed = 0 : i64} : (i64) -> i64
  return
}

// -----

// row_bucketize takes numbers.
!str = !genrec.string
func.func @test(%x: !str) {
  // expected-error@+1 {{'genrec.row_bucketize' op 'x' must be f32, f64, i64 or a vector of them, but is !genrec.string}}
  %0 = genrec.row_bucketize %x {edges = array<f64: 0.0>} : (!str) -> i64
  return
}

// -----

// row_bucketize gives a bucket per element.
!v4 = vector<4xf32>
func.func @test(%x: !v4) {
  // expected-error@+1 {{'genrec.row_bucketize' op 'result' must be vector<4xi64> (a bucket per element of 'x'), but is i64}}
  %0 = genrec.row_bucketize %x {edges = array<f64: 0.0>} : (!v4) -> i64
  return
}

// -----

// Edges of row_bucketize ascend.
func.func @test(%x: f32) {
  // expected-error@+1 {{'genrec.row_bucketize' op 'edges' must ascend, but value 1 does not}}
  %0 = genrec.row_bucketize %x {edges = array<f64: 1.0, 0.0>} : (f32) -> i64
  return
}

// -----

// row_iota gives i64.
!v8 = vector<8xf32>
func.func @test() {
  // expected-error@+1 {{'genrec.row_iota' op 'result' must be a vector of i64, but is vector<8xf32>}}
  %0 = genrec.row_iota : !v8
  return
}

// -----

// row_concat joins something.
!v8 = vector<8xf32>
func.func @test() {
  // expected-error@+1 {{'genrec.row_concat' op needs at least one part}}
  %0 = "genrec.row_concat"() : () -> !v8
  return
}

// -----

// row_concat takes scalars and vectors.
!v2d = vector<2x4xf32>
!v8 = vector<8xf32>
func.func @test(%x: !v2d) {
  // expected-error@+1 {{'genrec.row_concat' op 'part 0' must be f32 or a vector of it, as part 0, but is vector<2x4xf32>}}
  %0 = genrec.row_concat %x : (!v2d) -> !v8
  return
}

// -----

// row_concat takes one element type.
!v4 = vector<4xf32>
!v8 = vector<8xf32>
func.func @test(%x: !v4, %y: i64) {
  // expected-error@+1 {{'genrec.row_concat' op 'part 1' must be f32 or a vector of it, as part 0, but is i64}}
  %0 = genrec.row_concat %x, %y : (!v4, i64) -> !v8
  return
}

// -----

// row_concat takes elements of vectors.
!str = !genrec.string
!v8 = vector<8xf32>
func.func @test(%x: !str) {
  // expected-error@+1 {{'genrec.row_concat' op 'part 0' must be of an element type that vectors may have, but is !genrec.string}}
  %0 = genrec.row_concat %x : (!str) -> !v8
  return
}

// -----

// row_concat gives all elements.
!v4 = vector<4xf32>
!v8 = vector<8xf32>
func.func @test(%x: !v4, %y: f32) {
  // expected-error@+1 {{'genrec.row_concat' op 'result' must be vector<5xf32> (the parts end to end), but is vector<8xf32>}}
  %0 = genrec.row_concat %x, %y : (!v4, f32) -> !v8
  return
}

// -----

// row_slice takes a vector.
!v4 = vector<4xf32>
func.func @test(%x: f32) {
  // expected-error@+1 {{'genrec.row_slice' op 'x' must be a vector, but is f32}}
  %0 = genrec.row_slice %x from 0 : (f32) -> !v4
  return
}

// -----

// row_slice keeps the element type.
!v8 = vector<8xf32>
!i4 = vector<4xi64>
func.func @test(%x: !v8) {
  // expected-error@+1 {{'genrec.row_slice' op 'result' must be a vector of f32, but is vector<4xi64>}}
  %0 = genrec.row_slice %x from 0 : (!v8) -> !i4
  return
}

// -----

// row_slice takes elements that there are.
!v8 = vector<8xf32>
!v4 = vector<4xf32>
func.func @test(%x: !v8) {
  // expected-error@+1 {{'genrec.row_slice' op takes elements [5, 9) of 'x', which has 8}}
  %0 = genrec.row_slice %x from 5 : (!v8) -> !v4
  return
}

// -----

// row_slice starts in the vector.
!v8 = vector<8xf32>
!v4 = vector<4xf32>
func.func @test(%x: !v8) {
  // expected-error@+1 {{'genrec.row_slice' op takes elements [-1, 3) of 'x', which has 8}}
  %0 = genrec.row_slice %x from -1 : (!v8) -> !v4
  return
}

// -----

// Random numbers are floats.
func.func @test() {
  // expected-error@+1 {{'genrec.row_uniform' op 'result' must be f32 or a vector of f32, but is i64}}
  %0 = genrec.row_uniform {stream = 0 : i64} : i64
  return
}

// -----

// Streams are numbered from 0.
func.func @test() {
  // expected-error@+1 {{'genrec.row_uniform' op 'stream' must be at least 0, but is -1}}
  %0 = genrec.row_uniform {stream = -1 : i64} : f32
  return
}
