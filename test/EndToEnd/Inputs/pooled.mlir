// A small model: the pooled embeddings of a history against a label per user.
genrec.model @pooled {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.table @movies dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.parameter @weight : tensor<8x4xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adamw, {lr = 0.01}>}
  genrec.parameter @bias : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.01}>}
  genrec.parameter @head : tensor<4x1xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.program @main {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %ids = genrec.feature %history "history.movie" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> tensor<?xf32, #genrec.rows<@user>>
    %rows = genrec.lookup %ids in @movies : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
    %pooled = genrec.pool mean %rows to %user : (tensor<?x8xf32, #genrec.rows<@history>>, !genrec.domain<@user>) -> tensor<?x8xf32, #genrec.rows<@user>>
    %norm = genrec.layer_norm %pooled {eps = 1.0e-5} : (tensor<?x8xf32, #genrec.rows<@user>>) -> tensor<?x8xf32, #genrec.rows<@user>>
    %w = genrec.param @weight : tensor<8x4xf32>
    %b = genrec.param @bias : tensor<4xf32>
    %h = genrec.param @head : tensor<4x1xf32>
    %x = genrec.linear %norm, %w bias %b : (tensor<?x8xf32, #genrec.rows<@user>>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %y = genrec.silu %x : tensor<?x4xf32, #genrec.rows<@user>>
    %z = genrec.dropout %y {rate = 0.2, stream = 256 : i64} : (tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %out = genrec.linear %z, %h : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<4x1xf32>) -> tensor<?x1xf32, #genrec.rows<@user>>
    %logit = genrec.row_reduce sum %out : (tensor<?x1xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    %bce = genrec.bce_with_logits %logit, %label : (tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "bce" %bce : tensor<?xf32, #genrec.rows<@user>>
    genrec.metric auc "auc" %logit label %label : tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>
    genrec.output "score" %logit : tensor<?xf32, #genrec.rows<@user>>
  }
}
