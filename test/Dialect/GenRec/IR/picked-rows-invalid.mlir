// RUN: genrec-opt %s --split-input-file --verify-diagnostics

genrec.model @each {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items = genrec.catalogue : !genrec.domain<@items>
    // expected-error @+1 {{'genrec.draw_rows' op 'result' must be rows of @request, [4] x i64 ('count' draws per row of 'domain'), but is shared [4] x i64}}
    %drawn = genrec.draw_rows %items for %request {count = 4 : i64, stream = 256 : i64}
        : (!genrec.domain<@items>, !genrec.domain<@request>) -> tensor<4xi64>
  }
}

// -----

genrec.model @once {
  genrec.domain @items kind catalogue
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    // expected-error @+1 {{'genrec.draw_rows' op 'result' must be shared [4] x i64 ('count' draws per step), but is shared [5] x i64}}
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<5xi64>
  }
}

// -----

genrec.model @stream {
  genrec.domain @items kind catalogue
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    // expected-error @+1 {{'genrec.draw_rows' op 'stream' must be at least 0, but is -1}}
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = -1 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
  }
}

// -----

genrec.model @no_numbers {
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    // expected-error @+1 {{'genrec.pick_rows' op needs the numbers of rows to pick}}
    %picked, %rows = genrec.pick_rows %items () : (!genrec.domain<@items>) -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@picked>>)
  }
}

// -----

genrec.model @too_few {
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    // expected-error @+1 {{'genrec.pick_rows' op needs a result of 'picked' per operand of 'numbers', 1, but has 0}}
    %picked, %rows = genrec.pick_rows %items (%drawn) : (!genrec.domain<@items>, tensor<4xi64>)
        -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@picked>>)
  }
}

// -----

genrec.model @no_integers {
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    %half = genrec.constant dense<0.5> : tensor<4xf32>
    // expected-error @+1 {{'genrec.pick_rows' op 'numbers 0' must be a tensor of element type i64, but is shared [4] x f32}}
    %picked, %rows, %to = genrec.pick_rows %items (%half) : (!genrec.domain<@items>, tensor<4xf32>)
        -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@picked>>, tensor<4xf32>)
  }
}

// -----

genrec.model @other_shape {
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    // expected-error @+1 {{'genrec.pick_rows' op 'picked 0' must be shared [4] x i64 (a number each, as 'numbers 0'), but is shared [5] x i64}}
    %picked, %rows, %to = genrec.pick_rows %items (%drawn) : (!genrec.domain<@items>, tensor<4xi64>)
        -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@picked>>, tensor<5xi64>)
  }
}

// -----

genrec.model @other_rows {
  genrec.domain @items kind catalogue
  genrec.domain @picked kind step
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    // expected-error @+1 {{'genrec.pick_rows' op 'rows' must be rows of @picked, [] x i64 (a row number of 'source' per picked row), but is rows of @items, [] x i64}}
    %picked, %rows, %to = genrec.pick_rows %items (%drawn) : (!genrec.domain<@items>, tensor<4xi64>)
        -> (!genrec.domain<@picked>, tensor<?xi64, #genrec.rows<@items>>, tensor<4xi64>)
  }
}

// -----

genrec.model @no_lists {
  genrec.domain @items kind catalogue
  genrec.domain @other kind catalogue
  genrec.domain @lists parent @items kind derived
  genrec.program @all {
    %items = genrec.catalogue : !genrec.domain<@items>
    %other = genrec.catalogue : !genrec.domain<@other>
    %ids = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    // expected-error @+1 {{'genrec.pick_lists' op picks lists, but 'source' @other is a root}}
    %lists, %rows = genrec.pick_lists %other at %ids : (!genrec.domain<@other>, tensor<?xi64, #genrec.rows<@items>>)
        -> (!genrec.domain<@lists>, tensor<?xi64, #genrec.rows<@lists>>)
  }
}

// -----

genrec.model @other_parent {
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @other kind catalogue
  genrec.domain @lists parent @other kind derived
  genrec.program @all {
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %other = genrec.catalogue : !genrec.domain<@other>
    %ids = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    // expected-error @+1 {{'genrec.pick_lists' op 'domain' @lists must be a child of @items, the domain of 'parents'}}
    %lists, %rows = genrec.pick_lists %tag at %ids : (!genrec.domain<@tag>, tensor<?xi64, #genrec.rows<@items>>)
        -> (!genrec.domain<@lists>, tensor<?xi64, #genrec.rows<@lists>>)
  }
}

// -----

genrec.model @shared_parents {
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @lists parent @items kind derived
  genrec.program @all {
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    // expected-error @+1 {{'genrec.pick_lists' op 'parents' must be rows of a domain, [] x i64 (row numbers of the parent of 'source'), but is shared [4] x i64}}
    %lists, %rows = genrec.pick_lists %tag at %drawn : (!genrec.domain<@tag>, tensor<4xi64>)
        -> (!genrec.domain<@lists>, tensor<?xi64, #genrec.rows<@lists>>)
  }
}

// -----

genrec.model @list_rows {
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.domain @lists parent @items kind derived
  genrec.program @all {
    %items, %tag = genrec.catalogue : !genrec.domain<@items>, !genrec.domain<@tag>
    %ids = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi64, #genrec.rows<@items>>
    // expected-error @+1 {{'genrec.pick_lists' op 'rows' must be rows of @lists, [] x i64 (a row number of 'source' per picked row), but is rows of @items, [] x i64}}
    %lists, %rows = genrec.pick_lists %tag at %ids : (!genrec.domain<@tag>, tensor<?xi64, #genrec.rows<@items>>)
        -> (!genrec.domain<@lists>, tensor<?xi64, #genrec.rows<@items>>)
  }
}

// -----

genrec.model @negatives {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %items = genrec.catalogue : !genrec.domain<@items>
    %query = genrec.feature %request "query" : (!genrec.domain<@request>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %target = genrec.feature %request "target" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %vectors = genrec.feature %items "vector" : (!genrec.domain<@items>) -> tensor<?x8xf32, #genrec.rows<@items>>
    %drawn = genrec.draw_rows %items {count = 4 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<4xi64>
    // expected-error @+1 {{'genrec.sampled_softmax' op 'drawn' must be rows of @request, [4] x i64 (the negatives of each row), but is shared [4] x i64}}
    %loss = genrec.sampled_softmax %query, %target, %vectors drawn %drawn
        {negatives = 4 : i64, temperature = 1.0 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>, tensor<4xi64>)
        -> tensor<?xf32, #genrec.rows<@request>>
  }
}

// -----

genrec.model @expected_rows {
  // expected-error @+1 {{'genrec.domain' op of kind data must have no 'expected_rows'; only a catalogue has a number of its own}}
  genrec.domain @request {expected_rows = 3 : i64}
}
