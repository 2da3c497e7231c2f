// Tables with rules about their rows that agree in pairs, each looked up from two domains: 'few' and 'fewer' are bounded,
// admit and let pass by time, 'seen' and 'often' are bounded by how often ids are seen, 'now' and 'then' let pass by time.
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x6xf32, #genrec.rows<@user>>
!lids = tensor<?xi64, #genrec.rows<@list>>
!lx = tensor<?x6xf32, #genrec.rows<@list>>
genrec.model @merged_rules {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @few dim 6 {bounded = 5 : i64, ttl = 3 : i64, admit_after = 2 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @seen dim 6 {bounded = 18 : i64, evict = #genrec<evict_kind lfu>, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @fewer dim 6 {bounded = 5 : i64, ttl = 3 : i64, admit_after = 2 : i64, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @often dim 6 {bounded = 18 : i64, evict = #genrec<evict_kind lfu>, init = #genrec.init<normal, 0.2>,
    optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @now dim 6 {ttl = 2 : i64, init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @then dim 6 {ttl = 2 : i64, init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %k = genrec.feature %list "list.k" : (!genrec.domain<@list>) -> !lids
    %n = genrec.feature %user "n" {nullable} : (!genrec.domain<@user>) -> !ids
    %v = genrec.feature_valid %user "n" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !f
    %small = genrec.mod %i {divisor = 7 : i64} : (!ids) -> !ids
    %large = genrec.mod %i {divisor = 60 : i64} : (!ids) -> !ids
    %some = genrec.mod %n {divisor = 9 : i64} : (!ids) -> !ids
    %listed = genrec.mod %k {divisor = 23 : i64} : (!lids) -> !lids
    %a = genrec.lookup %small in @few : (!ids) -> !x
    %b = genrec.lookup %some valid %v in @fewer : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !x
    %c = genrec.lookup %large in @seen : (!ids) -> !x
    %d = genrec.lookup %large in @often : (!ids) -> !x
    %e = genrec.lookup %small in @now : (!ids) -> !x
    %g = genrec.lookup %large in @then : (!ids) -> !x
    %la = genrec.lookup %listed in @few : (!lids) -> !lx
    %lc = genrec.lookup %listed in @often : (!lids) -> !lx
    %le = genrec.lookup %listed in @then : (!lids) -> !lx
    %p1 = genrec.mul %la, %lc : (!lx, !lx) -> !lx
    %p2 = genrec.add %p1, %le : (!lx, !lx) -> !lx
    %pooled = genrec.pool sum %p2 to %user : (!lx, !genrec.domain<@user>) -> !x
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
