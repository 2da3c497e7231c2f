// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of elementwise ops.

// neg takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.neg' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.neg %x : !id
  return
}

// -----

// abs takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.abs' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.abs %x : !id
  return
}

// -----

// square takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.square' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.square %x : !id
  return
}

// -----

// sqrt takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.sqrt' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.sqrt %x : !id
  return
}

// -----

// rsqrt takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.rsqrt' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.rsqrt %x : !id
  return
}

// -----

// exp takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.exp' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.exp %x : !id
  return
}

// -----

// log takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.log' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.log %x : !id
  return
}

// -----

// tanh takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.tanh' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.tanh %x : !id
  return
}

// -----

// erf takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.erf' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.erf %x : !id
  return
}

// -----

// sigmoid takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.sigmoid' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.sigmoid %x : !id
  return
}

// -----

// silu takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.silu' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.silu %x : !id
  return
}

// -----

// relu takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.relu' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.relu %x : !id
  return
}

// -----

// gelu takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.gelu' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.gelu %x : !id
  return
}

// -----

// softplus takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.softplus' op 'x' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.softplus %x : !id
  return
}

// -----

// Unary ops keep the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.neg' op requires the same type for all operands and results}}
  %0 = "genrec.neg"(%x) : (!vec) -> !num
  return
}

// -----

// Operands have rows of one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %y: !evec) {
  // expected-error@+1 {{'genrec.add' op mixes rows of @request and @event: 'lhs' has rows of @request, [8] x f32 and 'rhs' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.add %x, %y : (!vec, !evec) -> !vec
  return
}

// -----

// The message says which to fan out: the right one.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %e "x" : (!event) -> !enum
    %y = genrec.feature %r "y" : (!request) -> !num
    // expected-error@+1 {{'genrec.mul' op mixes rows of @event and @request: 'lhs' has rows of @event, [] x f32 and 'rhs' has rows of @request, [] x f32; fan 'rhs' out to @event with genrec.fanout}}
    %0 = genrec.mul %x, %y : (!enum, !num) -> !enum
  }
}

// -----

// The message says which to fan out: the left one.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %e "x" : (!event) -> !enum
    %y = genrec.feature %r "y" : (!request) -> !num
    // expected-error@+1 {{'genrec.sub' op mixes rows of @request and @event: 'lhs' has rows of @request, [] x f32 and 'rhs' has rows of @event, [] x f32; fan 'lhs' out to @event with genrec.fanout}}
    %0 = genrec.sub %y, %x : (!num, !enum) -> !enum
  }
}

// -----

// Vectors of operands have one size.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !vec4) {
  // expected-error@+1 {{'genrec.add' op needs operands of one row shape, or of row shape []: 'lhs' is rows of @request, [8] x f32, 'rhs' is rows of @request, [4] x f32}}
  %0 = genrec.add %x, %y : (!vec, !vec4) -> !vec
  return
}

// -----

// A shared vector has the size of the rows.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!shared4 = tensor<4xf32>
func.func @test(%x: !vec, %y: !shared4) {
  // expected-error@+1 {{'genrec.div' op needs operands of one row shape, or of row shape []: 'lhs' is rows of @request, [8] x f32, 'rhs' is shared [4] x f32}}
  %0 = genrec.div %x, %y : (!vec, !shared4) -> !vec
  return
}

// -----

// Operands have one element type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec64 = tensor<?x8xf64, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !vec64) {
  // expected-error@+1 {{'genrec.maximum' op 'rhs' must be a tensor of element type f32 (the element type of 'lhs'), but is rows of @request, [8] x f64}}
  %0 = genrec.maximum %x, %y : (!vec, !vec64) -> !vec
  return
}

// -----

// add takes numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.add' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.add %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// sub takes numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.sub' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.sub %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// mul takes numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.mul' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.mul %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// maximum takes numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.maximum' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.maximum %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// minimum takes numbers.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.minimum' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.minimum %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// div takes floats.
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !id, %y: !id) {
  // expected-error@+1 {{'genrec.div' op 'lhs' must be a tensor of element type f32 or f64, but is rows of @request, [] x i64}}
  %0 = genrec.div %x, %y : (!id, !id) -> !id
  return
}

// -----

// The result has the rows of the operands.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!scalar = tensor<f32>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !vec, %y: !scalar) {
  // expected-error@+1 {{'genrec.minimum' op 'result' must be rows of @request, [8] x f32 (what the operands give), but is rows of @event, [8] x f32}}
  %0 = genrec.minimum %y, %x : (!scalar, !vec) -> !evec
  return
}

// -----

// The result has the wider row shape.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !vec, %y: !num) {
  // expected-error@+1 {{'genrec.add' op 'result' must be rows of @request, [8] x f32 (what the operands give), but is rows of @request, [] x f32}}
  %0 = genrec.add %x, %y : (!vec, !num) -> !num
  return
}

// -----

// Two shared operands give a shared result.
!shared8 = tensor<8xf32>
!scalar = tensor<f32>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !shared8, %y: !scalar) {
  // expected-error@+1 {{'genrec.add' op 'result' must be shared [8] x f32 (what the operands give), but is rows of @request, [8] x f32}}
  %0 = genrec.add %x, %y : (!shared8, !scalar) -> !vec
  return
}

// -----

// compare takes one domain.
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !enum) {
  // expected-error@+1 {{'genrec.compare' op mixes rows of @request and @event: 'lhs' has rows of @request, [] x f32 and 'rhs' has rows of @event, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.compare lt %x, %y : (!num, !enum) -> !flag
  return
}

// -----

// Flags have no order.
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !flag, %y: !flag) {
  // expected-error@+1 {{'genrec.compare' op 'lhs' must be a tensor of element type i32, i64, f32 or f64, but is rows of @request, [] x i1}}
  %0 = genrec.compare lt %x, %y : (!flag, !flag) -> !flag
  return
}

// -----

// Strings are not compared.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !text, %y: !text) {
  // expected-error@+1 {{'genrec.compare' op 'lhs' must be a tensor of element type i1, i32, i64, f32 or f64, but is rows of @request, [] x !genrec.string}}
  %0 = genrec.compare eq %x, %y : (!text, !text) -> !flag
  return
}

// -----

// compare takes one element type.
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !id) {
  // expected-error@+1 {{'genrec.compare' op 'rhs' must be a tensor of element type f32 (the element type of 'lhs'), but is rows of @request, [] x i64}}
  %0 = genrec.compare eq %x, %y : (!num, !id) -> !flag
  return
}

// -----

// compare gives i1.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.compare' op 'result' must be rows of @request, [] x i1 (what the operands give), but is rows of @request, [] x f32}}
  %0 = genrec.compare eq %x, %y : (!num, !num) -> !num
  return
}

// -----

// A condition is i1.
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%c: !num, %x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.select' op 'condition' must be a tensor of element type i1, but is rows of @request, [] x f32}}
  %0 = genrec.select %c, %x, %y : (!num, !num, !num) -> !num
  return
}

// -----

// select takes one domain.
!eflag = tensor<?xi1, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%c: !eflag, %x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.select' op mixes rows of @event and @request: 'condition' has rows of @event, [] x i1 and 'on_true' has rows of @request, [] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.select %c, %x, %y : (!eflag, !num, !num) -> !num
  return
}

// -----

// select takes one element type.
!flag = tensor<?xi1, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%c: !flag, %x: !num, %y: !id) {
  // expected-error@+1 {{'genrec.select' op 'on_false' must be a tensor of element type f32 (the element type of 'on_true'), but is rows of @request, [] x i64}}
  %0 = genrec.select %c, %x, %y : (!flag, !num, !id) -> !num
  return
}

// -----

// select gives the type of the choices.
!flag = tensor<?xi1, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%c: !flag, %x: !num, %y: !num) {
  // expected-error@+1 {{'genrec.select' op 'result' must be rows of @request, [] x f32 (what the operands give), but is rows of @request, [] x i1}}
  %0 = genrec.select %c, %x, %y : (!flag, !num, !num) -> !flag
  return
}

// -----

// A factor is of f32.
!d = tensor<?xf64, #genrec.rows<@request>>
func.func @test(%x: !d) {
  // expected-error@+1 {{'genrec.round_factor' op 'x' must be a tensor of element type f32, but is rows of @request, [] x f64}}
  %0 = genrec.round_factor %x : !d
  return
}
