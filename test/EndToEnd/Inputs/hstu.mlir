// HSTU over the latest events, and softmax attention behind it: every kind of call that asks for scratch in training.
!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!event = !genrec.domain<@event>
!items = !genrec.domain<@items>
!hi = tensor<?xi64, #genrec.rows<@history>>
!e = tensor<?xf32, #genrec.rows<@event>>
!ei = tensor<?xi64, #genrec.rows<@event>>
!e8 = tensor<?x8xf32, #genrec.rows<@event>>
!mi = tensor<?xi64, #genrec.rows<@items>>
!m8 = tensor<?x8xf32, #genrec.rows<@items>>
genrec.model @hstu {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @event parent @user {kind = #genrec<domain_kind derived>}
  genrec.domain @items kind catalogue
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<adam, {lr = 0.01}>}
  genrec.parameter @uvqk : tensor<8x32xf32> {init = #genrec.init<normal, 0.3>, optimizer = #genrec.optimizer<adamw, {lr = 0.01}>}
  genrec.parameter @out : tensor<8x8xf32> {init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adamw, {lr = 0.01}>}
  genrec.parameter @bias : tensor<8xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.01}>}
  genrec.parameter @distance : tensor<9xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.01}>}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %event = genrec.truncate %history {count = 4 : i64} : (!history) -> !event
    %items = genrec.catalogue : !items
    %id = genrec.feature %items "id" : (!items) -> !mi
    %all = genrec.feature %history "history.item" : (!history) -> !hi
    %item = genrec.derive %all into %event : (!hi, !event) -> !ei
    %x = genrec.lookup %item in @item : (!ei) -> !e8
    %uvqk = genrec.param @uvqk : tensor<8x32xf32>
    %out = genrec.param @out : tensor<8x8xf32>
    %bias = genrec.param @bias : tensor<8xf32>
    %distance = genrec.param @distance : tensor<9xf32>
    %y = genrec.hstu_block silu %x, %uvqk, %out, %bias position_bias %distance {heads = 1 : i64, qk = 8 : i64, dv = 8 : i64, causal, fixed_length = 9.0 : f64, eps = 1.0e-6 : f64, dropout = 0.1 : f64, linear_dropout = 0.2 : f64, stream = 256 : i64} : (!e8, tensor<8x32xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<9xf32>) -> !e8
    %z = genrec.attention softmax %y, %y, %y {heads = 2 : i64, causal, stream = 512 : i64} : (!e8, !e8, !e8) -> !e8
    %rows = genrec.lookup %id in @item : (!mi) -> !m8
    %positive = genrec.resolve %item in %id {allow_missing} : (!ei, !mi) -> !ei
    %loss = genrec.sampled_softmax %z, %positive, %rows {negatives = 4 : i64, temperature = 0.5 : f64, stream = 768 : i64} : (!e8, !ei, !m8) -> !e
    genrec.loss "next" %loss : !e
    %length = genrec.length %event : (!event) -> tensor<?xi64, #genrec.rows<@user>>
    genrec.output "length" %length : tensor<?xi64, #genrec.rows<@user>>
  }
}
