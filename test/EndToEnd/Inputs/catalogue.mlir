// Items as the model defines them: table rows, made longer by a feature of the catalogue, dropped out, normalised.
!user = !genrec.domain<@user>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!u8 = tensor<?x8xf32, #genrec.rows<@user>>
!m = tensor<?xf32, #genrec.rows<@items>>
!mi = tensor<?xi64, #genrec.rows<@items>>
!m8 = tensor<?x8xf32, #genrec.rows<@items>>
genrec.model @catalogue {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.table @person dim 8 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @main {
    %user = genrec.batch : !user
    %items = genrec.catalogue : !items
    %id = genrec.feature %items "id" : (!items) -> !mi
    %weight = genrec.feature %items "weight" : (!items) -> !m
    %rows = genrec.lookup %id in @item : (!mi) -> !m8
    %longer = genrec.mul %rows, %weight : (!m8, !m) -> !m8
    %dropped = genrec.dropout %longer {rate = 0.5, stream = 256 : i64} : (!m8) -> !m8
    %vectors = genrec.l2_normalize %dropped {eps = 1.0e-6 : f64} : (!m8) -> !m8
    %person = genrec.feature %user "person" : (!user) -> !ui
    %target = genrec.feature %user "target" : (!user) -> !ui
    %query = genrec.lookup %person in @person : (!ui) -> !u8
    %positive = genrec.resolve %target in %id {allow_missing} : (!ui, !mi) -> !ui
    %loss = genrec.sampled_softmax %query, %positive, %vectors {negatives = 4 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!u8, !ui, !m8) -> !u
    genrec.loss "next" %loss : !u
    // The same vectors, written again: one output of the items, not two.
    %again = genrec.l2_normalize %dropped {eps = 1.0e-6 : f64} : (!m8) -> !m8
    %index, %score = genrec.top_k %query, %again : (!u8, !m8) -> (tensor<?x3xi64, #genrec.rows<@user>>, tensor<?x3xf32, #genrec.rows<@user>>)
    genrec.output "score" %score : tensor<?x3xf32, #genrec.rows<@user>>
  }
}
