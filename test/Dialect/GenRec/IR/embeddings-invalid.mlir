// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of lookups and embeddings.

// lookup takes i64 ids.
!int = tensor<?xi32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !int) {
  // expected-error@+1 {{'genrec.lookup' op 'ids' must be rows of a domain, [] x i64, but is rows of @request, [] x i32}}
  %0 = genrec.lookup %x in @item : (!int) -> !vec
  return
}

// -----

// valid has rows of the ids.
!id = tensor<?xi64, #genrec.rows<@request>>
!eflag = tensor<?xi1, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %v: !eflag) {
  // expected-error@+1 {{'genrec.lookup' op mixes rows of @request and @event: 'ids' has rows of @request, [] x i64 and 'valid' has rows of @event, [] x i1; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.lookup %x valid %v in @item : (!id, !eflag) -> !vec
  return
}

// -----

// valid is i1.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.lookup' op 'valid' must be rows of @request, [] x i1, but is rows of @request, [] x i64}}
  %0 = genrec.lookup %x valid %x in @item : (!id, !id) -> !vec
  return
}

// -----

// lookup gives f32 vectors.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec64 = tensor<?x8xf64, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.lookup' op 'result' must be rows of @request, [d] x f32 (a table row per id), but is rows of @request, [8] x f64}}
  %0 = genrec.lookup %x in @item : (!id) -> !vec64
  return
}

// -----

// The table is declared.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.lookup' op reads @item, which the model does not declare as a table}}
    %0 = genrec.lookup %x in @item : (!id) -> !vec
  }
}

// -----

// A table is not a parameter.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.lookup' op reads @bias, which the model does not declare as a table}}
    %0 = genrec.lookup %x in @bias : (!id) -> !vec4
  }
}

// -----

// lookup gives rows of the dimension of the table.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.lookup' op 'result' must be rows of @request, [8] x f32 (the dimension of table @item), but is rows of @request, [4] x f32}}
    %0 = genrec.lookup %x in @item : (!id) -> !vec4
  }
}

// -----

// embedding takes an i64 index.
!num = tensor<?xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %w: !mat) {
  // expected-error@+1 {{'genrec.embedding' op 'index' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.embedding %x of %w : (!num, !mat) -> !vec4
  return
}

// -----

// embedding takes a matrix.
!id = tensor<?xi64, #genrec.rows<@request>>
!shared8 = tensor<8xf32>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %w: !shared8) {
  // expected-error@+1 {{'genrec.embedding' op 'weight' must be shared [n, d] x f32, but is shared [8] x f32}}
  %0 = genrec.embedding %x of %w : (!id, !shared8) -> !vec
  return
}

// -----

// embedding gives rows of the weight.
!id = tensor<?xi64, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %w: !mat) {
  // expected-error@+1 {{'genrec.embedding' op 'result' must be rows of @request, [4] x f32 (a row of 'weight' per index), but is rows of @request, [8] x f32}}
  %0 = genrec.embedding %x of %w : (!id, !mat) -> !vec
  return
}

// -----

// embedding_grad takes an i64 index.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !num, %y: !vec4) {
  // expected-error@+1 {{'genrec.embedding_grad' op 'index' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.embedding_grad %x, %y : (!num, !vec4) -> !mat
  return
}

// -----

// embedding_grad takes one domain.
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !eid, %y: !vec4) {
  // expected-error@+1 {{'genrec.embedding_grad' op mixes rows of @event and @request: 'index' has rows of @event, [] x i64 and 'y' has rows of @request, [4] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0 = genrec.embedding_grad %x, %y : (!eid, !vec4) -> !mat
  return
}

// -----

// embedding_grad takes f32 vectors.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !id, %y: !num) {
  // expected-error@+1 {{'genrec.embedding_grad' op 'y' must be rows of @request, [d] x f32, but is rows of @request, [] x f32}}
  %0 = genrec.embedding_grad %x, %y : (!id, !num) -> !mat
  return
}

// -----

// embedding_grad gives the shape of the weight.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!mat = tensor<8x4xf32>
func.func @test(%x: !id, %y: !vec) {
  // expected-error@+1 {{'genrec.embedding_grad' op 'result' must be shared [n, 8] x f32 (the embedding's weight), but is shared [8, 4] x f32}}
  %0 = genrec.embedding_grad %x, %y : (!id, !vec) -> !mat
  return
}
