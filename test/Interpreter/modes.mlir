// What a mode runs, inserts and draws.
// RUN: genrec-run %s --mode=train --batch=%S/Inputs/one.json --print=losses,outputs,metrics,tables | FileCheck %s --check-prefix=TRAIN
// RUN: genrec-run %s --mode=evaluate --batch=%S/Inputs/one.json --print=losses,outputs,metrics,tables | FileCheck %s --check-prefix=EVALUATE
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/one.json --print=losses,outputs,metrics,tables | FileCheck %s --check-prefix=PREDICT

!user = !genrec.domain<@user>
!i = tensor<?xi64, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u1000 = tensor<?x1000xf32, #genrec.rows<@user>>

// 1000 ones per row: dropout of a quarter keeps their mean near 1, and is nothing outside training.
genrec.model @modes {
  genrec.domain @user
  genrec.table @t dim 2 {init = #genrec.init<constant, 0.5>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !i
    %label = genrec.feature %user "label" : (!user) -> !u
    %t = genrec.lookup %id in @t : (!i) -> !u2
    %half = genrec.row_reduce sum %t : (!u2) -> !u
    %one = genrec.constant dense<1.0> : tensor<1000xf32>
    %ones = genrec.broadcast_rows %one to %user : (tensor<1000xf32>, !user) -> !u1000
    %dropped = genrec.dropout %ones {rate = 0.25, stream = 256} : (!u1000) -> !u1000
    %mean = genrec.row_reduce mean %dropped : (!u1000) -> !u
    %largest = genrec.row_reduce max %dropped : (!u1000) -> !u
    genrec.loss "1 half" %half : !u
    genrec.loss "2 mean" %mean : !u
    genrec.loss "3 largest" %largest : !u
    genrec.metric auc "auc" %half label %label : !u, !u
    genrec.output "half" %half : !u
  }
}
// TRAIN: 1 half:
// TRAIN-NEXT: mean: 1
// Kept ones are 4/3; about 2250 of 3000 are kept.
// TRAIN: 2 mean:
// TRAIN-NEXT: mean: {{0\.9[5-9]|1\.0[0-4]}}
// TRAIN: 3 largest:
// TRAIN-NEXT: mean: 1.33333333
// TRAIN-NOT: metrics
// TRAIN-NOT: outputs
// TRAIN: {{^}}  t:
// TRAIN-NEXT: 3: [0.5, 0.5]
// TRAIN-NEXT: 5: [0.5, 0.5]

// EVALUATE: 2 mean:
// EVALUATE-NEXT: mean: 1
// EVALUATE-NEXT: sum: 3
// EVALUATE: auc: 0.5
// EVALUATE-NOT: outputs
// EVALUATE-NOT: 0.5, 0.5

// PREDICT-NOT: losses
// PREDICT-NOT: metrics
// PREDICT: half: [1, 1, 1]
// PREDICT-NOT: 0.5, 0.5
