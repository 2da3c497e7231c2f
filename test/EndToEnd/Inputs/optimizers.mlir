// A table for each optimizer, with momentum, weight decay and a step count per row: test_cuda_kernels.py runs the
// kernels that update their rows on both targets.
!user = !genrec.domain<@user>
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>

genrec.model @optimizers {
  genrec.domain @user
  genrec.table @sgd dim 6 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.05, weight_decay = 0.01}>}
  genrec.table @momentum dim 50 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.05, momentum = 0.9, weight_decay = 0.01}>}
  genrec.table @adagrad dim 33 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1, initial_accumulator = 0.1, weight_decay = 0.01}>}
  genrec.table @rowwise dim 50 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1, weight_decay = 0.01}>}
  genrec.table @rowwise_wide dim 130 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1}>}
  genrec.table @adam dim 50 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.05, eps = 1.0e-6, weight_decay = 0.01}>}
  genrec.table @adamw dim 31 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adamw, {lr = 0.05, eps = 1.0e-6, weight_decay = 0.1}>}
  genrec.table @adam_rows dim 32 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.05, eps = 1.0e-6, per_row_step = 1.0}>}
  genrec.table @adamw_rows dim 50 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adamw, {lr = 0.05, eps = 1.0e-6, weight_decay = 0.1, per_row_step = 1.0}>}
  genrec.table @rmsprop dim 50 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<rmsprop, {lr = 0.05, eps = 1.0e-6, weight_decay = 0.01}>}
  genrec.table @rmsprop_momentum dim 31 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<rmsprop, {lr = 0.05, eps = 1.0e-6, momentum = 0.9}>}
  genrec.program @main {
    %user = genrec.batch : !user
    %id = genrec.feature %user "id" : (!user) -> !ids
    %label = genrec.feature %user "label" : (!user) -> !f
    %x0 = genrec.lookup %id in @sgd : (!ids) -> tensor<?x6xf32, #genrec.rows<@user>>
    %s0 = genrec.row_reduce sum %x0 : (tensor<?x6xf32, #genrec.rows<@user>>) -> !f
    %x1 = genrec.lookup %id in @momentum : (!ids) -> tensor<?x50xf32, #genrec.rows<@user>>
    %s1 = genrec.row_reduce sum %x1 : (tensor<?x50xf32, #genrec.rows<@user>>) -> !f
    %t1 = genrec.add %s0, %s1 : (!f, !f) -> !f
    %x2 = genrec.lookup %id in @adagrad : (!ids) -> tensor<?x33xf32, #genrec.rows<@user>>
    %s2 = genrec.row_reduce sum %x2 : (tensor<?x33xf32, #genrec.rows<@user>>) -> !f
    %t2 = genrec.add %t1, %s2 : (!f, !f) -> !f
    %x3 = genrec.lookup %id in @rowwise : (!ids) -> tensor<?x50xf32, #genrec.rows<@user>>
    %s3 = genrec.row_reduce sum %x3 : (tensor<?x50xf32, #genrec.rows<@user>>) -> !f
    %t3 = genrec.add %t2, %s3 : (!f, !f) -> !f
    %x4 = genrec.lookup %id in @rowwise_wide : (!ids) -> tensor<?x130xf32, #genrec.rows<@user>>
    %s4 = genrec.row_reduce sum %x4 : (tensor<?x130xf32, #genrec.rows<@user>>) -> !f
    %t4 = genrec.add %t3, %s4 : (!f, !f) -> !f
    %x5 = genrec.lookup %id in @adam : (!ids) -> tensor<?x50xf32, #genrec.rows<@user>>
    %s5 = genrec.row_reduce sum %x5 : (tensor<?x50xf32, #genrec.rows<@user>>) -> !f
    %t5 = genrec.add %t4, %s5 : (!f, !f) -> !f
    %x6 = genrec.lookup %id in @adamw : (!ids) -> tensor<?x31xf32, #genrec.rows<@user>>
    %s6 = genrec.row_reduce sum %x6 : (tensor<?x31xf32, #genrec.rows<@user>>) -> !f
    %t6 = genrec.add %t5, %s6 : (!f, !f) -> !f
    %x7 = genrec.lookup %id in @adam_rows : (!ids) -> tensor<?x32xf32, #genrec.rows<@user>>
    %s7 = genrec.row_reduce sum %x7 : (tensor<?x32xf32, #genrec.rows<@user>>) -> !f
    %t7 = genrec.add %t6, %s7 : (!f, !f) -> !f
    %x8 = genrec.lookup %id in @adamw_rows : (!ids) -> tensor<?x50xf32, #genrec.rows<@user>>
    %s8 = genrec.row_reduce sum %x8 : (tensor<?x50xf32, #genrec.rows<@user>>) -> !f
    %t8 = genrec.add %t7, %s8 : (!f, !f) -> !f
    %x9 = genrec.lookup %id in @rmsprop : (!ids) -> tensor<?x50xf32, #genrec.rows<@user>>
    %s9 = genrec.row_reduce sum %x9 : (tensor<?x50xf32, #genrec.rows<@user>>) -> !f
    %t9 = genrec.add %t8, %s9 : (!f, !f) -> !f
    %x10 = genrec.lookup %id in @rmsprop_momentum : (!ids) -> tensor<?x31xf32, #genrec.rows<@user>>
    %s10 = genrec.row_reduce sum %x10 : (tensor<?x31xf32, #genrec.rows<@user>>) -> !f
    %t10 = genrec.add %t9, %s10 : (!f, !f) -> !f
    %bce = genrec.bce_with_logits %t10, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
  }
}
