// RUN: genrec-opt %s --genrec-infer-domains --genrec-specialize-modes --genrec-decompose-blocks --genrec-differentiate --cse --genrec-split-classes=block=2 --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-infer-domains --genrec-specialize-modes --genrec-decompose-blocks --genrec-differentiate --cse --genrec-split-classes=block=2 --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-graph-pipeline=split-classes=2 --genrec-verify-each --split-input-file >/dev/null
// RUN: genrec-opt %s --genrec-graph-pipeline=split-classes=0 --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: not genrec-opt %s --genrec-split-classes=block=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// COUNT: split-classes: 6
// COUNT: genrec-split-classes blocks: 30
// COUNT: genrec-split-classes losses: 6
// COUNT: genrec-split-classes whole: 6

// OFF-NOT: genrec.after
// NONE: error: option 'block' must be at least 1, but is 0

// All items of a catalogue: log Σ exp and the label's logit go from block to block; backward begins with the block that is
// still there and computes the others again. Only the last says when there are more items.

// CHECK-LABEL: genrec.model @items
// CHECK-SAME: "split-classes: @train: 10 classes of softmax_cross_entropy are computed 2 at a time, in 5 blocks"
// CHECK:       genrec.program @train
// CHECK:       %[[L0:.*]] = genrec.scores %[[Q:.*]], %[[ITEM:.*]] {partial} : {{.*}} -> tensor<?x2xf32, #genrec.rows<@user>>
// CHECK-NEXT:  %[[S0:.*]] = genrec.log_sum_exp %[[L0]] :
// CHECK-NEXT:  %[[P0:.*]] = genrec.pick_column %[[L0]] at %[[LABEL:.*]] :
// CHECK-NEXT:  %[[Q1:.*]] = genrec.after %[[Q]] on %[[S0]], %[[P0]] :
// CHECK-NEXT:  %[[L1:.*]] = genrec.scores %[[Q1]], %[[ITEM]] {first = 2 : i64, partial} :
// CHECK-NEXT:  %[[S1:.*]] = genrec.log_sum_exp %[[L1]] before %[[S0]] :
// CHECK-NEXT:  %[[P1:.*]] = genrec.pick_column %[[L1]] at %[[LABEL]] {first = 2 : i64} :
// CHECK-NEXT:  genrec.add %[[P0]], %[[P1]]
// CHECK:       %[[L4:.*]] = genrec.scores {{.*}} {first = 8 : i64} :
// CHECK-NEXT:  %[[S4:.*]] = genrec.log_sum_exp %[[L4]] before
// CHECK:       %[[G4:.*]] = genrec.softmax_cross_entropy_grad %[[L4]], %[[LABEL]], %[[SEED:.*]] log_sum_exp %[[S4]] {first = 8 : i64} :
// CHECK-NEXT:  %[[DQ4:.*]], %[[DI4:.*]] = genrec.scores_grad %[[Q]], %[[ITEM]], %[[G4]] {first = 8 : i64} :
// CHECK-NEXT:  %[[Q3:.*]] = genrec.after %[[Q]] on %[[DQ4]], %[[DI4]] :
// CHECK-NEXT:  %[[L3:.*]] = genrec.scores %[[Q3]], %[[ITEM]] {first = 6 : i64, partial} :
// CHECK-NEXT:  %[[G3:.*]] = genrec.softmax_cross_entropy_grad %[[L3]], %[[LABEL]], %[[SEED]] log_sum_exp %[[S4]] {first = 6 : i64} :
// CHECK-NEXT:  genrec.scores_grad %[[Q]], %[[ITEM]], %[[G3]] onto %[[DQ4]], %[[DI4]] {first = 6 : i64, partial} :
// CHECK:       genrec.program @evaluate
// CHECK:       genrec.after
genrec.model @items {
  genrec.domain @user
  genrec.domain @items kind catalogue {source = "items.parquet"}
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %all = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %item = genrec.lookup %all in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x4xf32, #genrec.rows<@items>>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %next = genrec.feature %user "next" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %label = genrec.resolve %next in %all : (tensor<?xi64, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@user>>
    %q = genrec.lookup %id in @item : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %logits = genrec.scores %q, %item : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@items>>) -> tensor<?x10xf32, #genrec.rows<@user>>
    %loss = genrec.softmax_cross_entropy %logits, %label : (tensor<?x10xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// A linear layer: blocks of the columns of its weight and bias; their gradients are joined in the end.

// CHECK-LABEL: genrec.model @layer
// CHECK:       %[[W:.*]] = genrec.param @w
// CHECK:       %[[B1:.*]] = genrec.slice_columns %{{.*}} from 2 : (tensor<9xf32>) -> tensor<2xf32>
// CHECK-NEXT:  %[[ROWS:.*]] = genrec.shared_rows %[[W]] as
// CHECK-NEXT:  %[[COLUMNS:.*]] = genrec.slice_columns %[[ROWS]] from 2
// CHECK-NEXT:  %[[W1:.*]] = genrec.rows_as_shared %[[COLUMNS]] : {{.*}} -> tensor<4x2xf32>
// CHECK-NEXT:  genrec.linear %{{.*}}, %[[W1]] bias %[[B1]]
// CHECK:       %[[G4:.*]] = genrec.softmax_cross_entropy_grad {{.*}} {first = 8 : i64} : (tensor<?x1xf32
// CHECK:       %[[DX4:.*]] = genrec.linear %[[G4]], %{{.*}} {transposed} :
// CHECK-NEXT:  %[[DW4:.*]] = genrec.weight_gradient %[[X:.*]], %[[G4]]
// CHECK-NEXT:  %[[DB4:.*]] = genrec.reduce_rows %[[G4]]
// CHECK-NEXT:  genrec.after %[[X]] on %[[DX4]], %[[DW4]], %[[DB4]]
// CHECK:       %[[DX3:.*]] = genrec.linear %{{.*}} {transposed} :
// CHECK-NEXT:  genrec.add %[[DX3]], %[[DX4]]
// CHECK:       genrec.concat_columns {{.*}} -> tensor<?x9xf32, #genrec.rows<@rows_4>>
// CHECK-NEXT:  %[[DW:.*]] = genrec.rows_as_shared {{.*}} -> tensor<4x9xf32>
// CHECK-NEXT:  %[[DB:.*]] = genrec.concat_columns {{.*}}, %[[DB4]] : {{.*}} -> tensor<9xf32>
// CHECK:       genrec.update_parameter @w by %[[DW]]
// CHECK-NEXT:  genrec.update_parameter @b by %[[DB]]
!x = tensor<?x4xf32, #genrec.rows<@user>>
genrec.model @layer {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x9xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<9xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %label = genrec.mod %id {divisor = 9 : i64} : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %id in @item : (tensor<?xi64, #genrec.rows<@user>>) -> !x
    %w = genrec.param @w : tensor<4x9xf32>
    %b = genrec.param @b : tensor<9xf32>
    %logits = genrec.linear %x, %w bias %b : (!x, tensor<4x9xf32>, tensor<9xf32>) -> tensor<?x9xf32, #genrec.rows<@user>>
    %loss = genrec.softmax_cross_entropy %logits, %label : (tensor<?x9xf32, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "class" %loss : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// Too few classes; logits that something else reads; logits that no product makes; an input that is not trained.

// CHECK-LABEL: genrec.model @others
// CHECK-SAME:  "split-classes: @train: 9 classes of 'shared' (softmax_cross_entropy) are in memory at once: row_reduce reads them too"
// CHECK-SAME:  "split-classes: @train: 9 classes of softmax_cross_entropy are in memory at once: they are made by mul, not by linear or scores"
// CHECK-SAME:  "split-classes: @train: 9 classes of 'smoothed' (softmax_cross_entropy) are in memory at once: label smoothing reads all of them"
// CHECK:       genrec.program @train
// CHECK:       genrec.softmax_cross_entropy %{{.*}} : (tensor<?x7xf32
// CHECK:       %[[X:.*]] = genrec.after %[[IN:.*]] on
// CHECK:       genrec.linear %[[X]],
// CHECK:       %[[DW:.*]] = genrec.weight_gradient %[[IN]], %{{.*}} -> tensor<4x1xf32>
// CHECK-NEXT:  genrec.after %[[IN]] on %[[DW]]
// CHECK:       genrec.program @evaluate
!x = tensor<?x4xf32, #genrec.rows<@user>>
!one = tensor<?xf32, #genrec.rows<@user>>
!many = tensor<?x9xf32, #genrec.rows<@user>>
!id = tensor<?xi64, #genrec.rows<@user>>
genrec.model @others {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x9xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @few : tensor<4x7xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %label = genrec.mod %id {divisor = 9 : i64} : (!id) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @w : tensor<4x9xf32>
    %few = genrec.param @few : tensor<4x7xf32>
    %l0 = genrec.linear %x, %few : (!x, tensor<4x7xf32>) -> tensor<?x7xf32, #genrec.rows<@user>>
    %c0 = genrec.softmax_cross_entropy %l0, %label : (tensor<?x7xf32, #genrec.rows<@user>>, !id) -> !one
    genrec.loss "few" %c0 : !one
    %l1 = genrec.linear %x, %w : (!x, tensor<4x9xf32>) -> !many
    %c1 = genrec.softmax_cross_entropy %l1, %label : (!many, !id) -> !one loc("shared")
    %r1 = genrec.row_reduce sum %l1 : (!many) -> !one
    %weight = genrec.square %r1 : !one
    genrec.loss "shared" %c1 weight %weight : !one, !one
    %half = genrec.constant dense<0.5> : tensor<f32>
    %l2 = genrec.square %x : !x
    %p2 = genrec.linear %l2, %w : (!x, tensor<4x9xf32>) -> !many
    %s2 = genrec.mul %p2, %half : (!many, tensor<f32>) -> !many
    %c2 = genrec.softmax_cross_entropy %s2, %label : (!many, !id) -> !one
    genrec.loss "scaled" %c2 : !one
    %t = genrec.tanh %x : !x
    %d = genrec.detach %t : !x
    %l3 = genrec.linear %d, %w : (!x, tensor<4x9xf32>) -> !many
    %c3 = genrec.softmax_cross_entropy %l3, %label : (!many, !id) -> !one
    genrec.loss "fixed" %c3 : !one
    %n = genrec.neg %x : !x
    %l4 = genrec.linear %n, %w : (!x, tensor<4x9xf32>) -> !many
    %c4 = genrec.softmax_cross_entropy %l4, %label {label_smoothing = 0.1 : f64} : (!many, !id) -> !one loc("smoothed")
    genrec.loss "smoothed" %c4 : !one
  }
}
