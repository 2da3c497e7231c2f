// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of values within a list.

// lead takes rows.
!shared8 = tensor<8xf32>
!flags8 = tensor<8xi1>
func.func @test(%x: !shared8) {
  // expected-error@+1 {{'genrec.lead' op 'x' must be rows of a domain, of element type i1, i32, i64, f32 or f64, but is shared [8] x f32}}
  %0, %1 = genrec.lead %x : (!shared8) -> (!shared8, !flags8)
  return
}

// -----

// lag takes no strings.
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !text) {
  // expected-error@+1 {{'genrec.lag' op 'x' must be rows of a domain, of element type i1, i32, i64, f32 or f64, but is rows of @request, [] x !genrec.string}}
  %0, %1 = genrec.lag %x : (!text) -> (!text, !flag)
  return
}

// -----

// lead keeps the type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.lead' op 'result' must be rows of @request, [8] x f32 (the type of 'x'), but is rows of @request, [] x f32}}
  %0, %1 = genrec.lead %x : (!vec) -> (!num, !flag)
  return
}

// -----

// lag says which are valid.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{'genrec.lag' op 'valid' must be rows of @request, [] x i1 (whether there is such a row), but is rows of @request, [] x i64}}
  %0, %1 = genrec.lag %x : (!vec) -> (!vec, !id)
  return
}

// -----

// lag goes back at least a row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !vec) {
  // expected-error@+1 {{custom op 'genrec.lag' 'genrec.lag' op attribute 'distance' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0, %1 = genrec.lag %x {distance = 0 : i64} : (!vec) -> (!vec, !flag)
  return
}

// -----

// position gives i64.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%d: !request) {
  // expected-error@+1 {{'genrec.position' op 'result' must be rows of @request, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.position %d : (!request) -> !num
  return
}

// -----

// length gives i64.
!event = !genrec.domain<@event>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.length' op 'result' must be rows of a domain, [] x i64, but is rows of @request, [] x f32}}
  %0 = genrec.length %d : (!event) -> !num
  return
}

// -----

!event = !genrec.domain<@event>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.length' op has 1 results for 2 lists}}
  %0 = genrec.length %d, %d : (!event, !event) -> !id
  return
}

// -----

!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!tag = !genrec.domain<@tag>
!id = tensor<?xi64, #genrec.rows<@request>>
!eid = tensor<?xi64, #genrec.rows<@event>>
genrec.model @test {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %t, %e, %r = genrec.batch : !tag, !event, !request
    // expected-error@+1 {{'genrec.length' op counts the rows of lists of @request and of @event}}
    %0:2 = genrec.length %e, %t : (!event, !tag) -> (!id, !eid)
  }
}

// -----

// length counts rows of lists.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.length' op counts the rows of lists, but 'children' @request is a root}}
    %0 = genrec.length %r : (!request) -> !id
  }
}

// -----

// length has rows of the parent.
!tag = !genrec.domain<@tag>
!event = !genrec.domain<@event>
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %t, %e, %r = genrec.batch : !tag, !event, !request
    // expected-error@+1 {{'genrec.length' op 'result' must be rows of @event, [] x i64 (the parent of @tag), but is rows of @request, [] x i64}}
    %0 = genrec.length %t : (!tag) -> !id
  }
}

// -----

// gather_rows takes no strings.
!ctext = tensor<?x!genrec.string, #genrec.rows<@items>>
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !ctext, %i: !id) {
  // expected-error@+1 {{'genrec.gather_rows' op 'source' must be rows of a domain, of element type i1, i32, i64, f32 or f64, but is rows of @items, [] x !genrec.string}}
  %0 = genrec.gather_rows %x at %i : (!ctext, !id) -> !text
  return
}

// -----

// gather_rows of vectors takes one index per row.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!ids = tensor<?x4xi64, #genrec.rows<@request>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !cvec, %i: !ids) {
  // expected-error@+1 {{'genrec.gather_rows' op 'index' must be rows of a domain, [] x i64 ('source' has a row of several elements), but is rows of @request, [4] x i64}}
  %0 = genrec.gather_rows %x at %i : (!cvec, !ids) -> !vec
  return
}

// -----

// gather_rows of vectors gives a row per index.
!cvec = tensor<?x8xf32, #genrec.rows<@items>>
!id = tensor<?xi64, #genrec.rows<@request>>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !cvec, %i: !id) {
  // expected-error@+1 {{'genrec.gather_rows' op 'result' must be rows of @request, [8] x f32 (a row of 'source' per row of 'index'), but is rows of @request, [] x f32}}
  %0 = genrec.gather_rows %x at %i : (!cvec, !id) -> !num
  return
}

// -----

// gather_rows takes an i64 index.
!cid = tensor<?xi64, #genrec.rows<@items>>
!num = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !cid, %i: !num) {
  // expected-error@+1 {{'genrec.gather_rows' op 'index' must be rows of a domain, of element type i64, but is rows of @request, [] x f32}}
  %0 = genrec.gather_rows %x at %i : (!cid, !num) -> !id
  return
}

// -----

// gather_rows gives an element per index.
!cid = tensor<?xi64, #genrec.rows<@items>>
!ids = tensor<?x8xi64, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !cid, %i: !ids) {
  // expected-error@+1 {{'genrec.gather_rows' op 'result' must be rows of @request, [8] x i64 (an element of 'source' per element of 'index'), but is rows of @request, [] x i64}}
  %0 = genrec.gather_rows %x at %i : (!cid, !ids) -> !id
  return
}
