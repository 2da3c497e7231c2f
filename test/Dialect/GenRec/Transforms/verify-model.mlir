// RUN: genrec-opt %s --genrec-verify-model --split-input-file --verify-diagnostics | FileCheck %s
// RUN: genrec-opt %s --genrec-verify-model --genrec-pass-statistics --split-input-file --verify-diagnostics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// A model that is fine stays as it is.

// CHECK-LABEL: genrec.model @fine
// CHECK: genrec.loss "bce"
// COUNT: genrec-verify-model ops: 6
genrec.model @fine {
  genrec.domain @user
  genrec.parameter @bias : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %b = genrec.param @bias : tensor<f32>
    %y = genrec.add %x, %b : (tensor<?xf32, #genrec.rows<@user>>, tensor<f32>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "bce" %y : tensor<?xf32, #genrec.rows<@user>>
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// expected-error @+1 {{'genrec.model' op must have exactly one program, but has 0}}
genrec.model @empty {
}

// -----

genrec.model @specialised {
  // expected-error @+1 {{'genrec.program' op must have mode 'all' before modes are specialised, but has 'train'}}
  genrec.program @train mode train {
  }
}

// -----

genrec.model @idle {
  genrec.domain @user
  // expected-error @+1 {{'genrec.program' op has no loss, metric or output: there is nothing to compute; add one}}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
  }
}

// -----

genrec.model @untrained {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    // expected-error @+1 {{'genrec.loss' op 'l' depends on no parameter and no table that is trained: there is nothing to train; use a metric to measure data}}
    genrec.loss "l" %x : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

genrec.model @frozen {
  genrec.domain @user
  genrec.table @t dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {frozen = 1.0}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "x" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %ids in @t : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %s = genrec.row_reduce sum %x : (tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    // expected-error @+1 {{'genrec.loss' op 'l' depends on no parameter and no table that is trained: there is nothing to train; use a metric to measure data}}
    genrec.loss "l" %s : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

genrec.model @step_rows {
  genrec.domain @one {kind = #genrec<domain_kind step>}
  genrec.parameter @bias : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %one = genrec.fixed_rows 1 : !genrec.domain<@one>
    %b = genrec.param @bias : tensor<f32>
    // expected-error @+1 {{'genrec.shared_rows' op makes rows of the step domain 'one', which only passes may do}}
    %r = genrec.shared_rows %b as %one : (tensor<f32>, !genrec.domain<@one>) -> tensor<?xf32, #genrec.rows<@one>>
    genrec.loss "l" %r : tensor<?xf32, #genrec.rows<@one>>
  }
}
