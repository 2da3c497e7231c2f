// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of distinct_rows, distinct_linear and its gradient.

// distinct_rows needs a lookup.
func.func @test() {
  // expected-error@+1 {{'genrec.distinct_rows' op needs the rows of at least one lookup in each group}}
  %d, %h = genrec.distinct_rows() : () -> (!genrec.domain<@d>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>)
  return
}

// -----

// distinct_rows takes handles.
!x = tensor<?x4xf32, #genrec.rows<@user>>
func.func @test(%x: !x) {
  // expected-error@+1 {{'genrec.distinct_rows' op 'rows 0' must be rows of a domain, [] x !genrec.row, but is rows of @user, [4] x f32}}
  %d, %h = genrec.distinct_rows(%x) : (!x) -> (!genrec.domain<@d>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>)
  return
}

// -----

// All lookups are alike.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!s = tensor<?x!genrec.row<4>, #genrec.rows<@event>>
func.func @test(%r: !r, %s: !s) {
  // expected-error@+1 {{'genrec.distinct_rows' op 'rows 1' must be}}
  %d, %h = genrec.distinct_rows(%r, %s) : (!r, !s) -> (!genrec.domain<@d>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>)
  return
}

// -----

// The lookups of a group have one width.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!s = tensor<?x!genrec.row<8>, #genrec.rows<@user>>
func.func @test(%r: !r, %s: !s) {
  // expected-error@+1 {{'genrec.distinct_rows' op 'rows 1' must be rows of @user, [] x !genrec.row<4> (a row of the domain of 'rows 0', of one width within a group), but is rows of @user, [] x !genrec.row<8>}}
  %d, %h = genrec.distinct_rows(%r, %s) : (!r, !s) -> (!genrec.domain<@d>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>)
  return
}

// -----

// Groups have lookups of one domain.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!s = tensor<?x!genrec.row<8>, #genrec.rows<@event>>
func.func @test(%r: !r, %s: !s) {
  // expected-error@+1 {{'genrec.distinct_rows' op 'rows 1' must be rows of @user, [] x !genrec.row<8>}}
  %d, %e, %h, %i = genrec.distinct_rows(%r), (%s) : (!r, !s) -> (!genrec.domain<@d>, !genrec.domain<@e>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>, tensor<?x!genrec.row<8>, #genrec.rows<@e>>)
  return
}

// -----

// Each group has a domain.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
func.func @test(%r: !r) {
  // expected-error@+1 {{'genrec.distinct_rows' op needs a domain and handles per group of lookups, 2, but has 1}}
  %d, %h = genrec.distinct_rows(%r), (%r) : (!r, !r) -> (!genrec.domain<@d>, tensor<?x!genrec.row<4>, #genrec.rows<@d>>)
  return
}

// -----

// No group is empty.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!er = tensor<?x!genrec.row<4>, #genrec.rows<@e>>
func.func @test(%r: !r) {
  // expected-error@+1 {{'genrec.distinct_rows' op needs the rows of at least one lookup in each group}}
  %d, %e, %h, %i = genrec.distinct_rows(%r), () : (!r) -> (!genrec.domain<@d>, !genrec.domain<@e>, !dr, !er)
  return
}

// -----

// The handles are rows of the new domain.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
func.func @test(%r: !r) {
  // expected-error@+1 {{'genrec.distinct_rows' op 'handles' must be rows of @d, [] x !genrec.row<4> (the distinct rows), but is rows of @user, [] x !genrec.row<4>}}
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !r)
  return
}

// -----

// distinct_linear works on what distinct_rows found.
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%d: !genrec.domain<@d>, %v: !v, %w: tensor<9x8xf32>) {
  // expected-error@+1 {{'genrec.distinct_linear' op multiplies rows found by genrec.distinct_rows, but domain @d is made otherwise}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// All groups are multiplied.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!er = tensor<?x!genrec.row<4>, #genrec.rows<@e>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>) {
  %d, %e, %h, %i = genrec.distinct_rows(%r), (%r) : (!r, !r) -> (!genrec.domain<@d>, !genrec.domain<@e>, !dr, !er)
  // expected-error@+1 {{'genrec.distinct_linear' op needs all domains of one genrec.distinct_rows, in its order}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// Each group has gradients.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!er = tensor<?x!genrec.row<4>, #genrec.rows<@e>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!u = tensor<?x4xf32, #genrec.rows<@e>>
!g = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %u: !u, %w: tensor<9x8xf32>, %g: !g) {
  %d, %e, %h, %i = genrec.distinct_rows(%r), (%r) : (!r, !r) -> (!genrec.domain<@d>, !genrec.domain<@e>, !dr, !er)
  // expected-error@+1 {{'genrec.distinct_linear_grad' op needs gradients of the distinct rows of each group, 2, but has 1}}
  %dv, %dw = genrec.distinct_linear_grad %d, %e(%v, %u) times %w gradient %g columns [0, 4] : (!genrec.domain<@d>, !genrec.domain<@e>, !v, !u, tensor<9x8xf32>, !g) -> (!v, tensor<8x8xf32>)
  return
}

// -----

// Columns of a later group are rows of the weight for its width.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!s = tensor<?x!genrec.row<8>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!er = tensor<?x!genrec.row<8>, #genrec.rows<@e>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!u = tensor<?x8xf32, #genrec.rows<@e>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %s: !s, %v: !v, %u: !u, %w: tensor<9x8xf32>) {
  %d, %e, %h, %i = genrec.distinct_rows(%r), (%s) : (!r, !s) -> (!genrec.domain<@d>, !genrec.domain<@e>, !dr, !er)
  // expected-error@+1 {{'genrec.distinct_linear' op 'columns' must be}}
  %y = genrec.distinct_linear %d, %e(%v, %u) times %w columns [5, 5] : (!genrec.domain<@d>, !genrec.domain<@e>, !v, !u, tensor<9x8xf32>) -> !y
  return
}

// -----

// Values are those of the distinct rows.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x3xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear' op 'values' must be rows of @d, [4] x f32 (the values of the distinct rows), but is rows of @d, [3] x f32}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// The weight is a matrix.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<8xf32>) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear' op 'weight' must be shared}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0] : (!genrec.domain<@d>, !v, tensor<8xf32>) -> !y
  return
}

// -----

// A column per lookup.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear' op 'columns' needs a number per lookup of the distinct_rows op, 1, but has 2}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0, 4] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// Columns are rows of the weight.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear' op 'columns' must be}}
  %y = genrec.distinct_linear %d(%v) times %w columns [6] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// The result has rows of the lookups.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!y = tensor<?x8xf32, #genrec.rows<@d>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear' op 'result' must be rows of @user, [8] x f32 (a row per row of the lookups), but is rows of @d, [8] x f32}}
  %y = genrec.distinct_linear %d(%v) times %w columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>) -> !y
  return
}

// -----

// The gradient has the form of the result.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!g = tensor<?x7xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>, %g: !g) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear_grad' op 'gradient' must be rows of @user, [8] x f32 (a row per row of the lookups), but is rows of @user, [7] x f32}}
  %dv, %dw = genrec.distinct_linear_grad %d(%v) times %w gradient %g columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>, !g) -> (!v, tensor<4x8xf32>)
  return
}

// -----

// dvalues are alike to values.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!g = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>, %g: !g) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear_grad' op 'dvalues' must be}}
  %dv, %dw = genrec.distinct_linear_grad %d(%v) times %w gradient %g columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>, !g) -> (!g, tensor<4x8xf32>)
  return
}

// -----

// dweight has d rows per lookup.
!r = tensor<?x!genrec.row<4>, #genrec.rows<@user>>
!dr = tensor<?x!genrec.row<4>, #genrec.rows<@d>>
!v = tensor<?x4xf32, #genrec.rows<@d>>
!g = tensor<?x8xf32, #genrec.rows<@user>>
func.func @test(%r: !r, %v: !v, %w: tensor<9x8xf32>, %g: !g) {
  %d, %h = genrec.distinct_rows(%r) : (!r) -> (!genrec.domain<@d>, !dr)
  // expected-error@+1 {{'genrec.distinct_linear_grad' op 'dweight' must be shared [4, 8] x f32 (the rows of the weight that the lookups are multiplied by), but is shared [9, 8] x f32}}
  %dv, %dw = genrec.distinct_linear_grad %d(%v) times %w gradient %g columns [0] : (!genrec.domain<@d>, !v, tensor<9x8xf32>, !g) -> (!v, tensor<9x8xf32>)
  return
}
