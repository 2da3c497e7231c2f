// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of table rows, parameter rows and step values.

// table_rows takes i64 ids.
!num = tensor<?xf32, #genrec.rows<@request>>
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
func.func @test(%x: !num) {
  // expected-error@+1 {{'genrec.table_rows' op 'ids' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.table_rows %x in @item : (!num) -> !row
  return
}

// -----

// table_rows gives handles.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.table_rows' op 'result' must be rows of @request, [] x !genrec.row (a table row per id), but is rows of @request, [8] x f32}}
  %0 = genrec.table_rows %x in @item : (!id) -> !vec
  return
}

// -----

// table_rows gives a handle per id.
!id = tensor<?xi64, #genrec.rows<@request>>
!erow = tensor<?x!genrec.row<8>, #genrec.rows<@event>>
func.func @test(%x: !id) {
  // expected-error@+1 {{'genrec.table_rows' op 'result' must be rows of @request, [] x !genrec.row (a table row per id), but is rows of @event, [] x !genrec.row<8>}}
  %0 = genrec.table_rows %x in @item : (!id) -> !erow
  return
}

// -----

// The table of table_rows is declared.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.table_rows' op names @item, which the model does not declare as a table}}
    %0 = genrec.table_rows %x in @item : (!id) -> !row
  }
}

// -----

// Handles have the dimension of the table.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!row4 = tensor<?x!genrec.row<4>, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.table_rows' op 'result' must be rows of @request, [] x !genrec.row<8> (the dimension and element of table @item), but is rows of @request, [] x !genrec.row<4>}}
    %0 = genrec.table_rows %x in @item : (!id) -> !row4
  }
}

// -----

// And its element.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!row16 = tensor<?x!genrec.row<8, bf16>, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.table_rows' op 'result' must be rows of @request, [] x !genrec.row<8> (the dimension and element of table @item), but is rows of @request, [] x !genrec.row<8, bf16>}}
    %0 = genrec.table_rows %x in @item : (!id) -> !row16
  }
}

// -----

// And whether they may be hot.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!row16 = tensor<?x!genrec.row<8, bf16>, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {element = #genrec<row_element bf16>, hot_after = 2 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-error@+1 {{'genrec.table_rows' op 'result' must be rows of @request, [] x !genrec.row<8, bf16, hot> (the dimension and element of table @item), but is rows of @request, [] x !genrec.row<8, bf16>}}
    %0 = genrec.table_rows %x in @item : (!id) -> !row16
  }
}

// -----

// Rows of f32 are never hot.
// expected-error@+1 {{rows of f32 have no lower halves beside them, which 'hot' says: !genrec.row<8, bf16, hot>}}
func.func @test(%row: !genrec.row<8, f32, hot>)

// -----

// unique_rows takes something.
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test() {
  // expected-error@+1 {{'genrec.unique_rows' op needs at least one pair of rows and gradients}}
  %0, %1 = "genrec.unique_rows"() : () -> (!step, !krow)
  return
}

// -----

// unique_rows takes handles.
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test(%x: !id, %g: !vec) {
  // expected-error@+1 {{'genrec.unique_rows' op 'rows 0' must be rows of a domain, [] x !genrec.row, but is rows of @request, [] x i64}}
  %0, %1 = genrec.unique_rows (%x) by (%g) : (!id, !vec) -> (!step, !krow)
  return
}

// -----

// unique_rows takes handles of one table.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!row4 = tensor<?x!genrec.row<4>, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test(%x: !row, %y: !row4, %g: !vec) {
  // expected-error@+1 {{'genrec.unique_rows' op 'rows 1' must be rows of a domain, [] x !genrec.row<8> (rows of one table), but is rows of @request, [] x !genrec.row<4>}}
  %0, %1 = genrec.unique_rows (%x, %y) by (%g, %g) : (!row, !row4, !vec, !vec) -> (!step, !krow)
  return
}

// -----

// Gradients have the domain of the handles, or its parent.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !evec) {
  // expected-error@+1 {{'genrec.unique_rows' op 'gradients 0' must be rows of @request, the domain of 'rows 0', or of its parent, but is rows of @event, [8] x f32}}
  %0, %1 = genrec.unique_rows (%x) by (%g) : (!row, !evec) -> (!step, !krow)
  return
}

// -----

// Gradients have the width of the handles.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !vec4) {
  // expected-error@+1 {{'genrec.unique_rows' op 'gradients 0' must be rows of a domain, [8] x f32 (the width of the rows), but is rows of @request, [4] x f32}}
  %0, %1 = genrec.unique_rows (%x) by (%g) : (!row, !vec4) -> (!step, !krow)
  return
}

// -----

// unique_rows gives handles.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !vec) {
  // expected-error@+1 {{'genrec.unique_rows' op 'result' must be rows of @step, [] x !genrec.row<8> (the distinct rows), but is rows of @step, [8] x f32}}
  %0, %1 = genrec.unique_rows (%x) by (%g) : (!row, !vec) -> (!step, !kvec)
  return
}

// -----

// segment_sum follows a unique_rows.
!step = !genrec.domain<@step>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%d: !step, %g: !vec) {
  // expected-error@+1 {{'genrec.segment_sum' op sums into rows found by genrec.unique_rows, but 'domain' @step is made otherwise}}
  %0 = genrec.segment_sum %d (%g) : (!step, !vec) -> !kvec
  return
}

// -----

// segment_sum takes the gradients of unique_rows.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !vec) {
  %d, %u = genrec.unique_rows (%x) by (%g) : (!row, !vec) -> (!step, !krow)
  // expected-error@+1 {{'genrec.segment_sum' op needs the gradients of the unique_rows op, 1, but has 2}}
  %0 = genrec.segment_sum %d (%g, %g) : (!step, !vec, !vec) -> !kvec
  return
}

// -----

// segment_sum takes gradients of the same types.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !vec, %h: !evec) {
  %d, %u = genrec.unique_rows (%x) by (%g) : (!row, !vec) -> (!step, !krow)
  // expected-error@+1 {{'genrec.segment_sum' op 'gradients 0' must be rows of @request, [8] x f32 (as in the unique_rows op), but is rows of @event, [8] x f32}}
  %0 = genrec.segment_sum %d (%h) : (!step, !evec) -> !kvec
  return
}

// -----

// segment_sum gives a sum per row.
!row = tensor<?x!genrec.row<8>, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
func.func @test(%x: !row, %g: !vec) {
  %d, %u = genrec.unique_rows (%x) by (%g) : (!row, !vec) -> (!step, !krow)
  // expected-error@+1 {{'genrec.segment_sum' op 'result' must be rows of @step, [8] x f32 (a sum per distinct row), but is rows of @request, [8] x f32}}
  %0 = genrec.segment_sum %d (%g) : (!step, !vec) -> !vec
  return
}

// -----

// The parameter of parameter_rows is declared.
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @step kind step
  genrec.program @main {
    // expected-error@+1 {{'genrec.parameter_rows' op names @bias, which the model does not declare as a parameter}}
    %0, %1 = genrec.parameter_rows @bias : () -> (!step, !krow)
  }
}

// -----

// Rows of a parameter have its last size.
!step = !genrec.domain<@step>
!krow = tensor<?x!genrec.row<8>, #genrec.rows<@step>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @step kind step
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    // expected-error@+1 {{'genrec.parameter_rows' op 'result' must be rows of @step, [] x !genrec.row<4> (the rows of parameter @bias), but is rows of @step, [] x !genrec.row<8>}}
    %0, %1 = genrec.parameter_rows @bias : () -> (!step, !krow)
  }
}

// -----

// shared_rows takes a shared tensor.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!step = !genrec.domain<@step>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !vec, %d: !step) {
  // expected-error@+1 {{'genrec.shared_rows' op 'x' must be shared of element type i1, i32, i64, f32 or f64, but is rows of @request, [8] x f32}}
  %0 = genrec.shared_rows %x as %d : (!vec, !step) -> !kvec
  return
}

// -----

// shared_rows gives the last size.
!mat = tensor<8x4xf32>
!step = !genrec.domain<@step>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !mat, %d: !step) {
  // expected-error@+1 {{'genrec.shared_rows' op 'result' must be rows of @step, [4] x f32 (the rows of 'x'), but is rows of @step, [8] x f32}}
  %0 = genrec.shared_rows %x as %d : (!mat, !step) -> !kvec
  return
}

// -----

// A scalar is a row of one.
!scalar = tensor<f32>
!step = !genrec.domain<@step>
!kvec = tensor<?x8xf32, #genrec.rows<@step>>
func.func @test(%x: !scalar, %d: !step) {
  // expected-error@+1 {{'genrec.shared_rows' op 'result' must be rows of @step, [1] x f32 ('x' as one row), but is rows of @step, [8] x f32}}
  %0 = genrec.shared_rows %x as %d : (!scalar, !step) -> !kvec
  return
}

// -----

// shared_rows gives rows of a step domain.
!request = !genrec.domain<@request>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.param @bias : tensor<4xf32>
    // expected-error@+1 {{'genrec.shared_rows' op 'domain' must be of a domain of kind step, but @request is of kind data}}
    %0 = genrec.shared_rows %x as %r : (tensor<4xf32>, !request) -> !vec4
  }
}

// -----

// There are four step values.
func.func @test() {
  // expected-error@+1 {{'genrec.step_value' op 'name' must be "learning_rate", "bias_correction", "clip_norm", "clip_value" or "first_portion", but is "momentum"}}
  %0 = genrec.step_value "momentum"(0.9) : tensor<f32>
  return
}

// -----

// A learning rate is not negative.
func.func @test() {
  // expected-error@+1 {{'genrec.step_value' op 'argument' must be finite and at least 0, but is -0.1}}
  %0 = genrec.step_value "learning_rate"(-0.1) : tensor<f32>
  return
}

// -----

// A bias correction is of a decay.
func.func @test() {
  // expected-error@+1 {{'genrec.step_value' op 'argument' must be in [0, 1), but is 1}}
  %0 = genrec.step_value "bias_correction"(1.0) : tensor<f32>
  return
}

// -----

// A step value is a shared scalar.
func.func @test() {
  // expected-error@+1 {{'genrec.step_value' op 'result' must be shared [] x f32, but is shared [4] x f32}}
  %0 = genrec.step_value "learning_rate"(0.1) : tensor<4xf32>
  return
}
