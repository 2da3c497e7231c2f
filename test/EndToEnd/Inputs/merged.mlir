// Many columns into tables of two specs: merged tables, fused transforms, nulls, strings, lists, and
// a table that is looked up twice.
!ids = tensor<?xi64, #genrec.rows<@user>>
!f = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>
!w = tensor<?x6xf32, #genrec.rows<@user>>
!lids = tensor<?xi64, #genrec.rows<@list>>
!lx = tensor<?x4xf32, #genrec.rows<@list>>
genrec.model @merged {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @b dim 4 {id_bits = 30 : i64, init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @c dim 4 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @d dim 6 {init = #genrec.init<uniform, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.table @e dim 6 {init = #genrec.init<uniform, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.table @apart dim 4 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.2}>}
  genrec.parameter @head : tensor<28x1xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !ids
    %text = genrec.feature %user "text" : (!genrec.domain<@user>) -> tensor<?x!genrec.string, #genrec.rows<@user>>
    %s = genrec.feature %user "s" : (!genrec.domain<@user>) -> !f
    %n = genrec.feature %user "n" {nullable} : (!genrec.domain<@user>) -> !ids
    %v = genrec.feature_valid %user "n" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %k = genrec.feature %list "list.k" : (!genrec.domain<@list>) -> !lids
    %unused = genrec.feature %user "unused" : (!genrec.domain<@user>) -> !f
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !f
    %hi = genrec.hash murmur3 %i {bits = 63 : i64, seed = 3 : i64} : (!ids) -> !ids
    %mi = genrec.mod %hi {divisor = 5 : i64} : (!ids) -> !ids
    %hj = genrec.hash murmur3 %j {bits = 63 : i64, seed = 3 : i64} : (!ids) -> !ids
    %mj = genrec.mod %hj {divisor = 3 : i64} : (!ids) -> !ids
    %ht = genrec.hash xxh3 %text {bits = 52 : i64, seed = 1 : i64} : (tensor<?x!genrec.string, #genrec.rows<@user>>) -> !ids
    %dead = genrec.neg %unused : !f
    %bucket = genrec.bucketize %s {edges = array<f64: -0.5, 0.0, 0.5>} : (!f) -> !ids
    %mk = genrec.mod %k {divisor = 4 : i64} : (!lids) -> !lids
    %xa = genrec.lookup %mi in @a : (!ids) -> !x
    %xb = genrec.lookup %mj in @b : (!ids) -> !x
    %xc = genrec.lookup %ht in @c : (!ids) -> !x
    %xn = genrec.lookup %n valid %v in @c : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !x
    %xd = genrec.lookup %bucket in @d : (!ids) -> !w
    %xe = genrec.lookup %mi in @e : (!ids) -> !w
    %ya = genrec.lookup %mk in @a : (!lids) -> !lx
    %yp = genrec.lookup %mk in @apart : (!lids) -> !lx
    %ys = genrec.mul %ya, %yp : (!lx, !lx) -> !lx
    %pool = genrec.pool sum %ys to %user : (!lx, !genrec.domain<@user>) -> !x
    %all = genrec.concat_columns %xa, %xb, %xc, %xn, %xd, %xe : (!x, !x, !x, !x, !w, !w) -> tensor<?x28xf32, #genrec.rows<@user>>
    %h = genrec.param @head : tensor<28x1xf32>
    %out = genrec.linear %all, %h : (tensor<?x28xf32, #genrec.rows<@user>>, tensor<28x1xf32>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %base = genrec.row_reduce sum %out : (tensor<?x1xf32, #genrec.rows<@user>>) -> !f
    %more = genrec.row_reduce sum %pool : (!x) -> !f
    %logit = genrec.add %base, %more : (!f, !f) -> !f
    %bce = genrec.bce_with_logits %logit, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
    genrec.metric auc "auc" %logit label %label : !f, !f
    genrec.output "score" %logit : !f
  }
}
