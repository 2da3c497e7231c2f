// RUN: genrec-compile %s --explain --batch=1000 | FileCheck %s
// RUN: genrec-compile %s --explain --batch=1000 --split-classes=1024 | FileCheck %s --check-prefix=WIDE
// RUN: genrec-compile %s --explain --batch=1000 --split-classes=0 | FileCheck %s --check-prefix=WHOLE

// Logits of 4,096 classes for 1,000 rows are 16.4 MB, their gradient as much again. A block of 512 and its gradient
// are 4.1 MB, and blocks take turns; blocks of 1,024 are twice that.

// CHECK:      split-classes: @train: 4096 classes of softmax_cross_entropy are computed 512 at a time, in 8 blocks
// CHECK:      program train
// CHECK:        arena, compute stage {{ *}}4.{{[0-9]}} MB
// CHECK:      program evaluate
// CHECK:        arena, compute stage {{ *}}2.{{[0-9]}} MB

// WIDE:       program train
// WIDE:         arena, compute stage {{ *}}8.{{[0-9]}} MB

// WHOLE-NOT:  split-classes
// WHOLE:      program train
// WHOLE:        arena, compute stage {{ *}}33.{{[0-9]}} MB

!x = tensor<?x4xf32, #genrec.rows<@user>>
!id = tensor<?xi64, #genrec.rows<@user>>
!many = tensor<?x4096xf32, #genrec.rows<@user>>
genrec.model @layer {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @w : tensor<4x4096xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.parameter @b : tensor<4096xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !id
    %label = genrec.mod %id {divisor = 4096 : i64} : (!id) -> !id
    %x = genrec.lookup %id in @item : (!id) -> !x
    %w = genrec.param @w : tensor<4x4096xf32>
    %b = genrec.param @b : tensor<4096xf32>
    %logits = genrec.linear %x, %w bias %b : (!x, tensor<4x4096xf32>, tensor<4096xf32>) -> !many
    %loss = genrec.softmax_cross_entropy %logits, %label : (!many, !id) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "class" %loss : tensor<?xf32, #genrec.rows<@user>>
  }
}
