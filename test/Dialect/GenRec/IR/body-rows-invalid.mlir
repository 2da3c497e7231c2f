// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of body ops that load, store, gather and accumulate.

// row_load gives the whole row.
!h8 = !genrec.row<8>
!v4 = vector<4xf32>
func.func @test(%r: !h8) {
  // expected-error@+1 {{'genrec.row_load' op 'result' must be vector<8xf32> (the width of the row), but is vector<4xf32>}}
  %0 = genrec.row_load %r : (!h8) -> !v4
  return
}

// -----

// A state is a value per weight, or one for the row.
!h8 = !genrec.row<8>
!v4 = vector<4xf32>
func.func @test(%r: !h8) {
  // expected-error@+1 {{'genrec.row_load' op 'result' must be vector<8xf32> (the width of the row, or 1 for a state that the row has once), but is vector<4xf32>}}
  %0 = genrec.row_load %r {slot = 1 : i64} : (!h8) -> !v4
  return
}

// -----

// The value of a row is never one for all.
!h8 = !genrec.row<8>
!v1 = vector<1xf32>
func.func @test(%r: !h8, %x: !v1) {
  // expected-error@+1 {{'genrec.row_store' op 'value' must be vector<8xf32> (the width of the row), but is vector<1xf32>}}
  genrec.row_store %x to %r : !v1, !h8
  return
}

// -----

// Slots are numbered from 0.
!h8 = !genrec.row<8>
!v8 = vector<8xf32>
func.func @test(%r: !h8) {
  // expected-error@+1 {{'genrec.row_load' op 'slot' must be at least 0, but is -1}}
  %0 = genrec.row_load %r {slot = -1 : i64} : (!h8) -> !v8
  return
}

// -----

// row_store takes the whole row.
!h8 = !genrec.row<8>
func.func @test(%r: !h8, %x: f32) {
  // expected-error@+1 {{'genrec.row_store' op 'value' must be vector<8xf32> (the width of the row), but is f32}}
  genrec.row_store %x to %r : f32, !h8
  return
}

// -----

// row_store takes a slot from 0.
!h8 = !genrec.row<8>
!v8 = vector<8xf32>
func.func @test(%r: !h8, %x: !v8) {
  // expected-error@+1 {{'genrec.row_store' op 'slot' must be at least 0, but is -2}}
  genrec.row_store %x to %r {slot = -2 : i64} : !v8, !h8
  return
}

// -----

// A source has rows.
!scalar = tensor<f32>
func.func @test(%x: !scalar, %i: i64) {
  // expected-error@+1 {{'genrec.row_gather' op 'source' must be of rank 1 or 2, but is tensor<f32>}}
  %0 = genrec.row_gather %x[%i] : (!scalar, i64) -> f32
  return
}

// -----

// An index is i64.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!v8 = vector<8xf32>
func.func @test(%x: !cvec, %i: f32) {
  // expected-error@+1 {{'genrec.row_gather' op 'index' must be i64, for a source of rank 2, but is f32}}
  %0 = genrec.row_gather %x[%i] : (!cvec, f32) -> !v8
  return
}

// -----

// A vector of indices gathers scalars.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v8 = vector<8xf32>
func.func @test(%x: !cvec, %i: !i4) {
  // expected-error@+1 {{'genrec.row_gather' op 'index' must be i64, for a source of rank 2, but is vector<4xi64>}}
  %0 = genrec.row_gather %x[%i] : (!cvec, !i4) -> !v8
  return
}

// -----

// An index of scalars is i64 too.
!cid = tensor<?xi64, #genrec.rows<@items>>
!v4 = vector<4xf32>
!i4 = vector<4xi64>
func.func @test(%x: !cid, %i: !v4) {
  // expected-error@+1 {{'genrec.row_gather' op 'index' must be i64 or a vector of i64, but is vector<4xf32>}}
  %0 = genrec.row_gather %x[%i] : (!cid, !v4) -> !i4
  return
}

// -----

// row_gather gives a row.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!v4 = vector<4xf32>
func.func @test(%x: !cvec, %i: i64) {
  // expected-error@+1 {{'genrec.row_gather' op 'result' must be vector<8xf32> (what 'index' picks from 'source'), but is vector<4xf32>}}
  %0 = genrec.row_gather %x[%i] : (!cvec, i64) -> !v4
  return
}

// -----

// row_gather gives a scalar per index.
!cid = tensor<?xi64, #genrec.rows<@items>>
!i4 = vector<4xi64>
func.func @test(%x: !cid, %i: !i4) {
  // expected-error@+1 {{'genrec.row_gather' op 'result' must be vector<4xi64> (what 'index' picks from 'source'), but is i64}}
  %0 = genrec.row_gather %x[%i] : (!cid, !i4) -> i64
  return
}

// -----

// gather_dot takes rows of floats.
!cid = tensor<?xi64, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v8 = vector<8xf32>
!v4 = vector<4xf32>
func.func @test(%x: !cid, %i: !i4, %r: !v8) {
  // expected-error@+1 {{'genrec.gather_dot' op 'source' must be of rank 2, of floats, but is tensor<?xi64, #genrec.rows<@items>>}}
  %0 = genrec.gather_dot %x[%i], %r : (!cid, !i4, !v8) -> !v4
  return
}

// -----

// gather_dot takes a vector of indices.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!v8 = vector<8xf32>
func.func @test(%x: !cvec, %i: i64, %r: !v8) {
  // expected-error@+1 {{'genrec.gather_dot' op 'index' must be a vector of i64, but is i64}}
  %0 = genrec.gather_dot %x[%i], %r : (!cvec, i64, !v8) -> f32
  return
}

// -----

// gather_dot takes a row of the source.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v4 = vector<4xf32>
func.func @test(%x: !cvec, %i: !i4, %r: !v4) {
  // expected-error@+1 {{'genrec.gather_dot' op 'row' must be vector<8xf32> (a row of 'source'), but is vector<4xf32>}}
  %0 = genrec.gather_dot %x[%i], %r : (!cvec, !i4, !v4) -> !v4
  return
}

// -----

// gather_dot gives a product per index.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v8 = vector<8xf32>
func.func @test(%x: !cvec, %i: !i4, %r: !v8) {
  // expected-error@+1 {{'genrec.gather_dot' op 'result' must be vector<4xf32> (a dot product per index), but is vector<8xf32>}}
  %0 = genrec.gather_dot %x[%i], %r : (!cvec, !i4, !v8) -> !v8
  return
}

// -----

// gather_sum takes rows of floats.
!scalar = tensor<f32>
!i4 = vector<4xi64>
!v4 = vector<4xf32>
!v8 = vector<8xf32>
func.func @test(%x: !scalar, %i: !i4, %c: !v4) {
  // expected-error@+1 {{'genrec.gather_sum' op 'source' must be of rank 2, of floats, but is tensor<f32>}}
  %0 = genrec.gather_sum %x[%i], %c : (!scalar, !i4, !v4) -> !v8
  return
}

// -----

// gather_sum takes a coefficient per index.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v8 = vector<8xf32>
func.func @test(%x: !cvec, %i: !i4, %c: !v8) {
  // expected-error@+1 {{'genrec.gather_sum' op 'coefficient' must be vector<4xf32> (one per index), but is vector<8xf32>}}
  %0 = genrec.gather_sum %x[%i], %c : (!cvec, !i4, !v8) -> !v8
  return
}

// -----

// gather_sum gives a row of the source.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!i4 = vector<4xi64>
!v4 = vector<4xf32>
func.func @test(%x: !cvec, %i: !i4, %c: !v4) {
  // expected-error@+1 {{'genrec.gather_sum' op 'result' must be vector<8xf32> (a row of 'source'), but is vector<4xf32>}}
  %0 = genrec.gather_sum %x[%i], %c : (!cvec, !i4, !v4) -> !v4
  return
}

// -----

// An index needs rows.
!acc0 = !genrec.accumulator<tensor<f32>>
func.func @test(%a: !acc0, %x: f32, %i: i64) {
  // expected-error@+1 {{'genrec.accumulate' op has an 'index', but 'accumulator' is of rank 0}}
  genrec.accumulate %x into %a at %i : !acc0, f32, i64
  return
}

// -----

// Rows need an index.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
!v8 = vector<8xf32>
func.func @test(%a: !accrows, %x: !v8) {
  // expected-error@+1 {{'genrec.accumulate' op needs an 'index' for 'accumulator' rows of @items, [8] x f32}}
  genrec.accumulate %x into %a : !accrows, !v8
  return
}

// -----

// A matrix needs an index.
!acc2 = !genrec.accumulator<tensor<4x8xf32>>
!v8 = vector<8xf32>
func.func @test(%a: !acc2, %x: !v8) {
  // expected-error@+1 {{'genrec.accumulate' op adds scalars and vectors, but 'accumulator' is shared [4, 8] x f32; give an 'index'}}
  genrec.accumulate %x into %a : !acc2, !v8
  return
}

// -----

// A value is all of the accumulator.
!acc8 = !genrec.accumulator<tensor<8xf32>>
!v4 = vector<4xf32>
func.func @test(%a: !acc8, %x: !v4) {
  // expected-error@+1 {{'genrec.accumulate' op 'value' must be vector<8xf32> (all of 'accumulator'), but is vector<4xf32>}}
  genrec.accumulate %x into %a : !acc8, !v4
  return
}

// -----

// A value is a row of the accumulator.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
func.func @test(%a: !accrows, %x: f32, %i: i64) {
  // expected-error@+1 {{'genrec.accumulate' op 'value' must be vector<8xf32> (a row of 'accumulator'), but is f32}}
  genrec.accumulate %x into %a at %i : !accrows, f32, i64
  return
}

// -----

// A coefficient needs an index.
!acc8 = !genrec.accumulator<tensor<8xf32>>
!v8 = vector<8xf32>
!v4 = vector<4xf32>
func.func @test(%a: !acc8, %x: !v8, %c: !v4) {
  // expected-error@+1 {{'genrec.accumulate' op has a 'coefficient', but no 'index'}}
  genrec.accumulate %x into %a times %c : !acc8, !v8, !v4
  return
}

// -----

// An index of an accumulator is i64.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
!v8 = vector<8xf32>
func.func @test(%a: !accrows, %x: !v8, %i: f32) {
  // expected-error@+1 {{'genrec.accumulate' op 'index' must be i64 or a vector of i64, but is f32}}
  genrec.accumulate %x into %a at %i : !accrows, !v8, f32
  return
}

// -----

// A vector of indices needs coefficients.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
!v8 = vector<8xf32>
!i4 = vector<4xi64>
func.func @test(%a: !accrows, %x: !v8, %i: !i4) {
  // expected-error@+1 {{'genrec.accumulate' op takes a 'coefficient' per element of a vector 'index', and none for a scalar one}}
  genrec.accumulate %x into %a at %i : !accrows, !v8, !i4
  return
}

// -----

// One index has no coefficient.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
!v8 = vector<8xf32>
func.func @test(%a: !accrows, %x: !v8, %i: i64, %c: f32) {
  // expected-error@+1 {{'genrec.accumulate' op takes a 'coefficient' per element of a vector 'index', and none for a scalar one}}
  genrec.accumulate %x into %a at %i times %c : !accrows, !v8, i64, f32
  return
}

// -----

// There is a coefficient per index.
!accrows = !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>
!v8 = vector<8xf32>
!i4 = vector<4xi64>
func.func @test(%a: !accrows, %x: !v8, %i: !i4, %c: !v8) {
  // expected-error@+1 {{'genrec.accumulate' op 'coefficient' must be vector<4xf32> (one per index), but is vector<8xf32>}}
  genrec.accumulate %x into %a at %i times %c : !accrows, !v8, !i4, !v8
  return
}
