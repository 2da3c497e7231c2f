// What the examples in the op documentation may use. run-examples.py puts an example in place of one
// of the "example:" lines, by the kind of its op; the other vanishes.
genrec.model @example {
  genrec.domain @request
  genrec.domain @impression parent @request {column = "impressions"}
  genrec.domain @history parent @request {column = "history"}
  genrec.domain @tag parent @history {column = "history.tags"}
  genrec.domain @event parent @request kind derived
  genrec.domain @seq parent @request kind derived
  genrec.domain @pair parent @impression kind derived
  genrec.domain @items kind catalogue
  genrec.domain @touched kind step
  genrec.domain @one kind step
  genrec.domain @both kind step

  // Declared for examples that make a domain; no value of these is made below.
  genrec.domain @click parent @request {column = "clicks"}
  genrec.domain @recent parent @request kind derived
  genrec.domain @sequence parent @request kind derived
  genrec.domain @padded parent @request kind derived
  genrec.domain @seen_together parent @impression kind derived
  genrec.domain @movies kind catalogue {source = "movies.parquet"}
  genrec.domain @credit parent @movies {column = "credits"}
  genrec.domain @step_rows kind step
  genrec.domain @picked_credit parent @step_rows kind derived

  genrec.table @item dim 8 {
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.01}>}
  genrec.table @hot_item dim 8 {element = #genrec<row_element bf16>, hot_after = 20 : i64,
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.01}>}
  genrec.table @all_items dim 8 {id_bits = 63, members = [@item],
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.01}>}
  genrec.parameter @weight : tensor<8x4xf32> {
    init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adamw, {lr = 1.0e-3}>}
  genrec.parameter @bias : tensor<4xf32> {
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adamw, {lr = 1.0e-3}>}
  genrec.parameter @positions : tensor<200x8xf32> {
    init = #genrec.init<xavier_normal, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @scale : tensor<8xf32> {
    init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @position_bias : tensor<21xf32> {
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @time_bias : tensor<64xf32> {
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @uvqk : tensor<8x32xf32> {
    init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @out_weight : tensor<8x8xf32> {
    init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @square_weight : tensor<8x8xf32> {
    init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @expand : tensor<4x8xf32> {
    init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  // example: declaration

  genrec.program @main {
    // One value per domain.
    %request, %impression, %history, %tag = genrec.batch
        : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@history>, !genrec.domain<@tag>
    %event = genrec.truncate %history {count = 4 : i64} : (!genrec.domain<@history>) -> !genrec.domain<@event>
    %seq = genrec.concat_domains %request, %event
        : (!genrec.domain<@request>, !genrec.domain<@event>) -> !genrec.domain<@seq>
    %pair = genrec.pair_domains %impression, %event
        : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@pair>
    %items = genrec.catalogue : !genrec.domain<@items>
    %both = genrec.stack_domains %request, %history
        : (!genrec.domain<@request>, !genrec.domain<@history>) -> !genrec.domain<@both>
    %one = genrec.fixed_rows 1 : !genrec.domain<@one>

    // Features: ids, scalars, labels.
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %name = genrec.feature %request "name" : (!genrec.domain<@request>) -> tensor<?x!genrec.string, #genrec.rows<@request>>
    %age = genrec.feature %request "age" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %liked = genrec.feature %request "liked" : (!genrec.domain<@request>) -> tensor<?xi1, #genrec.rows<@request>>
    %movie = genrec.feature %history "history.movie" {nullable} : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %movie_valid = genrec.feature_valid %history "history.movie" : (!genrec.domain<@history>) -> tensor<?xi1, #genrec.rows<@history>>
    %time = genrec.feature %history "history.time" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %shown = genrec.feature %impression "impressions.movie" : (!genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@impression>>
    %label = genrec.feature %impression "impressions.click" : (!genrec.domain<@impression>) -> tensor<?xf32, #genrec.rows<@impression>>
    %item_ids = genrec.feature %items "movie" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>

    // Vectors of 8 per row, and logits of 4.
    %user_vector = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %movie_vector = genrec.lookup %movie in @item : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
    %shown_vector = genrec.lookup %shown in @item : (tensor<?xi64, #genrec.rows<@impression>>) -> tensor<?x8xf32, #genrec.rows<@impression>>
    %item_vectors = genrec.lookup %item_ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %event_vector = genrec.derive %movie_vector into %event
        : (tensor<?x8xf32, #genrec.rows<@history>>, !genrec.domain<@event>) -> tensor<?x8xf32, #genrec.rows<@event>>
    %event_time = genrec.derive %time into %event
        : (tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %seq_vector = genrec.concat_rows %user_vector, %event_vector into %seq
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@seq>) -> tensor<?x8xf32, #genrec.rows<@seq>>
    %logits = genrec.slice_columns %shown_vector from 0 : (tensor<?x8xf32, #genrec.rows<@impression>>) -> tensor<?x4xf32, #genrec.rows<@impression>>
    %logit = genrec.row_reduce sum %logits : (tensor<?x4xf32, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    %row_loss = genrec.bce_with_logits %logit, %label
        : (tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>

    %pair_vector = genrec.pair_rows %event_vector into %pair
        : (tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@pair>) -> tensor<?x8xf32, #genrec.rows<@pair>>
    %pair_scores = genrec.slice_columns %user_vector from 7 : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x1xf32, #genrec.rows<@request>>
    %pair_gate = genrec.slice_columns %user_vector from 0 : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x2xf32, #genrec.rows<@request>>
    %shown_count = genrec.length %impression : (!genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@request>>

    // Shared values.
    %weight = genrec.param @weight : tensor<8x4xf32>
    %bias = genrec.param @bias : tensor<4xf32>
    %positions = genrec.param @positions : tensor<200x8xf32>
    %scale = genrec.param @scale : tensor<8xf32>
    %position_bias = genrec.param @position_bias : tensor<21xf32>
    %time_bias = genrec.param @time_bias : tensor<64xf32>
    %uvqk = genrec.param @uvqk : tensor<8x32xf32>
    %out_weight = genrec.param @out_weight : tensor<8x8xf32>
    %square_weight = genrec.param @square_weight : tensor<8x8xf32>
    %expand = genrec.param @expand : tensor<4x8xf32>
    %half = genrec.constant dense<0.5> : tensor<f32>
    %edges = genrec.constant dense<[0.0, 1.0, 10.0]> : tensor<3xf64>
    %total = genrec.reduce_rows %row_loss : (tensor<?xf32, #genrec.rows<@impression>>) -> tensor<f32>

    // Catalogue rows: the target of each request, those seen, the best four.
    %target = genrec.resolve %user in %item_ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %seen = genrec.resolve %movie in %item_ids
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@history>>
    %best, %best_score = genrec.top_k %user_vector, %item_vectors
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> (tensor<?x4xi64, #genrec.rows<@request>>, tensor<?x4xf32, #genrec.rows<@request>>)

    // Table rows, and the distinct ones among them.
    %hot_rows = genrec.table_rows %user in @hot_item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x!genrec.row<8, bf16, hot>, #genrec.rows<@request>>
    %user_rows = genrec.table_rows %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x!genrec.row<8>, #genrec.rows<@request>>
    %movie_rows = genrec.table_rows %movie in @item : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x!genrec.row<8>, #genrec.rows<@history>>
    %touched, %touched_rows = genrec.unique_rows (%user_rows, %movie_rows) by (%user_vector, %movie_vector)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>, tensor<?x!genrec.row<8>, #genrec.rows<@history>>,
           tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>)
        -> (!genrec.domain<@touched>, tensor<?x!genrec.row<8>, #genrec.rows<@touched>>)

    // example: program
  }
}
