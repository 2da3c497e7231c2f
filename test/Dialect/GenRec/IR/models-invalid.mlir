// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of models and declarations.

// Bounds of gradients are not negative.
// expected-error@+1 {{'genrec.model' op 'clip_norm' must be finite and at least 0, but is -1}}
genrec.model @m attributes {clip_norm = -1.0 : f64} {
}

// -----

// Bounds of gradients are finite.
// expected-error@+1 {{'genrec.model' op 'clip_value' must be finite and at least 0, but is inf}}
genrec.model @m attributes {clip_value = 0x7FF0000000000000 : f64} {
}

// -----

// Schedules have a kind of three.
// expected-error@+1 {{'genrec.model' op 'schedule' entry 'kind' must be "constant", "linear" or "cosine", but is "step"}}
genrec.model @m attributes {schedule = {kind = "step"}} {
}

// -----

// Warm-up is a number of steps.
// expected-error@+1 {{'genrec.model' op 'schedule' entry 'warmup' must be an i64 of at least 0 (a number of steps), but is -1 : i64}}
genrec.model @m attributes {schedule = {warmup = -1 : i64}} {
}

// -----

// The last step is a number of steps.
// expected-error@+1 {{'genrec.model' op 'schedule' entry 'steps' must be an i64 of at least 0 (a number of steps), but is 1.000000e+00 : f64}}
genrec.model @m attributes {schedule = {steps = 1.0 : f64}} {
}

// -----

// The final factor is at most 1.
// expected-error@+1 {{'genrec.model' op 'schedule' entry 'final' must be a float from 0 to 1 (a factor of the learning rate), but is 2.000000e+00 : f64}}
genrec.model @m attributes {schedule = {final = 2.0 : f64}} {
}

// -----

// Schedules have no other entries.
// expected-error@+1 {{'genrec.model' op 'schedule' has unknown entry 'decay'; it has kind, warmup, steps and final}}
genrec.model @m attributes {schedule = {decay = 2.0 : f64}} {
}

// -----

// A model holds declarations and programs.
// expected-error@+1 {{'genrec.model' op holds declarations and programs only, but has 'arith.constant'}}
genrec.model @m {
  %0 = arith.constant 1 : i64
}

// -----

// A dataset has one root.
// expected-error@+1 {{'genrec.model' op has two roots of kind data, @user and @request; a dataset has one, and other domains name a parent}}
genrec.model @m {
  genrec.domain @user
  genrec.domain @request
}

// -----

// There is one program of a mode.
// expected-error@+1 {{'genrec.model' op has two programs of mode train, @a and @b}}
genrec.model @m {
  genrec.program @a mode train {
  }
  genrec.program @b mode train {
  }
}

// -----

// Only a catalogue is a file.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind data must have no 'source'; only a catalogue is a file of its own}}
  genrec.domain @event parent @request {column = "e", source = "f.parquet"}
}

// -----

// A column has a name.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op 'column' must not be empty}}
  genrec.domain @event parent @request {column = ""}
}

// -----

// A list is opened by a column.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind data with a parent must name the list 'column' that opens it}}
  genrec.domain @event parent @request
}

// -----

// A root is not a list.
genrec.model @m {
  // expected-error@+1 {{'genrec.domain' op of kind data without a parent must have no 'column'; its rows are the rows of the file}}
  genrec.domain @request {column = "c"}
}

// -----

// Derived rows are not read.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind derived must have no 'column'; its rows are not read from a list column}}
  genrec.domain @event parent @request kind derived {column = "e"}
}

// -----

// Derived rows lie below others.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind derived must have a 'parent'}}
  genrec.domain @event kind derived
}

// -----

// A catalogue is a root.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind catalogue must have no 'parent'}}
  genrec.domain @items parent @request kind catalogue
}

// -----

// Rows of a step have no parent.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op of kind step must have no 'parent'}}
  genrec.domain @rows parent @request kind step
}

// -----

// Parents are declared.
genrec.model @m {
  genrec.domain @request
  // expected-error@+1 {{'genrec.domain' op names parent @visit, which the model does not declare}}
  genrec.domain @event parent @visit {column = "e"}
}

// -----

// Parents are domains.
genrec.model @m {
  genrec.domain @request
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.domain' op names parent @item, which the model does not declare}}
  genrec.domain @event parent @item {column = "e"}
}

// -----

// Rows of a step lie below nothing, and nothing below them.
genrec.model @m {
  genrec.domain @touched kind step
  // expected-error@+1 {{'genrec.domain' op of kind data cannot have the parent @touched of kind step}}
  genrec.domain @tag parent @touched {column = "e"}
}

// -----

// Data does not lie below derived rows.
genrec.model @m {
  genrec.domain @request
  genrec.domain @recent parent @request kind derived
  // expected-error@+1 {{'genrec.domain' op of kind data cannot have the parent @recent of kind derived}}
  genrec.domain @tag parent @recent {column = "e"}
}

// -----

// Domains form a tree.
genrec.model @m {
  // expected-error@+1 {{'genrec.domain' op is its own ancestor; domains must form a tree}}
  genrec.domain @a parent @b {column = "a"}
  genrec.domain @b parent @a {column = "b"}
}

// -----

// Ids have 1 to 63 bits.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op 'id_bits' must be 1 to 63, but is 64}}
  genrec.table @t dim 8 {id_bits = 64 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A table has columns.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op attribute 'dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  genrec.table @t dim 0 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A parameter is static.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op must be a tensor of f32 of static shape, rank 0 to 2 and at least one element, but is tensor<?x4xf32>}}
  genrec.parameter @p : tensor<?x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A parameter is of f32.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op must be a tensor of f32 of static shape, rank 0 to 2 and at least one element, but is tensor<4xf64>}}
  genrec.parameter @p : tensor<4xf64> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A parameter is at most a matrix.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op must be a tensor of f32 of static shape, rank 0 to 2 and at least one element, but is tensor<2x2x2xf32>}}
  genrec.parameter @p : tensor<2x2x2xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A parameter is shared.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op must be a tensor of f32 of static shape, rank 0 to 2 and at least one element, but is tensor<?x4xf32, #genrec.rows<@a>>}}
  genrec.parameter @p : tensor<?x4xf32, #genrec.rows<@a>> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A parameter is not empty.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op must be a tensor of f32 of static shape, rank 0 to 2 and at least one element, but is tensor<0xf32>}}
  genrec.parameter @p : tensor<0xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Fans need two sizes.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op is initialised by xavier_normal, which needs rank 2 (fan in and fan out), but is tensor<4xf32>}}
  genrec.parameter @p : tensor<4xf32> {init = #genrec.init<xavier_normal, 1.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Steps are counted per row in tables.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op has optimizer option 'per_row_step', which is for tables only}}
  genrec.parameter @p : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adam, {per_row_step = 1.0}>}
}

// -----

// rowwise_adagrad keeps one accumulator per row, which a parameter has none of.
genrec.model @m {
  // expected-error@+1 {{'genrec.parameter' op has optimizer rowwise_adagrad, which is for tables only: it keeps one accumulator per row}}
  genrec.parameter @p : tensor<2x4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1}>}
}

// -----

// Rows of a frozen table neither come nor leave.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op is frozen, so that rows neither come nor leave nor change, but has rules about rows ('bounded', 'ttl', 'admit_after' or 'hot_after')}}
  genrec.table @t dim 8 {ttl = 3 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {frozen = 1.0}>}
}

// -----

// A bounded table has at least one row.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op 'bounded' must be at least 1, but is 0}}
  genrec.table @t dim 8 {bounded = 0 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Rows stay for a step at least.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op 'ttl' must be at least 1, but is -3}}
  genrec.table @t dim 8 {ttl = -3 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A unit without a number.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op has 'ttl_in_seconds', the unit of 'ttl', but no 'ttl'}}
  genrec.table @t dim 8 {ttl_in_seconds, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// The number is that of 'ttl'.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op attribute 'ttl_in_seconds' failed to satisfy constraint: unit attribute}}
  genrec.table @t dim 8 {ttl = 3 : i64, ttl_in_seconds = 60 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// An id is seen before it is admitted.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op 'admit_after' must be at least 1, but is 0}}
  genrec.table @t dim 8 {admit_after = 0 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Only a bounded table evicts.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op has 'evict', which says what leaves a bounded table, but no 'bounded'}}
  genrec.table @t dim 8 {evict = #genrec<evict_kind lfu>, ttl = 3 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// What is not rounded has no rounding.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op has 'rounding', which says how values of bf16 are stored, but its 'element' is f32}}
  genrec.table @t dim 8 {rounding = #genrec<row_rounding nearest>, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Rows of f32 keep the lower halves of their floats anyway.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op has 'hot_after', which says what rows of bf16 keep the lower halves of floats, but its 'element' is f32}}
  genrec.table @t dim 8 {hot_after = 2 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A row is seen before it is hot.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op 'hot_after' must be at least 1, but is 0}}
  genrec.table @t dim 8 {element = #genrec<row_element bf16>, hot_after = 0 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// No step updates rows of frozen tables.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op is frozen, so that rows neither come nor leave nor change, but has rules about rows ('bounded', 'ttl', 'admit_after' or 'hot_after')}}
  genrec.table @t dim 8 {element = #genrec<row_element bf16>, hot_after = 2 : i64, init = #genrec.init<zeros, 0.0>,
    optimizer = #genrec.optimizer<sgd, {frozen = 1.0}>}
}

// -----

// A merged table has the hot rows of its members.
genrec.model @m {
  // expected-note@+1 {{the member is declared here}}
  genrec.table @t dim 8 {element = #genrec<row_element bf16>, hot_after = 2 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.table' op differs from its member @t in more than name and id_bits}}
  genrec.table @all dim 8 {element = #genrec<row_element bf16>, hot_after = 3 : i64, members = [@t], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A merged table has the elements of its members.
genrec.model @m {
  // expected-note@+1 {{the member is declared here}}
  genrec.table @t dim 8 {element = #genrec<row_element bf16>, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.table' op differs from its member @t in more than name and id_bits}}
  genrec.table @all dim 8 {members = [@t], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// A merged table holds something.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op must have at least one of 'members'}}
  genrec.table @all dim 8 {members = [], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Members are declared.
genrec.model @m {
  // expected-error@+1 {{'genrec.table' op has the member @b, which the model does not declare as a logical table}}
  genrec.table @all dim 8 {members = [@b], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Each once.
genrec.model @m {
  genrec.table @a dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.table' op has the member @a twice}}
  genrec.table @all dim 8 {members = [@a, @a], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Ids fit beside the number of their table.
genrec.model @m {
  // expected-note@+1 {{the member is declared here}}
  genrec.table @a dim 8 {id_bits = 63 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.table' op of 1 members leaves 62 bits for ids, but @a has 63}}
  genrec.table @all dim 8 {members = [@a], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}

// -----

// Members have the spec of the merged table.
genrec.model @m {
  // expected-note@+1 {{the member is declared here}}
  genrec.table @a dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  // expected-error@+1 {{'genrec.table' op differs from its member @a in more than name and id_bits}}
  genrec.table @all dim 8 {members = [@a], init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
}
