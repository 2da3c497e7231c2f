// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of the small ops that only passes make.

// pad_columns takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.pad_columns' op 'x' must be a tensor, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.pad_columns %x at 0 : (!num) -> !vec
  return
}

// -----

// pad_columns keeps rows.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec4) {
  // expected-error@+1 {{'genrec.pad_columns' op 'result' must be rows of @request, [d] x f32, but is rows of @event, [8] x f32}}
  %0 = genrec.pad_columns %x at 0 : (!vec4) -> !evec
  return
}

// -----

// pad_columns has room.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4) {
  // expected-error@+1 {{'genrec.pad_columns' op puts elements [6, 10) into rows of 8}}
  %0 = genrec.pad_columns %x at 6 : (!vec4) -> !vec
  return
}

// -----

// fused_linear takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %w: tensor<1x8xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'x' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.fused_linear %x, %w activation silu : (!num, tensor<1x8xf32>) -> !vec
  return
}

// -----

// fused_linear: the weight has a row per column of x.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'weight' must be shared [4, d] x f32 (a row per column of 'x'), but is shared [8, 4] x f32}}
  %0 = genrec.fused_linear %x, %w activation silu : (!vec4, tensor<8x4xf32>) -> !vec
  return
}

// -----

// fused_linear: and a column per column of x, transposed.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'weight' must be shared [n, 4] x f32 (a column per column of 'x'), but is shared [4, 8] x f32}}
  %0 = genrec.fused_linear %x, %w activation silu {transposed} : (!vec4, tensor<4x8xf32>) -> !vec
  return
}

// -----

// fused_linear: the bias has an element per column of the result.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'bias' must be shared [8] x f32 (an element per column of the result), but is shared [4] x f32}}
  %0 = genrec.fused_linear %x, %w bias %b activation silu : (!vec4, tensor<4x8xf32>, tensor<4xf32>) -> !vec
  return
}

// -----

// fused_linear: the result is the product's.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'result' must be rows of @request, [8] x f32 (x times weight), but is rows of @request, [4] x f32}}
  %0 = genrec.fused_linear %x, %w activation silu : (!vec4, tensor<4x8xf32>) -> !vec4
  return
}

// -----

// fused_linear: the residual has the type of the result.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'residual' must be rows of @request, [8] x f32 (the type of 'result'), but is rows of @request, [4] x f32}}
  %0 = genrec.fused_linear %x, %w residual %x activation none : (!vec4, tensor<4x8xf32>, !vec4) -> !vec
  return
}

// -----

// fused_linear: and so has what is kept.
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec4, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'genrec.fused_linear' op 'pre' must be rows of @request, [8] x f32 (the type of 'result'), but is rows of @request, [4] x f32}}
  %0, %1 = genrec.fused_linear %x, %w activation silu : (!vec4, tensor<4x8xf32>) -> (!vec, !vec4)
  return
}

// -----

// broadcast_rows takes a shared value.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %d: !event) {
  // expected-error@+1 {{'genrec.broadcast_rows' op 'x' must be shared of element type i1, i32, i64, f32 or f64, but is rows of @request, [8] x f32}}
  %0 = genrec.broadcast_rows %x to %d : (!vec, !event) -> !evec
  return
}

// -----

// broadcast_rows takes scalars and vectors.
!mat = tensor<8x4xf32>
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !mat, %d: !event) {
  // expected-error@+1 {{'genrec.broadcast_rows' op 'x' must be shared [] or [d], but is shared [8, 4] x f32}}
  %0 = genrec.broadcast_rows %x to %d : (!mat, !event) -> !evec
  return
}

// -----

// broadcast_rows keeps the shape.
!shared8 = tensor<8xf32>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !shared8, %d: !event) {
  // expected-error@+1 {{'genrec.broadcast_rows' op 'result' must be rows of @event, [8] x f32 (the shape of 'x', in the given domain), but is rows of @event, [] x f32}}
  %0 = genrec.broadcast_rows %x to %d : (!shared8, !event) -> !enum
  return
}

// -----

// detach keeps the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.detach' op requires the same type for all operands and results}}
  %0 = "genrec.detach"(%x) : (!vec) -> !num
  return
}

// -----

// fixed_rows has rows.
!step = !genrec.domain<@step>
func.func @test() {
  // expected-error@+1 {{'genrec.fixed_rows' op attribute 'count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = genrec.fixed_rows 0 : !step
  return
}

// -----

// rows_as_shared takes rows.
!shared8 = tensor<8xf32>
func.func @test(%x: !shared8) {
  // expected-error@+1 {{'genrec.rows_as_shared' op 'x' must be rows of a domain, of element type i1, i32, i64, f32 or f64, but is shared [8] x f32}}
  %0 = genrec.rows_as_shared %x : (!shared8) -> !shared8
  return
}

// -----

// rows_as_shared gives a shared tensor.
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !kvec) {
  // expected-error@+1 {{'genrec.rows_as_shared' op 'result' must be shared of element type f32, but is rows of @step, [8] x f32}}
  %0 = genrec.rows_as_shared %x : (!kvec) -> !kvec
  return
}

// -----

// rows_as_shared gives the row or several.
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
!shared4 = tensor<4xf32>
func.func @test(%x: !kvec) {
  // expected-error@+1 {{'genrec.rows_as_shared' op 'result' must have the shape of a row of 'x', or of several, but is shared [4] x f32 and 'x' is rows of @step, [8] x f32}}
  %0 = genrec.rows_as_shared %x : (!kvec) -> !shared4
  return
}

// -----

// rows_as_shared takes rows of a step domain.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !num
    // expected-error@+1 {{'genrec.rows_as_shared' op 'x' must be of a domain of kind step, but @request is of kind data}}
    %0 = genrec.rows_as_shared %x : (!num) -> tensor<f32>
  }
}

// -----

// log_sum_exp takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.log_sum_exp' op 'x' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.log_sum_exp %x : (!num) -> !num
  return
}

// -----

// log_sum_exp gives a value per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.log_sum_exp' op 'result' must be rows of @request, [] x f32 (a value per row of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.log_sum_exp %x : (!vec) -> !vec
  return
}

// -----

// log_sum_exp goes on from a value per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.log_sum_exp' op 'before' must be rows of @request, [] x f32 (the type of 'result'), but is rows of @request, [8] x f32}}
  %0 = genrec.log_sum_exp %x before %x : (!vec, !vec) -> !num
  return
}

// -----

// pick_column takes vectors.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %i: !id) {
  // expected-error@+1 {{'genrec.pick_column' op 'x' must be rows of a domain, [d] x f32 or f64, but is rows of @request, [] x f32}}
  %0 = genrec.pick_column %x at %i : (!num, !id) -> !num
  return
}

// -----

// pick_column takes one domain.
!eid = tensor<?xi64, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %i: !eid) {
  // expected-error@+1 {{'genrec.pick_column' op mixes rows of @request and @event: 'x' has rows of @request, [8] x f32 and 'index' has rows of @event, [] x i64; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.pick_column %x at %i : (!vec, !eid) -> !num
  return
}

// -----

// pick_column takes a column per row.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %i: !num) {
  // expected-error@+1 {{'genrec.pick_column' op 'index' must be rows of @request, [] x i64 (a column per row), but is rows of @request, [] x f32}}
  %0 = genrec.pick_column %x at %i : (!vec, !num) -> !num
  return
}

// -----

// pick_column gives a value per row.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %i: !id) {
  // expected-error@+1 {{'genrec.pick_column' op 'result' must be rows of @request, [] x f32 (a value per row of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.pick_column %x at %i : (!vec, !id) -> !vec
  return
}

// -----

// pick_column counts columns from 0.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %i: !id) {
  // expected-error@+1 {{'genrec.pick_column' op attribute 'first' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = genrec.pick_column %x at %i {first = -1 : i64} : (!vec, !id) -> !num
  return
}

// -----

// after waits for something.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.after' op waits for nothing: name at least one value after 'on'}}
  %0 = genrec.after %x on : (!vec) -> !vec
  return
}

// -----

// after is its operand.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !num) {
  // expected-error@+1 {{'genrec.after' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @request, [] x f32}}
  %0 = genrec.after %x on %y : (!vec, !num) -> !num
  return
}
