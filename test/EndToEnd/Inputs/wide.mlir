// Wide rows (more than 512 floats), a feed-forward layer with its activation and residual, and rows picked
// from a catalogue by a sampled softmax whose width (20) is no whole number of cache lines.
!u = tensor<?x520xf32, #genrec.rows<@user>>
!h = tensor<?x520xf32, #genrec.rows<@history>>
!m = tensor<?x20xf32, #genrec.rows<@movies>>
!q = tensor<?x20xf32, #genrec.rows<@user>>
!n = tensor<?xf32, #genrec.rows<@user>>
genrec.model @wide {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @movies kind catalogue {source = "movies.parquet"}
  genrec.table @events dim 520 {init = #genrec.init<normal, 0.05>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @items dim 20 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @up : tensor<520x24xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.parameter @down : tensor<520x24xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.parameter @bias : tensor<24xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.parameter @head : tensor<520x20xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.05}>}
  genrec.program @main {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %movies = genrec.catalogue : !genrec.domain<@movies>
    %ids = genrec.feature %history "history.id" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %next = genrec.feature %user "next" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %movie = genrec.feature %movies "movie" : (!genrec.domain<@movies>) -> tensor<?xi64, #genrec.rows<@movies>>
    %up = genrec.param @up : tensor<520x24xf32>
    %down = genrec.param @down : tensor<520x24xf32>
    %bias = genrec.param @bias : tensor<24xf32>
    %head = genrec.param @head : tensor<520x20xf32>
    %rows = genrec.lookup %ids in @events : (tensor<?xi64, #genrec.rows<@history>>) -> !h
    %x = genrec.pool sum %rows to %user : (!h, !genrec.domain<@user>) -> !u
    %norm = genrec.layer_norm %x {eps = 1.0e-5} : (!u) -> !u
    %p = genrec.linear %norm, %up bias %bias : (!u, tensor<520x24xf32>, tensor<24xf32>) -> tensor<?x24xf32, #genrec.rows<@user>>
    %a = genrec.gelu %p : tensor<?x24xf32, #genrec.rows<@user>>
    %d = genrec.linear %a, %down {transposed} : (tensor<?x24xf32, #genrec.rows<@user>>, tensor<520x24xf32>) -> !u
    %y = genrec.add %d, %norm : (!u, !u) -> !u
    %z = genrec.linear %y, %head : (!u, tensor<520x20xf32>) -> !q
    %query = genrec.relu %z : !q
    %vectors = genrec.lookup %movie in @items : (tensor<?xi64, #genrec.rows<@movies>>) -> !m
    %unit = genrec.l2_normalize %vectors {eps = 1.0e-6} : (!m) -> !m
    %target = genrec.resolve %next in %movie {allow_missing} : (tensor<?xi64, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@movies>>) -> tensor<?xi64, #genrec.rows<@user>>
    %loss = genrec.sampled_softmax %query, %target, %unit {negatives = 9 : i64, temperature = 0.5 : f64, stream = 512 : i64} : (!q, tensor<?xi64, #genrec.rows<@user>>, !m) -> !n
    genrec.loss "next" %loss : !n
    genrec.output "query" %query : !q
  }
}
