// Gradients of models that passes before and behind differentiation rewrite, as the updates of the rewritten programs get them,
// against central differences; then the same models after every pass, against themselves.

// RUN: genrec-run %s --split-input-file --random=3 --rows=6 --check-gradients --pipeline='builtin.module(genrec.model(genrec-infer-domains,genrec-specialize-modes,cse,genrec-merge-tables,genrec-decompose-blocks,cse,genrec-differentiate,cse,genrec-split-classes{block=2}))' | FileCheck %s
// RUN: genrec-opt %s --split-input-file --genrec-graph-pipeline=split-classes=2 --genrec-verify-each --genrec-count-rewrites 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// Passes that would run on nothing, and what is no pass.

// RUN: not genrec-run %s --split-input-file --pipeline='genrec.model(genrec-infer-domains)' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: error: the pipeline 'genrec.model(genrec-infer-domains)' must be one of modules: 'builtin.module(...)'
// RUN: not genrec-run %s --split-input-file --pipeline='builtin.module(genrec-nothing)' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: cannot read the pipeline 'builtin.module(genrec-nothing)': {{.*}}genrec-nothing

// COUNT: factor-lookup: {{[1-9]}}
// COUNT: merge-tables: 1
// COUNT: split-classes: 2

// A softmax over 9 classes, two at a time.

// CHECK: gradient of bias: 9 derivatives, 9 not 0
// CHECK: gradient of classes: 36 derivatives, 36 not 0
// CHECK: gradient of item: {{[0-9]+}} derivatives
// CHECK: gradients agree
!id = tensor<?xi64, #genrec.rows<@user>>
!one = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!many = tensor<?x9xf32, #genrec.rows<@user>>
genrec.model @split {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @classes : tensor<4x9xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @bias : tensor<9xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %label = genrec.mod %id {divisor = 9 : i64} : (!id) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @classes : tensor<4x9xf32>
    %b = genrec.param @bias : tensor<9xf32>
    %logits = genrec.linear %x, %w bias %b : (!x, tensor<4x9xf32>, tensor<9xf32>) -> !many
    %loss = genrec.softmax_cross_entropy %logits, %label : (!many, !id) -> !one
    genrec.loss "class" %loss : !one
  }
}

// -----

// A layer over lookups of three tables, two of them merged and one of those looked up twice, and a column beside them: each
// distinct row is multiplied once.

// CHECK: gradient of layer: 165 derivatives, 165 not 0
// CHECK: gradient of b: {{[0-9]+}} derivatives
// CHECK: gradients agree
!id = tensor<?xi64, #genrec.rows<@user>>
!one = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x8xf32, #genrec.rows<@user>>
!wide = tensor<?x33xf32, #genrec.rows<@user>>
!out = tensor<?x5xf32, #genrec.rows<@user>>
genrec.model @factored {
  genrec.domain @user
  genrec.table @a dim 8 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 8 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @c dim 8 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {}>}
  genrec.parameter @layer : tensor<33x5xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !id
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !id
    %k = genrec.feature %user "k" : (!genrec.domain<@user>) -> !id
    %f = genrec.feature %user "f" : (!genrec.domain<@user>) -> !one
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !one
    %a = genrec.lookup %i in @a : (!id) -> !x
    %b = genrec.lookup %j in @b : (!id) -> !x
    %again = genrec.lookup %k in @a : (!id) -> !x
    %c = genrec.lookup %k in @c : (!id) -> !x
    %joined = genrec.concat_columns %a, %b, %f, %again, %c : (!x, !x, !one, !x, !x) -> !wide
    %w = genrec.param @layer : tensor<33x5xf32>
    %y = genrec.linear %joined, %w : (!wide, tensor<33x5xf32>) -> !out
    %h = genrec.tanh %y : !out
    %logit = genrec.row_reduce sum %h : (!out) -> !one
    %bce = genrec.bce_with_logits %logit, %label : (!one, !one) -> !one
    genrec.loss "bce" %bce : !one
  }
}
