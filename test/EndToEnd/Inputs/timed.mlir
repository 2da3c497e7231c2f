// Tables whose rows leave some seconds after they were seen last; @fresh and @young share a store.
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!lids = tensor<?xi64, #genrec.rows<@list>>
!lx = tensor<?x4xf32, #genrec.rows<@list>>
genrec.model @timed {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @fresh dim 4 {ttl = 3 : i64, ttl_in_seconds, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @young dim 4 {ttl = 3 : i64, ttl_in_seconds, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @lasting dim 4 {ttl = 48 : i64, ttl_in_seconds, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adam, {lr = 0.05, eps = 1.0e-3}>}
  genrec.table @waited dim 4 {ttl = 4 : i64, ttl_in_seconds, admit_after = 2 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.table @few dim 4 {ttl = 6 : i64, ttl_in_seconds, bounded = 5 : i64, evict = #genrec<evict_kind lfu>,
    init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %k = genrec.feature %list "list.k" : (!genrec.domain<@list>) -> !lids
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !f
    %some = genrec.mod %i {divisor = 9 : i64} : (!ids) -> !ids
    %listed = genrec.mod %k {divisor = 13 : i64} : (!lids) -> !lids
    %a = genrec.lookup %i in @fresh : (!ids) -> !x
    %b = genrec.lookup %i in @young : (!ids) -> !x
    %c = genrec.lookup %i in @lasting : (!ids) -> !x
    %d = genrec.lookup %some in @waited : (!ids) -> !x
    %e = genrec.lookup %some in @few : (!ids) -> !x
    %la = genrec.lookup %listed in @fresh : (!lids) -> !lx
    %le = genrec.lookup %listed in @few : (!lids) -> !lx
    %lm = genrec.mul %la, %le : (!lx, !lx) -> !lx
    %pooled = genrec.pool sum %lm to %user : (!lx, !genrec.domain<@user>) -> !x
    %s1 = genrec.add %a, %b : (!x, !x) -> !x
    %s2 = genrec.mul %c, %s1 : (!x, !x) -> !x
    %s3 = genrec.add %d, %e : (!x, !x) -> !x
    %s4 = genrec.add %s2, %s3 : (!x, !x) -> !x
    %s5 = genrec.add %s4, %pooled : (!x, !x) -> !x
    %logit = genrec.row_reduce sum %s5 : (!x) -> !f
    %bce = genrec.bce_with_logits %logit, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
    genrec.output "score" %logit : !f
  }
}
