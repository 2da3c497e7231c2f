// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of what is read: columns, parameters, constants.

// A feature has a column.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op 'column' must not be empty}}
  %0 = genrec.feature %d "" : (!request) -> !id
  return
}

// -----

// A feature has rows of its domain.
!request = !genrec.domain<@request>
!eid = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op 'result' must be rows of @request, [] x i1, i32, i64, f32, f64 or !genrec.string, but is rows of @event, [] x i64}}
  %0 = genrec.feature %d "x" : (!request) -> !eid
  return
}

// -----

// Several values per row are floats.
!request = !genrec.domain<@request>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op 'result' must be rows of @request, [d] x f32 or f64, but is rows of @request, [8] x i64}}
  %0 = genrec.feature %d "x" : (!request) -> !ids
  return
}

// -----

// Padding is an integer.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op has 'padding_id', which is for i32 and i64 columns, but 'result' is rows of @request, [] x f32}}
  %0 = genrec.feature %d "x" {padding_id = 0 : i64} : (!request) -> !num
  return
}

// -----

// Only ids have bits.
!request = !genrec.domain<@request>
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op has 'id_bits', which is for i32 and i64 columns, but 'result' is rows of @request, [] x !genrec.string}}
  %0 = genrec.feature %d "x" {id_bits = 4 : i64} : (!request) -> !text
  return
}

// -----

// Ids have at most 63 bits.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature' op 'id_bits' must be 0 to 63, but is 64}}
  %0 = genrec.feature %d "x" {id_bits = 64 : i64} : (!request) -> !id
  return
}

// -----

// A feature is read.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  // expected-note@+1 {{domain declared here}}
  genrec.domain @recent parent @request kind derived
  genrec.program @main {
    %e = genrec.batch : !event
    %r = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
    // expected-error@+1 {{'genrec.feature' op 'domain' must be of a domain of kind data or catalogue, but @recent is of kind derived}}
    %0 = genrec.feature %r "x" : (!recent) -> tensor<?xi64, #genrec.rows<@recent>>
  }
}

// -----

// Padding belongs to lists.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.feature' op has 'padding_id', which drops entries of a list, but 'domain' @request is a root}}
    %0 = genrec.feature %r "x" {padding_id = 0 : i64} : (!request) -> !id
  }
}

// -----

// feature_valid has a column.
!request = !genrec.domain<@request>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature_valid' op 'column' must not be empty}}
  %0 = genrec.feature_valid %d "" : (!request) -> !flag
  return
}

// -----

// feature_valid gives i1.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.feature_valid' op 'result' must be rows of @request, [] x i1, but is rows of @request, [] x i64}}
  %0 = genrec.feature_valid %d "x" : (!request) -> !id
  return
}

// -----

// feature_valid is read.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  // expected-note@+1 {{domain declared here}}
  genrec.domain @recent parent @request kind derived
  genrec.program @main {
    %e = genrec.batch : !event
    %r = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
    // expected-error@+1 {{'genrec.feature_valid' op 'domain' must be of a domain of kind data or catalogue, but @recent is of kind derived}}
    %0 = genrec.feature_valid %r "x" : (!recent) -> tensor<?xi1, #genrec.rows<@recent>>
  }
}

// -----

// A parameter is of f32.
func.func @test() {
  // expected-error@+1 {{'genrec.param' op 'result' must be shared of element type f32, but is shared [4] x i64}}
  %0 = genrec.param @p : tensor<4xi64>
  return
}

// -----

// A parameter is declared.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op reads @p, which the model does not declare as a parameter}}
    %0 = genrec.param @p : tensor<4xf32>
  }
}

// -----

// A parameter is not a table.
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op reads @item, which the model does not declare as a parameter}}
    %0 = genrec.param @item : tensor<8xf32>
  }
}

// -----

// A parameter has its declared type.
genrec.model @m {
  genrec.domain @request
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op 'result' must be shared [4] x f32 (the type of parameter @bias), but is shared [8] x f32}}
    %0 = genrec.param @bias : tensor<8xf32>
  }
}

// -----

// A constant is at most a vector.
func.func @test() {
  // expected-error@+1 {{'genrec.constant' op must be shared, of rank 0 or 1 and element type i1, i32, i64, f32 or f64, but is shared [2, 2] x f32}}
  %0 = genrec.constant dense<1.0> : tensor<2x2xf32>
  return
}

// -----

// A constant is of numbers.
func.func @test() {
  // expected-error@+1 {{'genrec.constant' op must be shared, of rank 0 or 1 and element type i1, i32, i64, f32 or f64, but is shared [2] x i8}}
  %0 = genrec.constant dense<1> : tensor<2xi8>
  return
}
