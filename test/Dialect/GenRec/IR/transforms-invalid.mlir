// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of transforms of ids and raw values.

// hash takes ids and strings.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.hash' op 'x' must be a tensor of element type i64 or !genrec.string, but is rows of @request, [] x f32}}
  %0 = genrec.hash xxh3 %x {bits = 8 : i64} : (!num) -> !id
  return
}

// -----

// hash gives i64.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
func.func @test(%x: !text) {
  // expected-error@+1 {{'genrec.hash' op 'result' must be rows of @request, [] x i64 (a value per value of 'x'), but is rows of @request, [] x !genrec.string}}
  %0 = genrec.hash xxh3 %x {bits = 8 : i64} : (!text) -> !text
  return
}

// -----

// hash gives a hash per value.
!ids = tensor<?x8xi64, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !ids) {
  // expected-error@+1 {{'genrec.hash' op 'result' must be rows of @request, [8] x i64 (a value per value of 'x'), but is rows of @request, [] x i64}}
  %0 = genrec.hash xxh3 %x {bits = 8 : i64} : (!ids) -> !id
  return
}

// -----

// A hash has at most 63 bits.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.hash' op 'bits' must be 1 to 63, but is 64}}
  %0 = genrec.hash murmur3 %x {bits = 64 : i64} : (!id) -> !id
  return
}

// -----

// mod takes i64.
!int = tensor<?xi32, #genrec.rows<@request>>
func.func @test(%x: !int) {
  // expected-error@+1 {{'genrec.mod' op 'x' must be a tensor of element type i64, but is rows of @request, [] x i32}}
  %0 = genrec.mod %x {divisor = 8 : i64} : (!int) -> !int
  return
}

// -----

// mod gives i64.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.mod' op 'result' must be rows of @request, [] x i64 (a value per value of 'x'), but is rows of @request, [] x f32}}
  %0 = genrec.mod %x {divisor = 8 : i64} : (!id) -> !num
  return
}

// -----

// A divisor is positive.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{custom op 'genrec.mod' 'genrec.mod' op attribute 'divisor' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = genrec.mod %x {divisor = 0 : i64} : (!id) -> !id
  return
}

// -----

// bucketize takes numbers.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !text) {
  // expected-error@+1 {{'genrec.bucketize' op 'x' must be a tensor of element type i64, f32 or f64, but is rows of @request, [] x !genrec.string}}
  %0 = genrec.bucketize %x {edges = array<f64: 1.0>} : (!text) -> !id
  return
}

// -----

// bucketize gives i64.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.bucketize' op 'result' must be rows of @request, [] x i64 (a value per value of 'x'), but is rows of @request, [] x f32}}
  %0 = genrec.bucketize %x {edges = array<f64: 1.0>} : (!num) -> !num
  return
}

// -----

// bucketize has edges.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.bucketize' op 'edges' must have 1 to 4096 values, but has 0}}
  %0 = genrec.bucketize %x {edges = array<f64>} : (!num) -> !id
  return
}

// -----

// Edges ascend.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.bucketize' op 'edges' must ascend, but value 1 does not}}
  %0 = genrec.bucketize %x {edges = array<f64: 1.0, 1.0>} : (!num) -> !id
  return
}

// -----

// Edges are numbers.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.bucketize' op 'edges' must ascend, but value 0 does not}}
  %0 = genrec.bucketize %x {edges = array<f64: 0x7FF8000000000000>} : (!num) -> !id
  return
}

// -----

// cast takes numbers.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !text) {
  // expected-error@+1 {{'genrec.cast' op 'x' must be a tensor of element type i1, i32, i64, f32 or f64, but is rows of @request, [] x !genrec.string}}
  %0 = genrec.cast %x : (!text) -> !id
  return
}

// -----

// cast keeps rows.
!id = tensor<?xi64, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.cast' op 'result' must be rows of @request, [] x i1, i32, i64, f32 or f64 (a value per value of 'x'), but is rows of @event, [] x f32}}
  %0 = genrec.cast %x : (!id) -> !enum
  return
}

// -----

// cast keeps the row shape.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.cast' op 'result' must be rows of @request, [] x i1, i32, i64, f32 or f64 (a value per value of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.cast %x : (!id) -> !vec
  return
}
