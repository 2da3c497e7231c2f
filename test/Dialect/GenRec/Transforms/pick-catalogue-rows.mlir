// RUN: genrec-opt %s --genrec-pick-catalogue-rows --split-input-file | FileCheck %s

// A table with a tower: the vectors are computed for the rows that the step reads.

// CHECK-LABEL: genrec.model @shared
// CHECK-SAME: genrec.decisions = ["pick-catalogue-rows: @all: lookup {{.*}} of catalogue 'items' is computed for the items that a step reads"]
// CHECK: genrec.domain @items kind catalogue
// CHECK-NEXT: genrec.domain @picked_items kind step
genrec.model @shared {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  // CHECK-LABEL: genrec.program @all
  genrec.program @all {
    // CHECK: %[[ITEMS:.*]] = genrec.catalogue
    %request = genrec.batch : !genrec.domain<@request>
    %items = genrec.catalogue : !genrec.domain<@items>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    // CHECK: %[[TARGET:.*]] = genrec.resolve
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    // CHECK: %[[DRAWN:.*]] = genrec.draw_rows %[[ITEMS]] {count = 16 : i64, stream = 256 : i64}
    // CHECK: %[[PICKED:.*]], %[[ROWS:.*]], %[[NUMBERS:.*]]:2 = genrec.pick_rows %[[ITEMS]](%[[TARGET]], %[[DRAWN]])
    // CHECK: %[[OWN:.*]] = genrec.gather_rows %{{.*}} at %[[ROWS]]
    // CHECK: %[[VECTORS:.*]] = genrec.lookup %[[OWN]] in @item {{.*}} -> tensor<?x8xf32, #genrec.rows<@picked_items>>
    // CHECK: genrec.sampled_softmax %{{.*}}, %[[NUMBERS]]#0, %[[VECTORS]] drawn %[[NUMBERS]]#1
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 16 : i64, shared, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// Lists of the items, one of them derived, and a column of strings: the hash of each item is computed
// for all of them.
// CHECK-LABEL: genrec.model @lists
// CHECK-SAME: is computed for the items that a step reads
// CHECK: genrec.domain @picked_items kind step
// CHECK: genrec.domain @picked_tag parent @picked_items kind derived
// CHECK: genrec.domain @picked_few parent @picked_items kind derived
// CHECK: %[[DRAWN:.*]] = genrec.draw_rows %{{.*}} for %{{.*}} {count = 4 : i64, stream = 256 : i64}
// CHECK: %[[PICKED:.*]], %[[ROWS:.*]], %{{.*}}:2 = genrec.pick_rows
// CHECK: %[[TAGS:.*]], %[[TAG_ROWS:.*]] = genrec.pick_lists %{{.*}} at %[[ROWS]]
// CHECK: genrec.truncate %[[TAGS]] {{.*}} -> !genrec.domain<@picked_few>
// CHECK-DAG: genrec.pool mean {{.*}} -> tensor<?x8xf32, #genrec.rows<@picked_items>>
// CHECK-DAG: %[[HASH:.*]] = genrec.hash {{.*}} -> tensor<?xi64, #genrec.rows<@items>>
// CHECK-DAG: genrec.gather_rows %[[HASH]] at %[[ROWS]]
// CHECK-DAG: genrec.gather_rows %{{.*}} at %[[TAG_ROWS]]
// CHECK: genrec.sampled_softmax {{.*}} drawn
genrec.model @lists {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %few = genrec.truncate %tag {count = 2 : i64} : (!genrec.domain<@tag>) -> !genrec.domain<@few>
    %tags = genrec.feature %tag "tags.id" : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@tag>>
    %recent = genrec.derive %tags into %few : (tensor<?xi64, #genrec.rows<@tag>>, !genrec.domain<@few>) -> tensor<?xi64, #genrec.rows<@few>>
    %looked = genrec.lookup %recent in @item : (tensor<?xi64, #genrec.rows<@few>>) -> tensor<?x8xf32, #genrec.rows<@few>>
    %pooled = genrec.pool mean %looked to %items : (tensor<?x8xf32, #genrec.rows<@few>>, !genrec.domain<@items>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %title = genrec.feature %items "title" : (!genrec.domain<@items>) -> tensor<?x!genrec.string, #genrec.rows<@items>>
    %hash = genrec.hash xxh3 %title {bits = 52 : i64} : (tensor<?x!genrec.string, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@items>>
    %named = genrec.lookup %hash in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %vectors = genrec.add %pooled, %named
        : (tensor<?x8xf32, #genrec.rows<@items>>, tensor<?x8xf32, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// The best items are among all.
// CHECK-LABEL: genrec.model @read_whole
// CHECK-SAME: is computed for all items: top_k {{.*}} reads it for all items
// CHECK-NOT: genrec.pick_rows
genrec.model @read_whole {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
    %best, %score = genrec.top_k %query, %vectors
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> (tensor<?x4xi64, #genrec.rows<@request>>, tensor<?x4xf32, #genrec.rows<@request>>)
    genrec.output "best" %best : tensor<?x4xi64, #genrec.rows<@request>>
  }
}

// -----

// What they are computed from is needed for all items.
// CHECK-LABEL: genrec.model @lookup_read_whole
// CHECK-SAME: is computed for all items: top_k {{.*}} reads lookup {{.*}} for all items
// CHECK-NOT: genrec.pick_rows
genrec.model @lookup_read_whole {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %looked = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %vectors = genrec.silu %looked : tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
    %best, %score = genrec.top_k %query, %looked
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> (tensor<?x4xi64, #genrec.rows<@request>>, tensor<?x4xf32, #genrec.rows<@request>>)
    genrec.output "best" %best : tensor<?x4xi64, #genrec.rows<@request>>
  }
}

// -----

// All items are seen in each step, and get rows.
// CHECK-LABEL: genrec.model @rules
// CHECK-SAME: is computed for all items: table 'item' has rules about rows, and sees every item in every step
// CHECK-NOT: genrec.pick_rows
genrec.model @rules {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>, ttl = 100 : i64}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// 1,024 requests read 5 rows each.
// CHECK-LABEL: genrec.model @small
// CHECK-SAME: is computed for all items: a step reads some 5120 rows, with repetitions, of the 5000 of the catalogue
// CHECK-NOT: genrec.pick_rows
genrec.model @small {
  genrec.domain @request
  genrec.domain @items kind catalogue {expected_rows = 5000 : i64}
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// 1,024 requests read 5 rows each.
// CHECK-LABEL: genrec.model @large
// CHECK: genrec.pick_rows
genrec.model @large {
  genrec.domain @request
  genrec.domain @items kind catalogue {expected_rows = 6000 : i64}
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// Each vector is that of another item.
// CHECK-LABEL: genrec.model @between_items
// CHECK-SAME: lookup {{.*}} is computed for all items: gather_rows {{.*}} reads rows for all items
// CHECK-SAME: gather_rows {{.*}} is computed for all items: gather_rows {{.*}} may combine several items
// CHECK-NOT: genrec.pick_rows
genrec.model @between_items {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %looked = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %other = genrec.feature %items "other" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %place = genrec.resolve %other in %ids
        : (tensor<?xi64, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@items>>
    %vectors = genrec.gather_rows %looked at %place
        : (tensor<?x8xf32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// Which item is the positive is computed from the query.
// CHECK-LABEL: genrec.model @computed_numbers
// CHECK-SAME: is computed for all items: sampled_softmax {{.*}} reads rows whose numbers depend on weights
// CHECK-NOT: genrec.pick_rows
// CHECK-NOT: genrec.draw_rows
genrec.model @computed_numbers {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.lookup %ids in @item : (tensor<?xi64, #genrec.rows<@items>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %sum = genrec.row_reduce sum %query : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    %bucket = genrec.bucketize %sum {edges = array<f64: 0.0>} : (tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xi64, #genrec.rows<@request>>
    %loss = genrec.sampled_softmax %query, %bucket, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

// A column of the catalogue costs nothing: there is nothing to decide.
// CHECK-LABEL: genrec.model @columns
// CHECK-NOT: genrec.pick_rows
genrec.model @columns {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @few parent @items kind derived
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %query = genrec.lookup %user in @item : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %ids = genrec.feature %items "item" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    %target = genrec.resolve %user in %ids
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@items>>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.feature %items "vector" : (!genrec.domain<@items>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %loss = genrec.sampled_softmax %query, %target, %vectors
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "next" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}
