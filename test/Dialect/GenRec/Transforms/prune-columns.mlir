// RUN: genrec-opt %s --genrec-specialize-modes --genrec-prune-columns | FileCheck %s
// RUN: genrec-opt %s --genrec-specialize-modes --genrec-prune-columns --genrec-pass-statistics --genrec-count-rewrites 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-graph-pipeline="prune-columns=false" | FileCheck %s --check-prefix=OFF

// No program reads "unused" or the list "tags", and prediction has no use for the label.

// CHECK: genrec.model @pruned attributes {genrec.decisions = [
// CHECK-SAME: "prune-columns: @train does not read column 'unused': no loss depends on it"
// CHECK-SAME: "prune-columns: @train does not read column 'tags.tag': no loss depends on it"
// CHECK-SAME: "prune-columns: @predict does not read column 'unused': no output depends on it"
// CHECK: genrec.program @train
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>
// CHECK-NEXT: genrec.feature %{{.*}} "x"
// CHECK-NEXT: genrec.feature %{{.*}} "label"
// CHECK-NEXT: genrec.param
// CHECK: genrec.program @predict
// CHECK-NEXT: genrec.batch : !genrec.domain<@user>
// CHECK-NEXT: genrec.feature %{{.*}} "x"
// CHECK-NOT: genrec.feature
// CHECK: genrec.output

// COUNT: prune-column: {{[1-9]}}
// COUNT: genrec-prune-columns columns: 7
// COUNT: genrec-prune-columns domains: 3
// COUNT: genrec-prune-columns ops: 11

// OFF-NOT: prune-columns:

!rows = tensor<?xf32, #genrec.rows<@user>>
genrec.model @pruned {
  genrec.domain @user
  genrec.domain @tag parent @user {column = "tags"}
  genrec.parameter @w : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %tag = genrec.batch : !genrec.domain<@user>, !genrec.domain<@tag>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !rows
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !rows
    %unused = genrec.feature %user "unused" : (!genrec.domain<@user>) -> !rows
    %tags = genrec.feature %tag "tags.tag" : (!genrec.domain<@tag>) -> tensor<?xf32, #genrec.rows<@tag>>
    %w = genrec.param @w : tensor<f32>
    %y = genrec.mul %x, %w : (!rows, tensor<f32>) -> !rows
    %z = genrec.mul %unused, %w : (!rows, tensor<f32>) -> !rows
    %loss = genrec.bce_with_logits %y, %label : (!rows, !rows) -> !rows
    genrec.loss "bce" %loss : !rows
    genrec.output "score" %y : !rows
  }
}
