// Softmax over 2,500 classes, made by a layer, and over a catalogue that may have 2,100 items and has few: blocks past its end.
!x = tensor<?x4xf32, #genrec.rows<@history>>
!id = tensor<?xi64, #genrec.rows<@history>>
!one = tensor<?xf32, #genrec.rows<@history>>
!layer = tensor<?x2500xf32, #genrec.rows<@history>>
!scores = tensor<?x2100xf32, #genrec.rows<@history>>
!item = tensor<?x4xf32, #genrec.rows<@items>>
!item_id = tensor<?xi64, #genrec.rows<@items>>
genrec.model @classes {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @items kind catalogue
  genrec.table @movie dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @word dim 4 {init = #genrec.init<normal, 0.4>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @w : tensor<4x2500xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.parameter @b : tensor<2500xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @main {
    %user, %history = genrec.batch : !genrec.domain<@user>, !genrec.domain<@history>
    %items = genrec.catalogue : !genrec.domain<@items>
    %item_ids = genrec.feature %items "id" : (!genrec.domain<@items>) -> !item_id
    %vectors = genrec.lookup %item_ids in @movie : (!item_id) -> !item
    %id = genrec.feature %history "history.word" : (!genrec.domain<@history>) -> !id
    %next = genrec.feature %history "history.item" : (!genrec.domain<@history>) -> !id
    %x = genrec.lookup %id in @word : (!id) -> !x
    %positive = genrec.resolve %next in %item_ids : (!id, !item_id) -> !id
    %scores = genrec.scores %x, %vectors : (!x, !item) -> !scores
    %c = genrec.softmax_cross_entropy %scores, %positive : (!scores, !id) -> !one
    genrec.loss "next" %c : !one
    %label = genrec.mod %id {divisor = 2500 : i64} : (!id) -> !id
    %w = genrec.param @w : tensor<4x2500xf32>
    %b = genrec.param @b : tensor<2500xf32>
    %y = genrec.exp %x : !x
    %logits = genrec.linear %y, %w bias %b : (!x, tensor<4x2500xf32>, tensor<2500xf32>) -> !layer
    %k = genrec.softmax_cross_entropy %logits, %label : (!layer, !id) -> !one
    genrec.loss "class" %k {scale = 0.5 : f64} : !one
  }
}
