// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of merged tables' keys and of their lookups.

// A stack has parts.
!both = !genrec.domain<@both>
func.func @test() {
  // expected-error@+1 {{'genrec.stack_domains' op needs at least one part}}
  %0 = genrec.stack_domains : () -> !both
  return
}

// -----

// Stacked rows exist within a step.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @history parent @request {column = "history"}
  // expected-note@+1 {{domain declared here}}
  genrec.domain @both parent @request {column = "both"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @other dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @all dim 8 {members = [@item], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %request, %history = genrec.batch : !req, !hist
    %user = genrec.feature %request "user" : (!req) -> !id
    %movie = genrec.feature %history "history.movie" : (!hist) -> !hid
    // expected-error@+1 {{'genrec.stack_domains' op makes domains of kind step, but @both is of kind data}}
    %both = genrec.stack_domains %request, %history : (!req, !hist) -> !both
  }
}

// -----

// unstack_rows: x is stacked.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%r: !req, %h: !hist, %x: !id) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.unstack_rows' op 'x' must be rows of @both, but is rows of @request, [] x i64}}
  %0 = genrec.unstack_rows %x part 0 of %s into %r : (!id, !both, !req) -> !id
  return
}

// -----

// unstack_rows: the rows of the domain that is given.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %x: !keys) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.unstack_rows' op 'result' must be rows of @request, [] x i64 (x's rows, in the given domain), but is rows of @history, [] x i64}}
  %0 = genrec.unstack_rows %x part 0 of %s into %r : (!keys, !both, !req) -> !hid
  return
}

// -----

// unstack_rows knows the stack.
!req = !genrec.domain<@request>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %s: !both, %x: !keys) {
  // expected-error@+1 {{'genrec.unstack_rows' op needs a 'stack' made by genrec.stack_domains}}
  %0 = genrec.unstack_rows %x part 0 of %s into %r : (!keys, !both, !req) -> !id
  return
}

// -----

// unstack_rows: a part of the stack.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %x: !keys) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.unstack_rows' op 'part' must be 0 to 1, but is 2}}
  %0 = genrec.unstack_rows %x part 2 of %s into %r : (!keys, !both, !req) -> !id
  return
}

// -----

// unstack_rows: the domain of that part.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%r: !req, %h: !hist, %x: !keys) {
  %s = genrec.stack_domains %r, %h : (!req, !hist) -> !both
  // expected-error@+1 {{'genrec.unstack_rows' op 'domain' must be part 1 of the stack, @history, but is @request}}
  %0 = genrec.unstack_rows %x part 1 of %s into %r : (!keys, !both, !req) -> !id
  return
}

// -----

// merged_keys: a table for each ids.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
func.func @test(%a: !id, %b: !hid, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op needs ids and a table for each, but has 2 ids and 1 tables}}
  %0 = genrec.merged_keys %a, %b in [@item] of @all into %s : (!id, !hid, !both) -> !keys
  return
}

// -----

// merged_keys: a part for each valid.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%a: !id, %b: !hid, %v: !flag, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op needs a part in 'valid_of' for each of 1 'valid', but has 2}}
  %0 = genrec.merged_keys %a, %b valid (%v) of [0, 1] in [@item, @item] of @all into %s : (!id, !hid, !flag, !both) -> !keys
  return
}

// -----

// merged_keys takes i64 ids.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%a: !id, %b: !vec, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op 'ids 1' must be rows of a domain, [] x i64, but is rows of @request, [8] x f32}}
  %0 = genrec.merged_keys %a, %b in [@item, @item] of @all into %s : (!id, !vec, !both) -> !keys
  return
}

// -----

// merged_keys: valid_of names parts in order.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%a: !id, %b: !id, %v: !flag, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op 'valid_of' must be 1 to 1, but is 0}}
  %0 = genrec.merged_keys %a, %b valid (%v, %v) of [0, 0] in [@item, @item] of @all into %s : (!id, !id, !flag, !flag, !both) -> !keys
  return
}

// -----

// merged_keys: valid has rows of its ids.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%a: !id, %b: !hid, %v: !flag, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op 'valid 0' must be rows of @history, [] x i1 (of the ids of its part), but is rows of @request, [] x i1}}
  %0 = genrec.merged_keys %a, %b valid (%v) of [1] in [@item, @item] of @all into %s : (!id, !hid, !flag, !both) -> !keys
  return
}

// -----

// merged_keys gives a key per stacked id.
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
func.func @test(%a: !id, %b: !hid, %s: !both) {
  // expected-error@+1 {{'genrec.merged_keys' op 'result' must be rows of @both, [] x i64 (a key per stacked id), but is rows of @request, [] x i64}}
  %0 = genrec.merged_keys %a, %b in [@item, @item] of @all into %s : (!id, !hid, !both) -> !id
  return
}

// -----

// merged_keys is of a merged table.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
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
    // expected-error@+1 {{'genrec.merged_keys' op names @item, which the model does not declare as a table with members}}
    %0 = genrec.merged_keys %user, %movie in [@item, @item] of @item into %both : (!id, !hid, !both) -> !keys
  }
}

// -----

// merged_keys: tables are members.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
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
    // expected-error@+1 {{'genrec.merged_keys' op looks ids 1 up in @other, which is no member of @all}}
    %0 = genrec.merged_keys %user, %movie in [@item, @other] of @all into %both : (!id, !hid, !both) -> !keys
  }
}

// -----

// merged_keys: ids for every part.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!hid = tensor<?xi64, #genrec.rows<@history>>
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
    // expected-error@+1 {{'genrec.merged_keys' op has 1 ids for the 2 parts of its domain}}
    %0 = genrec.merged_keys %user in [@item] of @all into %both : (!id, !both) -> !keys
  }
}

// -----

// merged_keys: ids of the parts, in order.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
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
    // expected-error@+1 {{'genrec.merged_keys' op 'ids 0' must be rows of @request (part 0 of its domain), but is rows of @history, [] x i64}}
    %0 = genrec.merged_keys %movie, %user in [@item, @item] of @all into %both : (!hid, !id, !both) -> !keys
  }
}

// -----

// merged_keys: into a stack.
!req = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!hist = !genrec.domain<@history>
!hid = tensor<?xi64, #genrec.rows<@history>>
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
    // expected-error@+1 {{'genrec.merged_keys' op needs a domain made by genrec.stack_domains}}
    %0 = genrec.merged_keys %user in [@item] of @all into %request : (!id, !req) -> !id
  }
}

// -----

// grouped_lookup takes keys.
!req = !genrec.domain<@request>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%k: !vec, %r: !req) {
  // expected-error@+1 {{'genrec.grouped_lookup' op 'keys' must be rows of a domain, [] x i64, but is rows of @request, [8] x f32}}
  %0 = genrec.grouped_lookup %k in @all into %r : (!vec, !req) -> !vec
  return
}

// -----

// grouped_lookup: a result per domain.
!req = !genrec.domain<@request>
!keys = tensor<?xi64, #genrec.rows<@both>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%k: !keys, %r: !req) {
  // expected-error@+1 {{'genrec.grouped_lookup' op needs a domain per result, but has 1 domains and 2 results}}
  %0, %1 = genrec.grouped_lookup %k in @all into %r : (!keys, !req) -> (!vec, !vec)
  return
}

// -----

// grouped_lookup: results are rows of the domains.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!keys = tensor<?xi64, #genrec.rows<@both>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%k: !keys, %r: !req, %h: !hist) {
  // expected-error@+1 {{'genrec.grouped_lookup' op 'result 1' must be rows of @history, [d] x f32, but is rows of @request, [8] x f32}}
  %0, %1 = genrec.grouped_lookup %k in @all into %r, %h : (!keys, !req, !hist) -> (!vec, !vec)
  return
}

// -----

// grouped_lookup is in a merged table.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!hvec = tensor<?x8xf32, #genrec.rows<@history>>
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
    %keys = genrec.merged_keys %user, %movie in [@item, @item] of @all into %both : (!id, !hid, !both) -> !keys
    // expected-error@+1 {{'genrec.grouped_lookup' op names @other, which the model does not declare as a table with members}}
    %0, %1 = genrec.grouped_lookup %keys in @other into %request, %history : (!keys, !req, !hist) -> (!vec, !hvec)
  }
}

// -----

// grouped_lookup gives whole rows.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!hvec = tensor<?x8xf32, #genrec.rows<@history>>
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
    %keys = genrec.merged_keys %user, %movie in [@item, @item] of @all into %both : (!id, !hid, !both) -> !keys
    // expected-error@+1 {{'genrec.grouped_lookup' op 'result 0' must be rows of @request, [8] x f32 (the dimension of table @all), but is rows of @request, [4] x f32}}
    %0, %1 = genrec.grouped_lookup %keys in @all into %request, %history : (!keys, !req, !hist) -> (tensor<?x4xf32, #genrec.rows<@request>>, !hvec)
  }
}

// -----

// grouped_lookup: keys of stacked ids.
!req = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!hist = !genrec.domain<@history>
!hid = tensor<?xi64, #genrec.rows<@history>>
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
    // expected-error@+1 {{'genrec.grouped_lookup' op needs rows of a domain made by genrec.stack_domains, but @request is made otherwise}}
    %0 = genrec.grouped_lookup %user in @all into %request : (!id, !req) -> !vec
  }
}

// -----

// grouped_lookup: the parts of the keys, in order.
!req = !genrec.domain<@request>
!hist = !genrec.domain<@history>
!both = !genrec.domain<@both>
!id = tensor<?xi64, #genrec.rows<@request>>
!hid = tensor<?xi64, #genrec.rows<@history>>
!keys = tensor<?xi64, #genrec.rows<@both>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!hvec = tensor<?x8xf32, #genrec.rows<@history>>
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
    %keys = genrec.merged_keys %user, %movie in [@item, @item] of @all into %both : (!id, !hid, !both) -> !keys
    // expected-error@+1 {{'genrec.grouped_lookup' op 'domains' must be the 2 parts of the domain of its keys, in order}}
    %0, %1 = genrec.grouped_lookup %keys in @all into %history, %request : (!keys, !hist, !req) -> (!hvec, !vec)
  }
}
