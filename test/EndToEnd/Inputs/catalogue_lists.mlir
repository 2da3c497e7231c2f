// What a catalogue says about items: lists of them, columns by id, rows of several values; beside it what is drawn per row,
// sine and cosine, smoothed labels, and values of a row stacked as a list of it.

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!field = !genrec.domain<@field>
!items = !genrec.domain<@items>
!tag = !genrec.domain<@tag>
!first_tags = !genrec.domain<@first_tags>
!s = tensor<f32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u4 = tensor<?x4xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!ub = tensor<?xi1, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h4 = tensor<?x4xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>
!f4 = tensor<?x4xf32, #genrec.rows<@field>>
!i = tensor<?xf32, #genrec.rows<@items>>
!i4 = tensor<?x4xf32, #genrec.rows<@items>>
!ii = tensor<?xi64, #genrec.rows<@items>>
!ib = tensor<?xi1, #genrec.rows<@items>>
!t4 = tensor<?x4xf32, #genrec.rows<@tag>>
!ti = tensor<?xi64, #genrec.rows<@tag>>
!g4 = tensor<?x4xf32, #genrec.rows<@first_tags>>
!gi = tensor<?xi64, #genrec.rows<@first_tags>>

genrec.model @catalogue_lists {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @field parent @user kind derived
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @first_tags parent @items kind derived
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @tag_vector dim 4 {init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.parameter @mix : tensor<4x4xf32> {
    init = #genrec.init<normal, 0.5>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %items, %tag = genrec.catalogue : !items, !tag
    %ids = genrec.feature %items "item" : (!items) -> !ii
    %tags = genrec.feature %tag "tags" : (!tag) -> !ti
    %image = genrec.feature %items "image" : (!items) -> !i4
    %price = genrec.feature %items "price" {nullable} : (!items) -> !i
    %has_price = genrec.feature_valid %items "price" : (!items) -> !ib
    %mix = genrec.param @mix : tensor<4x4xf32>

    // Item vectors: the item's own, the mean of its tags', the first tag's again, and its image.
    %own = genrec.lookup %ids in @item : (!ii) -> !i4
    %of_tags = genrec.lookup %tags in @tag_vector : (!ti) -> !t4
    %mean = genrec.pool mean %of_tags to %items : (!t4, !items) -> !i4
    %first_tags = genrec.truncate %tag {count = 1 : i64, keep = #genrec<keep first>} : (!tag) -> !first_tags
    %first = genrec.derive %of_tags into %first_tags : (!t4, !first_tags) -> !g4
    %again = genrec.pool sum %first to %items : (!g4, !items) -> !i4
    %seen = genrec.linear %image, %mix : (!i4, tensor<4x4xf32>) -> !i4
    %with_tags = genrec.add %own, %mean : (!i4, !i4) -> !i4
    %with_first = genrec.add %with_tags, %again : (!i4, !i4) -> !i4
    %vectors = genrec.add %with_first, %seen : (!i4, !i4) -> !i4

    // Columns of the catalogue by the ids of events.
    %id = genrec.feature %history "history.item" {nullable} : (!history) -> !hi
    %has_id = genrec.feature_valid %history "history.item" : (!history) -> !hb
    %row = genrec.resolve %id valid %has_id in %ids : (!hi, !hb, !ii) -> !hi
    %event_price = genrec.gather_rows %price at %row : (!i, !hi) -> !h
    %event_has_price = genrec.gather_rows %has_price at %row : (!ib, !hi) -> !hb
    %event_image = genrec.gather_rows %image at %row : (!i4, !hi) -> !h4

    // What is drawn per event, and per user.
    %noise = genrec.random_uniform %history {stream = 256 : i64} : (!history) -> !h4
    %draw = genrec.random_uniform %user {stream = 512 : i64} : (!user) -> !u
    %half = genrec.constant dense<0.5> : !s
    %kept = genrec.compare lt %draw, %half : (!u, !s) -> !ub
    %noisy = genrec.add %event_image, %noise : (!h4, !h4) -> !h4
    %wave = genrec.sin %noisy : !h4
    %turned = genrec.cos %wave : !h4
    %zero = genrec.constant dense<0.0> : !s
    %paid = genrec.select %event_has_price, %event_price, %zero : (!hb, !h, !s) -> !h
    %weighed = genrec.mul %turned, %paid : (!h4, !h) -> !h4
    %past = genrec.pool sum %weighed to %user : (!h4, !user) -> !u4
    %mixed = genrec.linear %past, %mix : (!u4, tensor<4x4xf32>) -> !u4

    // Three values of a user as a list of three rows.
    %profile = genrec.feature %user "profile" {nullable} : (!user) -> !u4
    %dropped = genrec.select %kept, %profile, %mixed : (!ub, !u4, !u4) -> !u4
    %fields = genrec.concat_domains %user, %user, %user : (!user, !user, !user) -> !field
    %stacked = genrec.concat_rows %mixed, %dropped, %profile into %fields : (!u4, !u4, !u4, !field) -> !f4
    %bent = genrec.tanh %stacked : !f4
    %query = genrec.pool mean %bent to %user : (!f4, !user) -> !u4
    %back = genrec.split_rows %bent part 1 into %user : (!f4, !user) -> !u4

    %target = genrec.feature %user "target" : (!user) -> !ui
    %positive = genrec.resolve %target in %ids : (!ui, !ii) -> !ui
    %loss = genrec.sampled_softmax %query, %positive, %vectors {negatives = 4 : i64, temperature = 1.0 : f64, stream = 768 : i64}
        : (!u4, !ui, !i4) -> !u
    genrec.loss "next" %loss : !u
    %class = genrec.feature %user "class" : (!user) -> !ui
    %smooth = genrec.softmax_cross_entropy %back, %class {label_smoothing = 0.1 : f64} : (!u4, !ui) -> !u
    genrec.loss "class" %smooth : !u

    %index, %score = genrec.top_k %query, %vectors : (!u4, !i4) -> (tensor<?x2xi64, #genrec.rows<@user>>, tensor<?x2xf32, #genrec.rows<@user>>)
    genrec.output "score" %score : tensor<?x2xf32, #genrec.rows<@user>>
    genrec.output "draw" %draw : !u
    genrec.output "profile" %profile : !u4
    genrec.output "past" %past : !u4
  }
}
