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

// -----

// multi_hash takes a value per row.
!ids = tensor<?x8xi64, #genrec.rows<@request>>
!two = tensor<?x2xi64, #genrec.rows<@request>>
func.func @test(%x: !ids) {
  // expected-error@+1 {{'genrec.multi_hash' op 'x' must be rows of a domain, [] x i64 or !genrec.string, but is rows of @request, [8] x i64}}
  %0 = genrec.multi_hash xxh3 %x {bits = 8 : i64} : (!ids) -> !two
  return
}

// -----

// multi_hash gives a vector of hashes.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.multi_hash' op 'result' must be rows of @request, [d] x i64 (some hashes per row of 'x'), but is rows of @request, [] x i64}}
  %0 = genrec.multi_hash xxh3 %x {bits = 8 : i64} : (!id) -> !id
  return
}

// -----

// Its hashes have at least a bit.
!id = tensor<?xi64, #genrec.rows<@request>>
!two = tensor<?x2xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.multi_hash' op 'bits' must be 1 to 63, but is 0}}
  %0 = genrec.multi_hash xxh3 %x {bits = 0 : i64} : (!id) -> !two
  return
}

// -----

// cross takes two columns.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.cross' op crosses two or more columns, but has 1}}
  %0 = genrec.cross xxh3 %x {bits = 8 : i64} : (!id) -> !id
  return
}

// -----

// cross takes ids.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !num) {
  // expected-error@+1 {{'genrec.cross' op 'column 1' must be a tensor, [] x i64 (the row shape of column 0), but is rows of @request, [] x f32}}
  %0 = genrec.cross xxh3 %x, %y {bits = 8 : i64} : (!id, !num) -> !id
  return
}

// -----

// cross fans nothing out.
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%x: !id, %y: !eid) {
  // expected-error@+1 {{'genrec.cross' op mixes rows of @request and @event: 'column 0' has rows of @request, [] x i64 and 'column 1' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.cross xxh3 %x, %y {bits = 8 : i64} : (!id, !eid) -> !eid
  return
}

// -----

// A cross has at most 63 bits.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.cross' op 'bits' must be 1 to 63, but is 64}}
  %0 = genrec.cross xxh3 %x, %x {bits = 64 : i64} : (!id, !id) -> !id
  return
}
