// Request features beside impressions: matrix products that are split, blocks and lookups that sink.
!r = tensor<?x8xf32, #genrec.rows<@request>>
!x = tensor<?x8xf32, #genrec.rows<@impression>>
!f = tensor<?xf32, #genrec.rows<@impression>>
genrec.model @fanned {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.table @user dim 8 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.2>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.parameter @w : tensor<17x5xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.parameter @b : tensor<5xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.program @main {
    %request, %impression = genrec.batch : !genrec.domain<@request>, !genrec.domain<@impression>
    %u = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %age = genrec.feature %request "age" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %i = genrec.feature %impression "impressions.item" : (!genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@impression>>
    %label = genrec.feature %impression "impressions.click" : (!genrec.domain<@impression>) -> !f
    %fu = genrec.fanout %u to %impression : (tensor<?xi64, #genrec.rows<@request>>, !genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@impression>>
    %fa = genrec.fanout %age to %impression : (tensor<?xf32, #genrec.rows<@request>>, !genrec.domain<@impression>) -> !f
    %xu = genrec.lookup %fu in @user : (tensor<?xi64, #genrec.rows<@impression>>) -> !x
    %nu = genrec.layer_norm %xu {eps = 1.0e-5} : (!x) -> !x
    %xi = genrec.lookup %i in @item : (tensor<?xi64, #genrec.rows<@impression>>) -> !x
    %c = genrec.concat_columns %nu, %fa, %xi : (!x, !f, !x) -> tensor<?x17xf32, #genrec.rows<@impression>>
    %w = genrec.param @w : tensor<17x5xf32>
    %b = genrec.param @b : tensor<5xf32>
    %y = genrec.linear %c, %w bias %b : (tensor<?x17xf32, #genrec.rows<@impression>>, tensor<17x5xf32>, tensor<5xf32>) -> tensor<?x5xf32, #genrec.rows<@impression>>
    %z = genrec.silu %y : tensor<?x5xf32, #genrec.rows<@impression>>
    %d = genrec.dropout %z {rate = 0.2, stream = 256 : i64} : (tensor<?x5xf32, #genrec.rows<@impression>>) -> tensor<?x5xf32, #genrec.rows<@impression>>
    %logit = genrec.row_reduce sum %d : (tensor<?x5xf32, #genrec.rows<@impression>>) -> !f
    %bce = genrec.bce_with_logits %logit, %label : (!f, !f) -> !f
    genrec.loss "bce" %bce : !f
    genrec.metric auc "auc" %logit label %label : !f, !f
    genrec.output "score" %logit : !f
  }
}
