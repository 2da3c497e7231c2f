// Two items far apart, and a rate at which the smallest gradient shows: test_confident.py.
!user = !genrec.domain<@user>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!mi = tensor<?xi64, #genrec.rows<@items>>
!m2 = tensor<?x2xf32, #genrec.rows<@items>>
genrec.model @confident {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.parameter @w : tensor<2x2xf32> {init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 1.0e16}>}
  genrec.program @certain {
    %user = genrec.batch : !user
    %items = genrec.catalogue : !items
    %id = genrec.feature %items "id" : (!items) -> !mi
    %image = genrec.feature %items "image" : (!items) -> !m2
    %w = genrec.param @w : tensor<2x2xf32>
    %vectors = genrec.linear %image, %w : (!m2, tensor<2x2xf32>) -> !m2
    %query = genrec.feature %user "query" : (!user) -> !u2
    %target = genrec.feature %user "target" : (!user) -> !ui
    %positive = genrec.resolve %target in %id : (!ui, !mi) -> !ui
    %loss = genrec.sampled_softmax %query, %positive, %vectors {negatives = 8 : i64, temperature = 1.0 : f64, stream = 256 : i64} : (!u2, !ui, !m2) -> !u
    genrec.loss "next" %loss : !u
  }
}
