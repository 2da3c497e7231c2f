// An op from outside (examples/own_op) in tools: parsed, interpreted, differentiated, lowered.
// RUN: genrec-opt %s --plugin=%build/lib/own_op.so | FileCheck %s --check-prefix=PRINT
// RUN: genrec-opt %s --plugin=%build/lib/own_op.so --genrec-graph-pipeline --genrec-verify-each | FileCheck %s --check-prefix=LOWERED
// RUN: genrec-run %s --plugin=%build/lib/own_op.so --random=1 --rows=5 --steps=2 --check-gradients | FileCheck %s --check-prefix=GRADIENTS

// Without the plugin the model is refused.
// RUN: not genrec-run %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: {{.*}}own

!d = !genrec.domain<@user>
!s4 = tensor<4xf32>
!s44 = tensor<4x4xf32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
#init = #genrec.init<normal, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 0.01}>

genrec.model @own {
  genrec.domain @user
  genrec.parameter @lift : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @start : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @weight : !s44 {init = #init, optimizer = #sgd}
  genrec.parameter @bias : !s4 {init = #init, optimizer = #sgd}
  genrec.parameter @gate : !s44 {init = #init, optimizer = #sgd}
  genrec.program @main {
    %user = genrec.batch : !d
    %f = genrec.feature %user "f" : (!d) -> !u
    %lift = genrec.param @lift : !s4
    %start = genrec.param @start : !s4
    %weight = genrec.param @weight : !s44
    %bias = genrec.param @bias : !s4
    %gate = genrec.param @gate : !s44
    %x = genrec.mul %f, %lift : (!u, !s4) -> !u4
    %x0 = genrec.add %f, %start : (!u, !s4) -> !u4
    // PRINT: own.gated_cross %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x4xf32
    // LOWERED: own.gated_cross
    // LOWERED: genrec.weight_gradient
    %y = own.gated_cross %x0, %x, %weight, %bias, %gate : (!u4, !u4, !s44, !s4, !s44) -> !u4
    %z = genrec.square %y : !u4
    %loss = genrec.row_reduce sum %z : (!u4) -> !u
    genrec.loss "squares" %loss : !u
    genrec.output "y" %y : !u4
  }
}

// GRADIENTS-DAG: gradient of weight: 16 derivatives, 16 not 0
// GRADIENTS-DAG: gradient of gate: 16 derivatives, 16 not 0
// GRADIENTS-DAG: gradient of bias: 4 derivatives, 4 not 0
// GRADIENTS-DAG: gradient of start: 4 derivatives, 4 not 0
// GRADIENTS: gradients agree
// GRADIENTS: gradients agree
