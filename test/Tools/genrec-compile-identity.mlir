// What a checkpoint knows a model by: its losses, not what passes made of them.

// RUN: genrec-compile %s --emit=cpp -o - | grep -o 'identity = .*' > %t.whole
// RUN: FileCheck %s < %t.whole
// RUN: genrec-compile %s -O0 --merge-tables=false --prune-columns=false --sink-fanout=false --emit=cpp -o - | grep -o 'identity = .*' > %t.plain
// RUN: cmp %t.whole %t.plain

// CHECK: \"columns\":{\"history.movie\":\"i64\",\"label\":\"f32\",\"user\":\"i64\"}
// CHECK-SAME: \"pool\":[1,
// CHECK-SAME: \"optimizers\":{\"bias\":\"sgd\",\"movie\":\"adam\",\"person\":\"adam\",\"square\":\"sgd\"}
// CHECK-SAME: \"parameters\":{\"bias\":\"4xf32, zeros 0\",\"square\":\"4x4xf32, normal 0.5\"}
// CHECK-SAME: \"structure\":
// CHECK-SAME: \"tables\":{\"movie\":\"dim 4, 52 bits, normal 0.5\",\"person\":\"dim 4, 30 bits, normal 0.5\"}

// Neither names, nor lines, nor what comes and goes beside the losses, nor the rate.
// RUN: sed -e 's/@Pooled/@Renamed/' -e 's/^  genrec.domain @user/\n\n&/' -e '/\/\/ OUTPUT$/s/.*/genrec.output "copy" %id : !ids/' -e 's/lr = 0.01/lr = 0.5/' %s > %t.same.mlir
// RUN: genrec-compile %t.same.mlir --emit=cpp -o - | grep -o 'identity = .*' | cmp - %t.whole

// Nor which products have factors of bf16, whoever said so (gr.autocast, --mixed-precision).
// RUN: genrec-compile %s --mixed-precision --emit=cpp -o - | grep -o 'identity = .*' | cmp - %t.whole
// RUN: sed 's/genrec.linear %y, %w :/genrec.linear %y, %w {bf16} :/' %s > %t.bf16.mlir
// RUN: not cmp -s %t.bf16.mlir %s
// RUN: genrec-compile %t.bf16.mlir --emit=cpp -o - | grep -o 'identity = .*' | cmp - %t.whole

// A sum for a mean is another model, and so is another operand.
// RUN: sed 's/pool mean/pool sum/' %s > %t.sum.mlir
// RUN: genrec-compile %t.sum.mlir --emit=cpp -o - | grep -o 'identity = .*' | not cmp - %t.whole
// RUN: sed 's/genrec.mul %mean, %own/genrec.mul %own, %own/' %s > %t.wired.mlir
// RUN: genrec-compile %t.wired.mlir --emit=cpp -o - | grep -o 'structure[^,]*' > %t.wired
// RUN: grep -o 'structure[^,]*' %t.whole | not cmp - %t.wired

// Another optimizer leaves the structure alone.
// RUN: sed 's/optimizer<adam,/optimizer<adagrad,/' %s > %t.adagrad.mlir
// RUN: genrec-compile %t.adagrad.mlir --emit=cpp -o - | grep -o 'identity = .*' > %t.adagrad
// RUN: not cmp %t.adagrad %t.whole
// RUN: grep -o 'structure[^,]*' %t.whole > %t.structure
// RUN: grep -o 'structure[^,]*' %t.adagrad | cmp - %t.structure

!users = tensor<?x4xf32, #genrec.rows<@user>>
!user = tensor<?xf32, #genrec.rows<@user>>
!ids = tensor<?xi64, #genrec.rows<@user>>
!events = tensor<?x4xf32, #genrec.rows<@history>>

genrec.model @Pooled {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.table @movie dim 4 {init = #genrec.init<normal, 5.0e-01 : f64>, optimizer = #genrec.optimizer<adam, {lr = 0.01 : f64}>}
  genrec.table @person dim 4 {id_bits = 30 : i64, init = #genrec.init<normal, 5.0e-01 : f64>, optimizer = #genrec.optimizer<adam, {lr = 0.01 : f64}>}
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.01 : f64}>}
  genrec.parameter @square : tensor<4x4xf32> {init = #genrec.init<normal, 5.0e-01 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.01 : f64}>}
  genrec.program @main {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %id = genrec.feature %user "user" : (!genrec.domain<@user>) -> !ids
    // OUTPUT
    %movie = genrec.feature %history "history.movie" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !user
    %e = genrec.lookup %movie in @movie : (tensor<?xi64, #genrec.rows<@history>>) -> !events
    %mean = genrec.pool mean %e to %user : (!events, !genrec.domain<@user>) -> !users
    %own = genrec.lookup %id in @person : (!ids) -> !users
    %x = genrec.mul %mean, %own : (!users, !users) -> !users
    %b = genrec.param @bias : tensor<4xf32>
    %y = genrec.add %x, %b : (!users, tensor<4xf32>) -> !users
    %w = genrec.param @square : tensor<4x4xf32>
    %z = genrec.linear %y, %w : (!users, tensor<4x4xf32>) -> !users
    %logit = genrec.row_reduce sum %z : (!users) -> !user
    %loss = genrec.bce_with_logits %logit, %label : (!user, !user) -> !user
    genrec.loss "click" %loss : !user
  }
}
