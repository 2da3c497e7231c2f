// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of what is done with a catalogue.

// resolve takes i64 ids.
!num = tensor<?xf32, #genrec.rows<@request>>
!cid = tensor<?xi64, #genrec.rows<@items>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !num, %c: !cid) {
  // expected-error@+1 {{'genrec.resolve' op 'ids' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.resolve %x in %c : (!num, !cid) -> !id
  return
}

// -----

// resolve takes the ids of a catalogue.
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%x: !id, %c: !cvec) {
  // expected-error@+1 {{'genrec.resolve' op 'catalogue' must be rows of a domain, [] x i64 (the ids of a catalogue), but is rows of @items, [8] x f32}}
  %0 = genrec.resolve %x in %c : (!id, !cvec) -> !id
  return
}

// -----

// resolve gives a row per id.
!id = tensor<?xi64, #genrec.rows<@request>>
!cid = tensor<?xi64, #genrec.rows<@items>>
func.func @test(%x: !id, %c: !cid) {
  // expected-error@+1 {{'genrec.resolve' op 'result' must be rows of @request, [] x i64 (a catalogue row per id), but is rows of @items, [] x i64}}
  %0 = genrec.resolve %x in %c : (!id, !cid) -> !cid
  return
}

// -----

// Ids are looked for in a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.resolve' op 'catalogue' must be of a domain of kind catalogue, but @event is of kind data}}
    %0 = genrec.resolve %u in %i : (!id, !eid) -> !id
  }
}

// -----

// scores takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%q: !num, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [] x f32}}
  %0 = genrec.scores %q, %i : (!num, !cvec) -> !vec
  return
}

// -----

// scores gives a vector per query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores' op 'result' must be rows of @request, [d] x f32 (a score per catalogue row), but is rows of @request, [] x f32}}
  %0 = genrec.scores %q, %i : (!vec, !cvec) -> !num
  return
}

// -----

// scores takes items of a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.scores' op 'items' must be of a domain of kind catalogue, but @event is of kind data}}
    %0 = genrec.scores %q, %n : (!vec, !evec) -> !vec
  }
}

// -----

// scores_grad takes vectors.
!num = tensor<?xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !num, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op 'query' must be rows of a domain, [d] x f32, but is rows of @request, [] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %q : (!num, !cvec, !num) -> (!num, !cvec)
  return
}

// -----

// scores_grad takes one domain.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%q: !vec, %i: !cvec, %g: !evec) {
  // expected-error@+1 {{'genrec.scores_grad' op mixes rows of @request and @event: 'query' has rows of @request, [8] x f32 and 'gradient' has rows of @event, [8] x f32; bring both into one domain with genrec.fanout, genrec.pool or genrec.derive}}
  %0, %1 = genrec.scores_grad %q, %i, %g : (!vec, !cvec, !evec) -> (!vec, !cvec)
  return
}

// -----

// scores_grad takes a gradient per score.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec, %g: !num) {
  // expected-error@+1 {{'genrec.scores_grad' op 'gradient' must be rows of @request, [d] x f32, but is rows of @request, [] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %g : (!vec, !cvec, !num) -> (!vec, !cvec)
  return
}

// -----

// dquery of scores_grad has the type of query.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op 'dquery' must be rows of @request, [8] x f32 (the type of 'query'), but is rows of @items, [8] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %q : (!vec, !cvec, !vec) -> (!cvec, !cvec)
  return
}

// -----

// ditems of scores_grad has the type of items.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op 'ditems' must be rows of @items, [8] x f32 (the type of 'items'), but is rows of @request, [8] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %q : (!vec, !cvec, !vec) -> (!vec, !vec)
  return
}

// -----

// scores_grad takes items of a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.scores_grad' op 'items' must be of a domain of kind catalogue, but @event is of kind data}}
    %0, %1 = genrec.scores_grad %q, %n, %q : (!vec, !evec, !vec) -> (!vec, !evec)
  }
}

// -----

// top_k takes vectors.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec4 = tensor<?x4xf32, #genrec.rows<@items>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec4) {
  // expected-error@+1 {{'genrec.top_k' op 'items' must be rows of a domain, [8] x f32 (vectors of the size of 'query'), but is rows of @items, [4] x f32}}
  %0, %1 = genrec.top_k %q, %i : (!vec, !cvec4) -> (!ids, !vec)
  return
}

// -----

// exclude holds catalogue rows.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!enum = tensor<?xf32, #genrec.rows<@event>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec, %x: !enum) {
  // expected-error@+1 {{'genrec.top_k' op 'exclude' must be rows of a domain, [] x i64 (catalogue rows), but is rows of @event, [] x f32}}
  %0, %1 = genrec.top_k %q, %i exclude %x : (!vec, !cvec, !enum) -> (!ids, !vec)
  return
}

// -----

// index holds k catalogue rows.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.top_k' op 'index' must be rows of @request, [d] x i64 (the k best catalogue rows), but is rows of @request, [] x i64}}
  %0, %1 = genrec.top_k %q, %i : (!vec, !cvec) -> (!id, !num)
  return
}

// -----

// There is a score per index.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
!vec4 = tensor<?x4xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.top_k' op 'score' must be rows of @request, [8] x f32 (a score per 'index'), but is rows of @request, [4] x f32}}
  %0, %1 = genrec.top_k %q, %i : (!vec, !cvec) -> (!ids, !vec4)
  return
}

// -----

// top_k takes items of a catalogue.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    // expected-error@+1 {{'genrec.top_k' op 'items' must be of a domain of kind catalogue, but @event is of kind data}}
    %0, %1 = genrec.top_k %q, %n : (!vec, !evec) -> (!ids, !vec)
  }
}

// -----

// exclude lies below the query.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!items = !genrec.domain<@items>
!cid = tensor<?xi64, #genrec.rows<@items>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    %c = genrec.catalogue : !items
    %d = genrec.feature %c "id" : (!items) -> !cid
    %m = genrec.lookup %d in @item : (!cid) -> !cvec
    // expected-error@+1 {{'genrec.top_k' op 'exclude' must have rows of a child of @request, the domain of 'query', but has rows of @request}}
    %0, %1 = genrec.top_k %q, %m exclude %u : (!vec, !cvec, !id) -> (!ids, !vec)
  }
}

// -----

// rank takes vectors.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cid = tensor<?xi64, #genrec.rows<@items>>
func.func @test(%q: !vec, %t: !id, %i: !cid) {
  // expected-error@+1 {{'genrec.rank' op 'items' must be rows of a domain, [8] x f32 (vectors of the size of 'query'), but is rows of @items, [] x i64}}
  %0 = genrec.rank %q, %t, %i : (!vec, !id, !cid) -> !id
  return
}

// -----

// The targets of rank are rows of the query's domain or of a list of it.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!items = !genrec.domain<@items>
!id = tensor<?xi64, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @items kind catalogue
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %t = genrec.feature %r "t" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> tensor<?xi64, #genrec.rows<@event>>
    %q = genrec.lookup %i in @item : (tensor<?xi64, #genrec.rows<@event>>) -> !evec
    %c = genrec.catalogue : !items
    %d = genrec.feature %c "id" : (!items) -> tensor<?xi64, #genrec.rows<@items>>
    %m = genrec.lookup %d in @item : (tensor<?xi64, #genrec.rows<@items>>) -> !cvec
    // expected-error@+1 {{'genrec.rank' op 'target' must have rows of @event, the domain of 'query', or of a child of it, but has rows of @request}}
    %0 = genrec.rank %q, %t, %m : (!evec, !id, !cvec) -> !id
  }
}

// -----

// A target is a catalogue row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %t: !num, %i: !cvec) {
  // expected-error@+1 {{'genrec.rank' op 'target' must be rows of a domain, [] x i64 (a catalogue row each), but is rows of @request, [] x f32}}
  %0 = genrec.rank %q, %t, %i : (!vec, !num, !cvec) -> !num
  return
}

// -----

// exclude of rank holds catalogue rows.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%q: !vec, %t: !id, %i: !cvec, %x: !enum) {
  // expected-error@+1 {{'genrec.rank' op 'exclude' must be rows of a domain, [] x i64 (catalogue rows), but is rows of @event, [] x f32}}
  %0 = genrec.rank %q, %t, %i exclude %x : (!vec, !id, !cvec, !enum) -> !id
  return
}

// -----

// rank gives an i64 per row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%q: !vec, %t: !id, %i: !cvec) {
  // expected-error@+1 {{'genrec.rank' op 'result' must be rows of @request, [] x i64 (a rank per target), but is rows of @request, [] x f32}}
  %0 = genrec.rank %q, %t, %i : (!vec, !id, !cvec) -> !num
  return
}

// -----

// exclude of rank lies below the query.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!items = !genrec.domain<@items>
!cid = tensor<?xi64, #genrec.rows<@items>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.table @item dim 8 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %u = genrec.feature %r "u" : (!request) -> !id
    %i = genrec.feature %e "i" : (!event) -> !eid
    %q = genrec.lookup %u in @item : (!id) -> !vec
    %n = genrec.lookup %i in @item : (!eid) -> !evec
    %c = genrec.catalogue : !items
    %d = genrec.feature %c "id" : (!items) -> !cid
    %m = genrec.lookup %d in @item : (!cid) -> !cvec
    // expected-error@+1 {{'genrec.rank' op 'exclude' must have rows of a child of @event, the domain of 'query', but has rows of @request}}
    %0 = genrec.rank %n, %i, %m exclude %u : (!evec, !eid, !cvec, !id) -> !eid
  }
}

// -----

// scores_grad adds to two values.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op adds 'onto' a dquery and a ditems, but has 1 values}}
  %0, %1 = genrec.scores_grad %q, %i, %q onto %q : (!vec, !cvec, !vec, !vec) -> (!vec, !cvec)
  return
}

// -----

// scores_grad adds to a dquery and a ditems, in this order.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op 'onto 0' must be rows of @request, [8] x f32 (the type of 'query'), but is rows of @items, [8] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %q onto %i, %q : (!vec, !cvec, !vec, !cvec, !vec) -> (!vec, !cvec)
  return
}

// -----

!vec = tensor<?x8xf32, #genrec.rows<@request>>
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
func.func @test(%q: !vec, %i: !cvec) {
  // expected-error@+1 {{'genrec.scores_grad' op 'onto 1' must be rows of @items, [8] x f32 (the type of 'items'), but is rows of @request, [8] x f32}}
  %0, %1 = genrec.scores_grad %q, %i, %q onto %q, %q : (!vec, !cvec, !vec, !vec, !vec) -> (!vec, !cvec)
  return
}
