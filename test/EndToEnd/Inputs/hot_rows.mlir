// Tables of bf16 with hot rows, whose cold ones are rounded to nearest and stochastically: read one by one and pooled, of odd
// and even dimensions, merged ones, by optimizers with and without states, one with rules by which rows leave, one whose rows
// are all hot, and one of f32 beside them.
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x6xf32, #genrec.rows<@user>>
!w = tensor<?x7xf32, #genrec.rows<@user>>
!lids = tensor<?xi64, #genrec.rows<@list>>
!lx = tensor<?x6xf32, #genrec.rows<@list>>
genrec.model @hot_rows {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @nearest dim 6 {element = #genrec<row_element bf16>, hot_after = 3 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1, initial_accumulator = 0.1}>}
  genrec.table @chance dim 6 {element = #genrec<row_element bf16>, hot_after = 4 : i64, rounding = #genrec<row_rounding stochastic>,
    init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.table @chance_too dim 6 {element = #genrec<row_element bf16>, hot_after = 4 : i64, rounding = #genrec<row_rounding stochastic>,
    init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.table @odd dim 7 {element = #genrec<row_element bf16>, hot_after = 2 : i64, rounding = #genrec<row_rounding stochastic>,
    init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.02, eps = 1.0e-3}>}
  genrec.table @ruled dim 7 {element = #genrec<row_element bf16>, hot_after = 3 : i64, rounding = #genrec<row_rounding stochastic>,
    admit_after = 2 : i64, bounded = 14 : i64, init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @all dim 6 {element = #genrec<row_element bf16>, hot_after = 1 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.table @wide dim 6 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %k = genrec.feature %list "list.k" : (!genrec.domain<@list>) -> !lids
    %n = genrec.feature %user "n" {nullable} : (!genrec.domain<@user>) -> !ids
    %v = genrec.feature_valid %user "n" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !f
    %few = genrec.mod %i {divisor = 17 : i64} : (!ids) -> !ids
    %listed = genrec.mod %k {divisor = 11 : i64} : (!lids) -> !lids
    %a = genrec.lookup %few in @nearest : (!ids) -> !x
    %b = genrec.lookup %i in @chance : (!ids) -> !x
    %c = genrec.lookup %few in @chance_too : (!ids) -> !x
    %d = genrec.lookup %n valid %v in @odd : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !w
    %e = genrec.lookup %i in @ruled : (!ids) -> !w
    %g = genrec.lookup %few in @wide : (!ids) -> !x
    %h = genrec.lookup %few in @all : (!ids) -> !x
    %la = genrec.lookup %listed in @nearest : (!lids) -> !lx
    %lb = genrec.lookup %listed in @chance : (!lids) -> !lx
    %p = genrec.mul %la, %lb : (!lx, !lx) -> !lx
    %pooled = genrec.pool sum %p to %user : (!lx, !genrec.domain<@user>) -> !x
    %s1 = genrec.add %a, %b : (!x, !x) -> !x
    %s2 = genrec.add %c, %g : (!x, !x) -> !x
    %s3 = genrec.mul %s1, %s2 : (!x, !x) -> !x
    %s4 = genrec.add %s3, %pooled : (!x, !x) -> !x
    %s5 = genrec.add %s4, %c : (!x, !x) -> !x
    %s6 = genrec.mul %s5, %h : (!x, !x) -> !x
    %t1 = genrec.mul %d, %e : (!w, !w) -> !w
    %t2 = genrec.add %t1, %e : (!w, !w) -> !w
    %one = genrec.row_reduce sum %s6 : (!x) -> !f
    %two = genrec.row_reduce sum %t2 : (!w) -> !f
    %logit = genrec.add %one, %two : (!f, !f) -> !f
    %bce = genrec.bce_with_logits %logit, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
    genrec.metric auc "auc" %logit label %label : !f, !f
    genrec.output "score" %logit : !f
  }
}
