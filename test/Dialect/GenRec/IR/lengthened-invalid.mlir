// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of lists lengthened, paired and put side by side.

// pad makes a domain of its own.
!event = !genrec.domain<@event>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.pad' op must derive a domain of its own, but 'source' and 'result' are both @event}}
  %0 = genrec.pad %d {count = 2 : i64} : (!event) -> !event
  return
}

// -----

// pad adds as many rows as a batch may have.
!event = !genrec.domain<@event>
!padded = !genrec.domain<@padded>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.pad' op 'count' must be at most 2147483647, but is 4611686018427387904}}
  %0 = genrec.pad %d {count = 4611686018427387904 : i64} : (!event) -> !padded
  return
}

// -----

// pad lengthens lists.
!request = !genrec.domain<@request>
!padded = !genrec.domain<@padded>
genrec.model @test {
  genrec.domain @request
  genrec.domain @padded parent @request kind derived
  genrec.program @main {
    %request = genrec.batch : !request
    // expected-error@+1 {{'genrec.pad' op needs lists to lengthen, but 'source' @request is a root}}
    %0 = genrec.pad %request {count = 2 : i64} : (!request) -> !padded
  }
}

// -----

// pad keeps the parent.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!padded = !genrec.domain<@padded>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @padded parent @event kind derived
  genrec.program @main {
    %request, %event = genrec.batch : !request, !event
    // expected-error@+1 {{'genrec.pad' op keeps the parent of 'source' @event, @request, but 'result' @padded is declared with parent @event}}
    %0 = genrec.pad %event {count = 2 : i64} : (!event) -> !padded
  }
}

// -----

// There is no string for a new row.
!event = !genrec.domain<@event>
!padded = !genrec.domain<@padded>
!text = tensor<?x!genrec.string, #genrec.rows<@event>>
!ptext = tensor<?x!genrec.string, #genrec.rows<@padded>>
func.func @test(%d: !event, %x: !text) {
  %0 = genrec.pad %d {count = 2 : i64} : (!event) -> !padded
  // expected-error@+1 {{'genrec.derive' op 'x' must be rows of @event, of element type i1, i32, i64, f32 or f64 (the source of the pad op), but is rows of @event, [] x !genrec.string}}
  %1 = genrec.derive %x into %0 : (!text, !padded) -> !ptext
  return
}

// -----

// pairs are a domain of their own.
!event = !genrec.domain<@event>
!item = !genrec.domain<@item>
func.func @test(%d: !event, %e: !item) {
  // expected-error@+1 {{'genrec.pair_domains' op must derive a domain of its own, but 'result' is @item, which it pairs}}
  %0 = genrec.pair_domains %d, %e : (!event, !item) -> !item
  return
}

// -----

// Both halves are lists: the first,
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!pair = !genrec.domain<@pair>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @pair parent @request kind derived
  genrec.program @main {
    %request, %event = genrec.batch : !request, !event
    // expected-error@+1 {{'genrec.pair_domains' op pairs lists of one parent, but 'first' @request is a root}}
    %0 = genrec.pair_domains %request, %event : (!request, !event) -> !pair
  }
}

// -----

// and the second.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!pair = !genrec.domain<@pair>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @pair parent @event kind derived
  genrec.program @main {
    %request, %event = genrec.batch : !request, !event
    // expected-error@+1 {{'genrec.pair_domains' op pairs lists of one parent, but 'second' @request is a root}}
    %0 = genrec.pair_domains %event, %request : (!event, !request) -> !pair
  }
}

// -----

// They have one parent.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!tag = !genrec.domain<@tag>
!pair = !genrec.domain<@pair>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.domain @pair parent @event kind derived
  genrec.program @main {
    %request, %event, %tag = genrec.batch : !request, !event, !tag
    // expected-error@+1 {{'genrec.pair_domains' op pairs lists of one parent, but 'first' @event has parent @request and 'second' @tag has parent @event}}
    %0 = genrec.pair_domains %event, %tag : (!event, !tag) -> !pair
  }
}

// -----

// Pairs lie below the first half.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!item = !genrec.domain<@item>
!pair = !genrec.domain<@pair>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @item parent @request {column = "items"}
  genrec.domain @pair parent @item kind derived
  genrec.program @main {
    %request, %event, %item = genrec.batch : !request, !event, !item
    // expected-error@+1 {{'genrec.pair_domains' op makes children of 'first' @event, but 'result' @pair is declared with parent @item}}
    %0 = genrec.pair_domains %event, %item : (!event, !item) -> !pair
  }
}

// -----

// pair_rows goes into pairs.
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%d: !event, %x: !evec) {
  // expected-error@+1 {{'genrec.pair_rows' op brings values into a domain made by genrec.pair_domains, but 'domain' @event is made otherwise}}
  %0 = genrec.pair_rows %x into %d : (!evec, !event) -> !evec
  return
}

// -----

// pair_rows takes rows of the second half.
!event = !genrec.domain<@event>
!item = !genrec.domain<@item>
!pair = !genrec.domain<@pair>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!pvec = tensor<?x8xf32, #genrec.rows<@pair>>
func.func @test(%d: !event, %e: !item, %x: !evec) {
  %p = genrec.pair_domains %d, %e : (!event, !item) -> !pair
  // expected-error@+1 {{'genrec.pair_rows' op 'x' must be rows of @item, of element type i1, i32, i64, f32 or f64 ('second' of the pair_domains op), but is rows of @event, [8] x f32}}
  %0 = genrec.pair_rows %x into %p : (!evec, !pair) -> !pvec
  return
}

// -----

// pair_sum adds f32.
!item = !genrec.domain<@item>
!pid = tensor<?xi64, #genrec.rows<@pair>>
!iid = tensor<?xi64, #genrec.rows<@item>>
func.func @test(%d: !item, %x: !pid) {
  // expected-error@+1 {{'genrec.pair_sum' op 'x' must be rows of a domain, of element type f32, but is rows of @pair, [] x i64}}
  %0 = genrec.pair_sum %x to %d : (!pid, !item) -> !iid
  return
}

// -----

// pair_sum takes pairs.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %request, %event = genrec.batch : !request, !event
    %x = genrec.feature %event "events.x" : (!event) -> !enum
    // expected-error@+1 {{'genrec.pair_sum' op takes rows of a domain made by genrec.pair_domains, but 'x' has rows of @event}}
    %0 = genrec.pair_sum %x to %event : (!enum, !event) -> !enum
  }
}

// -----

// pair_sum leads to the second half.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!item = !genrec.domain<@item>
!pair = !genrec.domain<@pair>
!enum = tensor<?xf32, #genrec.rows<@event>>
!inum = tensor<?xf32, #genrec.rows<@item>>
!pnum = tensor<?xf32, #genrec.rows<@pair>>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @item parent @request {column = "items"}
  genrec.domain @pair parent @event kind derived
  genrec.program @main {
    %request, %event, %item = genrec.batch : !request, !event, !item
    %pair = genrec.pair_domains %event, %item : (!event, !item) -> !pair
    %x = genrec.feature %item "items.x" : (!item) -> !inum
    %beside = genrec.pair_rows %x into %pair : (!inum, !pair) -> !pnum
    // expected-error@+1 {{'genrec.pair_sum' op 'domain' must be @item, 'second' of the pairs @pair, but is @event}}
    %0 = genrec.pair_sum %beside to %event : (!pnum, !event) -> !enum
  }
}

// -----

// tile's rows are count times as long.
!request = !genrec.domain<@request>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!rvec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%d: !request, %x: !evec) {
  // expected-error@+1 {{'genrec.tile' op 'result' must be rows of @request, [24] x f32 ('count' rows of 'x' side by side), but is rows of @request, [8] x f32}}
  %0 = genrec.tile %x to %d {count = 3 : i64} : (!evec, !request) -> !rvec
  return
}

// -----

// tile leads to the parent.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!tag = !genrec.domain<@tag>
!tnum = tensor<?xf32, #genrec.rows<@tag>>
!r2 = tensor<?x2xf32, #genrec.rows<@request>>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %request, %event, %tag = genrec.batch : !request, !event, !tag
    %x = genrec.feature %tag "events.tags.x" : (!tag) -> !tnum
    // expected-error@+1 {{'genrec.tile' op puts lists into the rows of their parent, but @request is not the parent of @tag}}
    %0 = genrec.tile %x to %request {count = 2 : i64} : (!tnum, !request) -> !r2
  }
}

// -----

// tile_grad takes tiled rows.
!event = !genrec.domain<@event>
!rvec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%d: !event, %x: !rvec) {
  // expected-error@+1 {{'genrec.tile_grad' op 'x' must be rows of @request, [16] x f32 ('count' rows of 'result' side by side), but is rows of @request, [8] x f32}}
  %0 = genrec.tile_grad %x into %d {count = 2 : i64} : (!rvec, !event) -> !evec
  return
}
