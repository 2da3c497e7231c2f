// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of moves up and down the domain tree.

// fanout takes rows.
!shared8 = tensor<8xf32>
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !shared8, %d: !event) {
  // expected-error@+1 {{'genrec.fanout' op 'x' must be rows of a domain, but is shared [8] x f32}}
  %0 = genrec.fanout %x to %d : (!shared8, !event) -> !evec
  return
}

// -----

// fanout keeps the row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!event = !genrec.domain<@event>
!eid = tensor<?xi64, #genrec.rows<@event>>
func.func @test(%x: !vec, %d: !event) {
  // expected-error@+1 {{'genrec.fanout' op 'result' must be rows of @event, [8] x f32 (x's rows in another domain), but is rows of @event, [] x i64}}
  %0 = genrec.fanout %x to %d : (!vec, !event) -> !eid
  return
}

// -----

// fanout leads down.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %e "x" : (!event) -> !enum
    // expected-error@+1 {{'genrec.fanout' op copies rows to a descendant, but 'domain' @request does not lie below @event, the domain of 'x'; reduce to an ancestor with genrec.pool}}
    %0 = genrec.fanout %x to %r : (!enum, !request) -> !num
  }
}

// -----

// fanout leads to descendants.
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @other parent @request {column = "o"}
  genrec.program @main {
    %e, %o = genrec.batch : !event, !genrec.domain<@other>
    %x = genrec.feature %e "x" : (!event) -> !enum
    // expected-error@+1 {{'genrec.fanout' op copies rows to a descendant, but 'domain' @other does not lie below @event, the domain of 'x'}}
    %0 = genrec.fanout %x to %o : (!enum, !genrec.domain<@other>) -> tensor<?xf32, #genrec.rows<@other>>
  }
}

// -----

// mean takes floats.
!eid = tensor<?xi64, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
func.func @test(%x: !eid, %d: !request) {
  // expected-error@+1 {{'genrec.pool' op 'x' must be rows of a domain, of element type f32 or f64 (kind mean), but is rows of @event, [] x i64}}
  %0 = genrec.pool mean %x to %d : (!eid, !request) -> !id
  return
}

// -----

// sum takes numbers.
!eflag = tensor<?xi1, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!flag = tensor<?xi1, #genrec.rows<@request>>
func.func @test(%x: !eflag, %d: !request) {
  // expected-error@+1 {{'genrec.pool' op 'x' must be rows of a domain, of element type i32, i64, f32 or f64 (kind sum), but is rows of @event, [] x i1}}
  %0 = genrec.pool sum %x to %d : (!eflag, !request) -> !flag
  return
}

// -----

// first takes no strings.
!etext = tensor<?x!genrec.string, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!text = tensor<?x!genrec.string, #genrec.rows<@request>>
func.func @test(%x: !etext, %d: !request) {
  // expected-error@+1 {{'genrec.pool' op 'x' must be rows of a domain, of element type i1, i32, i64, f32 or f64 (kind first), but is rows of @event, [] x !genrec.string}}
  %0 = genrec.pool first %x to %d : (!etext, !request) -> !text
  return
}

// -----

// pool keeps the row.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
func.func @test(%x: !evec, %d: !request) {
  // expected-error@+1 {{'genrec.pool' op 'result' must be rows of @request, [8] x f32 (x's rows in another domain), but is rows of @request, [] x f32}}
  %0 = genrec.pool sum %x to %d : (!evec, !request) -> !num
  return
}

// -----

// pool by sum leads up.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %r "x" : (!request) -> !num
    // expected-error@+1 {{'genrec.pool' op pools by sum into an ancestor of @request, which @event is not}}
    %0 = genrec.pool sum %x to %e : (!num, !event) -> !enum
  }
}

// -----

// Other pools lead to the parent.
!request = !genrec.domain<@request>
!tag = !genrec.domain<@tag>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %r, %t = genrec.batch : !request, !tag
    %x = genrec.feature %t "x" : (!tag) -> tensor<?xf32, #genrec.rows<@tag>>
    // expected-error@+1 {{'genrec.pool' op pools by max into the parent of @tag, which @request is not}}
    %0 = genrec.pool max %x to %r : (tensor<?xf32, #genrec.rows<@tag>>, !request) -> !num
  }
}

// -----

// sum needs no pool_grad.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!request = !genrec.domain<@request>
func.func @test(%x: !evec, %g: !vec, %d: !request) {
  // expected-error@+1 {{'genrec.pool_grad' op is for kinds max, first and last; sum needs no record of the chosen row}}
  %0 = genrec.pool_grad sum %x, %g to %d : (!evec, !vec, !request) -> !evec
  return
}

// -----

// pool_grad takes floats.
!eid = tensor<?xi64, #genrec.rows<@event>>
!id = tensor<?xi64, #genrec.rows<@request>>
!request = !genrec.domain<@request>
func.func @test(%x: !eid, %g: !id, %d: !request) {
  // expected-error@+1 {{'genrec.pool_grad' op 'x' must be rows of a domain, of element type f32 or f64, but is rows of @event, [] x i64}}
  %0 = genrec.pool_grad max %x, %g to %d : (!eid, !id, !request) -> !eid
  return
}

// -----

// pool_grad takes the gradient of the pooled rows.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
func.func @test(%x: !evec, %g: !evec, %d: !request) {
  // expected-error@+1 {{'genrec.pool_grad' op 'gradient' must be rows of @request, [8] x f32 (the pooled value's rows), but is rows of @event, [8] x f32}}
  %0 = genrec.pool_grad max %x, %g to %d : (!evec, !evec, !request) -> !evec
  return
}

// -----

// pool_grad gives the type of x.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!request = !genrec.domain<@request>
func.func @test(%x: !evec, %g: !vec, %d: !request) {
  // expected-error@+1 {{'genrec.pool_grad' op 'result' must be rows of @event, [8] x f32 (the type of 'x'), but is rows of @request, [8] x f32}}
  %0 = genrec.pool_grad max %x, %g to %d : (!evec, !vec, !request) -> !vec
  return
}

// -----

// pool_grad is of a pool that there is.
!request = !genrec.domain<@request>
!tag = !genrec.domain<@tag>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.program @main {
    %r, %t = genrec.batch : !request, !tag
    %x = genrec.feature %t "x" : (!tag) -> tensor<?xf32, #genrec.rows<@tag>>
    %g = genrec.feature %r "g" : (!request) -> !num
    // expected-error@+1 {{'genrec.pool_grad' op pools by last into the parent of @tag, which @request is not}}
    %0 = genrec.pool_grad last %x, %g to %r : (tensor<?xf32, #genrec.rows<@tag>>, !num, !request) -> tensor<?xf32, #genrec.rows<@tag>>
  }
}
