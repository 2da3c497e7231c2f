// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of parameter and table updates.

// The gradient of a parameter is shared.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.update_parameter' op 'gradient' must be shared of element type f32, but is rows of @request, [8] x f32}}
  genrec.update_parameter @bias by %x : !vec
  return
}

// -----

// The updated parameter is declared.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %x = genrec.constant dense<1.0> : tensor<4xf32>
    // expected-error@+1 {{'genrec.update_parameter' op names @bias, which the model does not declare as a parameter}}
    genrec.update_parameter @bias by %x : tensor<4xf32>
  }
}

// -----

// The gradient has the type of the parameter.
genrec.model @m {
  genrec.domain @request
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %x = genrec.constant dense<1.0> : tensor<3xf32>
    // expected-error@+1 {{'genrec.update_parameter' op 'gradient' must be shared [4] x f32 (the type of parameter @bias), but is shared [3] x f32}}
    genrec.update_parameter @bias by %x : tensor<3xf32>
  }
}

// -----

// A table is updated by something.
func.func @test() {
  // expected-error@+1 {{'genrec.update_table' op needs at least one pair of ids and gradients}}
  "genrec.update_table"() {table = @item} : () -> ()
  return
}

// -----

// Updated ids are i64.
!num = tensor<?xf32, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !num, %g: !vec) {
  // expected-error@+1 {{'genrec.update_table' op 'ids 0' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  genrec.update_table @item ids (%x) by (%g) : (!num, !vec) -> ()
  return
}

// -----

// Ids and gradients have one domain.
!id = tensor<?xi64, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !id, %g: !evec) {
  // expected-error@+1 {{'genrec.update_table' op mixes rows of @request and @event: 'ids 0' has rows of @request, [] x i64 and 'gradients 0' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  genrec.update_table @item ids (%x) by (%g) : (!id, !evec) -> ()
  return
}

// -----

// Gradients of table rows are vectors.
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !id, %g: !num) {
  // expected-error@+1 {{'genrec.update_table' op 'gradients 0' must be rows of @request, [d] x f32, but is rows of @request, [] x f32}}
  genrec.update_table @item ids (%x) by (%g) : (!id, !num) -> ()
  return
}

// -----

// The updated table is declared.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    %g = genrec.lookup %x in @item : (!id) -> !vec
    // expected-error@+1 {{'genrec.update_table' op names @other, which the model does not declare as a table}}
    genrec.update_table @other ids (%x) by (%g) : (!id, !vec) -> ()
  }
}

// -----

// Gradients have the dimension of the table.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    %g = genrec.lookup %x in @item : (!id) -> !vec
    %h = genrec.slice_columns %g from 0 : (!vec) -> !vec4
    // expected-error@+1 {{'genrec.update_table' op 'gradients 1' must be rows of @request, [8] x f32 (the dimension of table @item), but is rows of @request, [4] x f32}}
    genrec.update_table @item ids (%x, %x) by (%g, %h) : (!id, !id, !vec, !vec4) -> ()
  }
}
