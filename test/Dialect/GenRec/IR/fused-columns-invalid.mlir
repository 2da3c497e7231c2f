// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of fused columns.

// transform_columns: a result per domain.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %a: !id) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op needs a domain per result, but has 2 domains and 1 results}}
  %0 = genrec.transform_columns (%a) into (%s, %s) {programs = array<i64: 0>} : (!id, !both, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns writes stacked rows.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%s: !both, %a: !id) {
  // expected-error@+1 {{'genrec.transform_columns' op needs domains made by genrec.stack_domains, but domain 0 is made otherwise}}
  %0 = genrec.transform_columns (%a) into (%s) {programs = array<i64: 0>} : (!id, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns gives keys.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%r: !req, %h: !hist, %a: !id) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op 'result 0' must be rows of @both, [] x i64, but is rows of @request, [] x i64}}
  %0 = genrec.transform_columns (%a, %a) into (%s) {programs = array<i64: 0, 0>} : (!id, !id, !both) -> !id { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns: a program for every part.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %a: !id) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op needs a program for each of the 2 parts of its domains, but has 1}}
  %0 = genrec.transform_columns (%a) into (%s) {programs = array<i64: 0>} : (!id, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns has the programs it runs.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %a: !id, %b: !hid) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op 'programs' must be 0 to 0, but is 1}}
  %0 = genrec.transform_columns (%a, %b) into (%s) {programs = array<i64: 0, 1>} : (!id, !hid, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns: the inputs that its columns take.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %a: !id) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op has 1 inputs, but its columns take 2}}
  %0 = genrec.transform_columns (%a) into (%s) {programs = array<i64: 0, 0>} : (!id, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns: programs yield keys.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %a: !id, %b: !hid) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op program 0 must yield one i64, the key}}
  %0 = genrec.transform_columns (%a, %b) into (%s) {programs = array<i64: 0, 0>} : (!id, !hid, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i, %i : i64, i64 }
  return
}

// -----

// transform_columns: inputs fit their programs.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!hflag = tensor<?xi1, #genrec.rows<@history>>
func.func @test(%r: !req, %h: !hist, %a: !id, %b: !hflag) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.transform_columns' op column 1 gives rows of @history, [] x i1 where program 0 takes i64}}
  %0 = genrec.transform_columns (%a, %b) into (%s) {programs = array<i64: 0, 0>} : (!id, !hflag, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  return
}

// -----

// transform_columns reads its rows and what is above them.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @history parent @request {column = "history"}
  genrec.domain @both kind step
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @other dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 8 {members = [@item], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %request, %history = genrec.batch : !req, !hist
    %user = genrec.feature %request "user" : (!req) -> !id
    %movie = genrec.feature %history "history.movie" : (!hist) -> !hid
    %both = genrec.stack_domains %request, %history : (!req, !hist) -> !both
    // expected-error@+1 {{'genrec.transform_columns' op column 0 over @request reads rows of @history, which is neither above it nor what it was truncated from}}
    %0 = genrec.transform_columns (%movie, %movie) into (%both) {programs = array<i64: 0, 0>} : (!hid, !hid, !both) -> !keys { ^bb0(%i: i64): genrec.row_yield %i : i64 }
  }
}
