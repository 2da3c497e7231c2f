// Two steps of each optimizer from 1 with gradients 0.5 and -2; the values follow from PyTorch's equations, worked
// out apart. Parameters first, then the same rules on table rows, reached through ids 3, 5 and 3 again.
// RUN: genrec-run %s --split-input-file --steps=2 --batch=%S/Inputs/one.json --print=parameters,tables,gradients | FileCheck %s

!s2 = tensor<2xf32>
#one = #genrec.init<constant, 1.0>

genrec.model @parameters {
  genrec.domain @user
  genrec.parameter @sgd : !s2 {init = #one, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @momentum : !s2 {init = #one, optimizer = #genrec.optimizer<sgd, {lr = 0.1, momentum = 0.5, weight_decay = 0.1}>}
  genrec.parameter @adagrad : !s2 {init = #one, optimizer = #genrec.optimizer<adagrad, {lr = 0.1, initial_accumulator = 0.5, weight_decay = 0.1}>}
  genrec.parameter @adam : !s2 {init = #one, optimizer = #genrec.optimizer<adam, {lr = 0.1, beta1 = 0.5, beta2 = 0.75, weight_decay = 0.1}>}
  genrec.parameter @adamw : !s2 {init = #one, optimizer = #genrec.optimizer<adamw, {lr = 0.1, weight_decay = 0.1}>}
  genrec.parameter @rmsprop : !s2 {init = #one, optimizer = #genrec.optimizer<rmsprop, {lr = 0.1, alpha = 0.75, eps = 0.5}>}
  genrec.parameter @rmsprop_momentum : !s2 {init = #one, optimizer = #genrec.optimizer<rmsprop, {lr = 0.1, alpha = 0.75, eps = 0.5, momentum = 0.5, weight_decay = 0.1}>}
  genrec.program @train mode train {
    %g = genrec.constant dense<[0.5, -2.0]> : !s2
    genrec.update_parameter @sgd by %g : !s2
    genrec.update_parameter @momentum by %g : !s2
    genrec.update_parameter @adagrad by %g : !s2
    genrec.update_parameter @adam by %g : !s2
    genrec.update_parameter @adamw by %g : !s2
    genrec.update_parameter @rmsprop by %g : !s2
    genrec.update_parameter @rmsprop_momentum by %g : !s2
  }
}
// CHECK: parameters:
// CHECK-NEXT: adagrad: [0.935300336, 1.09372009]
// CHECK-NEXT: adam: [0.900000002, 1.1]
// CHECK-NEXT: adamw: [0.890000002, 1.09]
// CHECK-NEXT: momentum: [0.94, 1.19]
// CHECK-NEXT: rmsprop: [0.933333333, 1.13333333]
// CHECK-NEXT: rmsprop_momentum: [0.925, 1.13103448]
// CHECK-NEXT: sgd: [0.95, 1.2]
// CHECK: parameters:
// CHECK-NEXT: adagrad: [0.881393778, 1.16192239]
// CHECK-NEXT: adam: [0.800163721, 1.19994938]
// CHECK-NEXT: adamw: [0.781100004, 1.1791]
// CHECK-NEXT: momentum: [0.8506, 1.4731]
// CHECK-NEXT: rmsprop: [0.873144503, 1.24305009]
// CHECK-NEXT: rmsprop_momentum: [0.821227472, 1.30426442]
// CHECK-NEXT: sgd: [0.9, 1.4]

// -----

!user = !genrec.domain<@user>
!i = tensor<?xi64, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
!u1 = tensor<?x1xf32, #genrec.rows<@user>>
#one = #genrec.init<constant, 1.0>

// Row 3 has the gradients 0 (which does not touch it) and 1, row 5 has 2.
genrec.model @tables {
  genrec.domain @user
  genrec.table @sgd dim 1 {init = #one, optimizer = #genrec.optimizer<sgd, {lr = 0.25}>}
  genrec.table @adamw dim 1 {init = #one, optimizer = #genrec.optimizer<adamw, {lr = 0.1, per_row_step = 1.0}>}
  genrec.program @train mode train {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    %x = genrec.feature %user "x" : (!user) -> !u
    %g = genrec.concat_columns %x : (!u) -> !u1
    genrec.update_table @sgd ids(%id, %id) by(%g, %g) : (!i, !i, !u1, !u1) -> ()
    genrec.update_table @adamw ids(%id) by(%g) : (!i, !u1) -> ()
  }
}
// CHECK: gradients:
// CHECK-NEXT: adamw:
// CHECK-NEXT: 3: [1]
// CHECK-NEXT: 5: [2]
// CHECK-NEXT: sgd:
// CHECK-NEXT: 3: [2]
// CHECK-NEXT: 5: [4]
// A row of adamw ends with its two moments and its own step; tables decay only when told to.
// CHECK: tables:
// CHECK-NEXT: adamw:
// CHECK-NEXT: 3: [0.900000001, 0.1, 0.001, 1]
// CHECK-NEXT: 5: [0.9, 0.2, 0.004, 1]
// CHECK-NEXT: sgd:
// CHECK-NEXT: 3: [0.5]
// CHECK-NEXT: 5: [0]
// CHECK: tables:
// CHECK-NEXT: adamw:
// CHECK-NEXT: 3: [0.800000002, 0.19, 0.001999, 2]

// -----

!s = tensor<f32>

// The rate rises over 2 steps, then falls linearly to 0.2 at step 4: factors 1/2, 1.
genrec.model @schedule attributes {schedule = {kind = "linear", warmup = 2 : i64, steps = 4 : i64, final = 0.2 : f64}} {
  genrec.domain @user
  genrec.parameter @p : !s {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.5}>}
  genrec.program @train mode train {
    %rate = genrec.step_value "learning_rate"(0.5) : !s
    %correction = genrec.step_value "bias_correction"(0.5) : !s
    %both = genrec.add %rate, %correction : (!s, !s) -> !s
    genrec.update_parameter @p by %both : !s
  }
}
// Gradient 0.25 + 0.5, rate 0.25; then 0.5 + 0.75, rate 0.5.
// CHECK: p: [0.75]
// CHECK: p: [0.8125]
// CHECK: p: [1.25]
// CHECK: p: [0.1875]

// -----

!user = !genrec.domain<@user>
!i = tensor<?xi64, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
#one = #genrec.init<constant, 1.0>

// Row 3 has the gradient [1, 1], row 5 [2, 1]: means of squares 1 and 2.5, which the row's one accumulator adds to
// the 0.5 that it starts with. Of a table bounded to one row 5 stays, seen last in step 2, in two steps; ids that are
// to be seen in two steps have their rows, and train, from step 2 on.
genrec.model @rowwise {
  genrec.domain @user
  genrec.table @all dim 2 {init = #one, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1, initial_accumulator = 0.5}>}
  genrec.table @bound dim 2 {bounded = 1 : i64, init = #one, optimizer = #genrec.optimizer<sgd, {lr = 0.25}>}
  genrec.table @late dim 2 {admit_after = 2 : i64, init = #one, optimizer = #genrec.optimizer<sgd, {lr = 0.25}>}
  genrec.program @train mode train {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    %x = genrec.feature %user "x" : (!user) -> !u
    %label = genrec.feature %user "label" : (!user) -> !u
    %g = genrec.concat_columns %x, %label : (!u, !u) -> !u2
    genrec.update_table @all ids(%id) by(%g) : (!i, !u2) -> ()
    genrec.update_table @bound ids(%id) by(%g) : (!i, !u2) -> ()
    genrec.update_table @late ids(%id) by(%g) : (!i, !u2) -> ()
  }
}
// CHECK: gradients:
// CHECK-NEXT: all:
// CHECK: tables:
// CHECK-NEXT: all:
// CHECK-NEXT: 3: [0.918350342, 0.918350342, 1.5]
// CHECK-NEXT: 5: [0.884529946, 0.942264973, 3]
// CHECK-NEXT: bound:
// CHECK-NEXT: 5: [0.5, 0.75, 1, 1]
// CHECK-NEXT: late:
// CHECK: tables:
// CHECK-NEXT: all:
// CHECK-NEXT: 3: [0.855104789, 0.855104789, 2.5]
// CHECK-NEXT: 5: [0.79924966, 0.89962483, 5.5]
// CHECK-NEXT: bound:
// CHECK-NEXT: 5: [0, 0.5, 2, 2]
// CHECK-NEXT: late:
// CHECK-NEXT: 3: [0.75, 0.75, 2, 1]
// CHECK-NEXT: 5: [0.5, 0.75, 2, 1]
