// RUN: genrec-opt %s --genrec-pipeline="target=cpu opt=0" | FileCheck %s
// RUN: genrec-opt %s --genrec-pipeline="target=cpu opt=1" | FileCheck %s
// RUN: genrec-opt %s --genrec-pipeline | FileCheck %s
// RUN: not genrec-opt %s --genrec-pipeline="target=abacus" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not genrec-opt %s --genrec-pipeline="opt=3" 2>&1 | FileCheck %s --check-prefix=LEVEL

// From a recorded model to EmitC: nothing of the genrec dialect is left.

// CHECK: emitc.
// CHECK-NOT: {{[ "]genrec\.[a-z_]+ }}
// TARGET: abacus
// LEVEL: error: option 'opt' must be 0, 1 or 2, but is 3
genrec.model @ranker {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.parameter @w : tensor<4x1xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adamw, {lr = 1.0e-3}>}
  genrec.parameter @b : tensor<1xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 1.0e-1}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %ids = genrec.feature %event "events.item" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %x = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %p = genrec.pool mean %x to %user : (tensor<?x4xf32, #genrec.rows<@event>>, !genrec.domain<@user>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %w = genrec.param @w : tensor<4x1xf32>
    %b = genrec.param @b : tensor<1xf32>
    %y = genrec.linear %p, %w bias %b : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<4x1xf32>, tensor<1xf32>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %z = genrec.row_reduce sum %y : (tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    %l = genrec.bce_with_logits %z, %label : (tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "bce" %l : tensor<?xf32, #genrec.rows<@user>>
    genrec.metric auc "auc" %z label %label : tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>
    genrec.output "score" %z : tensor<?xf32, #genrec.rows<@user>>
  }
}
