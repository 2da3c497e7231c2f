// Tables whose rows come and leave by rule, each looked up from two domains, and row-wise Adagrad.
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x6xf32, #genrec.rows<@user>>
!lids = tensor<?xi64, #genrec.rows<@list>>
!lx = tensor<?x6xf32, #genrec.rows<@list>>
genrec.model @ruled {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @free dim 6 {init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1, initial_accumulator = 0.1, weight_decay = 0.01}>}
  genrec.table @recent dim 6 {bounded = 3 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1}>}
  genrec.table @frequent dim 6 {bounded = 18 : i64, evict = #genrec<evict_kind lfu>, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adam, {lr = 0.05, eps = 1.0e-3, per_row_step = 1.0}>}
  genrec.table @passing dim 6 {ttl = 1 : i64, init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @admitted dim 6 {admit_after = 2 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<sgd, {lr = 0.1, momentum = 0.5}>}
  genrec.table @strict dim 6 {admit_after = 2 : i64, ttl = 2 : i64, bounded = 4 : i64, evict = #genrec<evict_kind lfu>,
    init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %k = genrec.feature %list "list.k" : (!genrec.domain<@list>) -> !lids
    %n = genrec.feature %user "n" {nullable} : (!genrec.domain<@user>) -> !ids
    %v = genrec.feature_valid %user "n" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !f
    %few = genrec.mod %i {divisor = 7 : i64} : (!ids) -> !ids
    %many = genrec.mod %i {divisor = 60 : i64} : (!ids) -> !ids
    %some = genrec.mod %n {divisor = 9 : i64} : (!ids) -> !ids
    %listed = genrec.mod %k {divisor = 11 : i64} : (!lids) -> !lids
    %a = genrec.lookup %few in @free : (!ids) -> !x
    %b = genrec.lookup %few in @recent : (!ids) -> !x
    %c = genrec.lookup %many in @frequent : (!ids) -> !x
    %d = genrec.lookup %few in @passing : (!ids) -> !x
    %e = genrec.lookup %few in @admitted : (!ids) -> !x
    %g = genrec.lookup %some valid %v in @strict : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !x
    %la = genrec.lookup %listed in @free : (!lids) -> !lx
    %lb = genrec.lookup %listed in @recent : (!lids) -> !lx
    %lc = genrec.lookup %listed in @frequent : (!lids) -> !lx
    %ld = genrec.lookup %listed in @passing : (!lids) -> !lx
    %le = genrec.lookup %listed in @admitted : (!lids) -> !lx
    %lg = genrec.lookup %listed in @strict : (!lids) -> !lx
    %p1 = genrec.add %la, %lb : (!lx, !lx) -> !lx
    %p2 = genrec.add %lc, %ld : (!lx, !lx) -> !lx
    %p3 = genrec.add %le, %lg : (!lx, !lx) -> !lx
    %p4 = genrec.add %p1, %p2 : (!lx, !lx) -> !lx
    %p5 = genrec.mul %p3, %p4 : (!lx, !lx) -> !lx
    %pooled = genrec.pool sum %p5 to %user : (!lx, !genrec.domain<@user>) -> !x
    %s1 = genrec.add %a, %b : (!x, !x) -> !x
    %s2 = genrec.add %c, %d : (!x, !x) -> !x
    %s3 = genrec.add %e, %g : (!x, !x) -> !x
    %s4 = genrec.mul %s1, %s2 : (!x, !x) -> !x
    %s5 = genrec.add %s4, %s3 : (!x, !x) -> !x
    %s6 = genrec.add %s5, %pooled : (!x, !x) -> !x
    %logit = genrec.row_reduce sum %s6 : (!x) -> !f
    %bce = genrec.bce_with_logits %logit, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
    genrec.metric auc "auc" %logit label %label : !f, !f
    genrec.output "score" %logit : !f
  }
}
