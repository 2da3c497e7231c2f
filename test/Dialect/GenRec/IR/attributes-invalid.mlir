// RUN: genrec-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// The rules of row encodings, initializers and optimizers.

// Rows have a dynamic first size.
// expected-error@+1 {{rows of @a must have a dynamic first size, the number of rows, but the tensor is [3] x f32}}
func.func private @f(tensor<3xf32, #genrec.rows<@a>>)

// -----

// Rows have a first size.
// expected-error@+1 {{rows of @a must have a dynamic first size, the number of rows, but the tensor is [] x f32}}
func.func private @f(tensor<f32, #genrec.rows<@a>>)

// -----

// A row is a scalar or a vector.
// expected-error@+1 {{rows of @a must be scalars or vectors: one size per row at most, but the tensor is [?, 2, 3] x f32}}
func.func private @f(tensor<?x2x3xf32, #genrec.rows<@a>>)

// -----

// The size of a row is static.
// expected-error@+1 {{rows of @a must have a static size of at least 1 per row, but the tensor is [?, ?] x f32}}
func.func private @f(tensor<?x?xf32, #genrec.rows<@a>>)

// -----

// The size of a row is not 0.
// expected-error@+1 {{rows of @a must have a static size of at least 1 per row, but the tensor is [?, 0] x f32}}
func.func private @f(tensor<?x0xf32, #genrec.rows<@a>>)

// -----

// Element types are a fixed set.
// expected-error@+1 {{rows of @a must have elements of i1, i32, i64, f32, f64, bf16, !genrec.string or !genrec.row, but the tensor is [?] x i7}}
func.func private @f(tensor<?xi7, #genrec.rows<@a>>)

// -----

// Strings are scalars of a row.
// expected-error@+1 {{rows of @a must have one string or table row each, but the tensor is [?, 2] x !genrec.string}}
func.func private @f(tensor<?x2x!genrec.string, #genrec.rows<@a>>)

// -----

// A standard deviation is not negative.
// expected-error@+1 {{initializer normal must have a finite scale of at least 0, but has -1.000000e+00 : f64}}
"test"() {a = #genrec.init<normal, -1.0>} : () -> ()

// -----

// A constant is finite.
// expected-error@+1 {{initializer constant must have a finite scale, but has 0x7FF0000000000000 : f64}}
"test"() {a = #genrec.init<constant, 0x7FF0000000000000 : f64>} : () -> ()

// -----

// Options are those of the kind.
// expected-error@+1 {{optimizer sgd has no option 'beta1'; it has lr, momentum, weight_decay, frozen}}
"test"() {a = #genrec.optimizer<sgd, {beta1 = 0.9}>} : () -> ()

// -----

// Options are doubles.
// expected-error@+1 {{option 'lr' of optimizer adam must be an f64, at least 0, but is 1.000000e+00 : f32}}
"test"() {a = #genrec.optimizer<adam, {lr = 1.0 : f32}>} : () -> ()

// -----

// Options are numbers.
// expected-error@+1 {{option 'initial_accumulator' of optimizer adagrad must be an f64, at least 0, but is "0"}}
"test"() {a = #genrec.optimizer<adagrad, {initial_accumulator = "0"}>} : () -> ()

// -----

// Rates are below 1.
// expected-error@+1 {{option 'beta2' of optimizer adamw must be an f64, in [0, 1), but is 1.000000e+00 : f64}}
"test"() {a = #genrec.optimizer<adamw, {beta2 = 1.0}>} : () -> ()

// -----

// eps is greater than 0.
// expected-error@+1 {{option 'eps' of optimizer adagrad must be an f64, greater than 0, but is 0.000000e+00 : f64}}
"test"() {a = #genrec.optimizer<adagrad, {eps = 0.0}>} : () -> ()

// -----

// Decay is not negative.
// expected-error@+1 {{option 'weight_decay' of optimizer sgd must be an f64, at least 0, but is -1.000000e-01 : f64}}
"test"() {a = #genrec.optimizer<sgd, {weight_decay = -0.1}>} : () -> ()

// -----

// per_row_step is a flag.
// expected-error@+1 {{option 'per_row_step' of optimizer adam must be an f64, 0 or 1, but is 2.000000e+00 : f64}}
"test"() {a = #genrec.optimizer<adam, {per_row_step = 2.0}>} : () -> ()

// -----

// expected-error@+1 {{option 'alpha' of optimizer rmsprop must be an f64, in [0, 1), but is 1.000000e+00 : f64}}
"test"() {a = #genrec.optimizer<rmsprop, {alpha = 1.0}>} : () -> ()

// -----

// expected-error@+1 {{optimizer rmsprop has no option 'beta1'; it has lr, weight_decay, eps, alpha, momentum, frozen}}
"test"() {a = #genrec.optimizer<rmsprop, {beta1 = 0.9}>} : () -> ()
