// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of values that go into and out of derived domains.

// derive goes into a truncated domain.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!recent = !genrec.domain<@recent>
!rvec = tensor<?x8xf32, #genrec.rows<@recent>>
func.func @test(%x: !evec, %d: !recent) {
  // expected-error@+1 {{'genrec.derive' op brings values into a domain made by genrec.truncate or genrec.pad, but 'domain' @recent is made otherwise}}
  %0 = genrec.derive %x into %d : (!evec, !recent) -> !rvec
  return
}

// -----

// derive takes rows of the source.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
!rvec = tensor<?x8xf32, #genrec.rows<@recent>>
func.func @test(%x: !vec, %e: !event) {
  %d = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
  // expected-error@+1 {{'genrec.derive' op 'x' must be rows of @event (the source of the truncate op), but is rows of @request, [8] x f32}}
  %0 = genrec.derive %x into %d : (!vec, !recent) -> !rvec
  return
}

// -----

// derive keeps the row.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
func.func @test(%x: !evec, %e: !event) {
  %d = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
  // expected-error@+1 {{'genrec.derive' op 'result' must be rows of @recent, [8] x f32 (x's rows in another domain), but is rows of @recent, [4] x f32}}
  %0 = genrec.derive %x into %d : (!evec, !recent) -> tensor<?x4xf32, #genrec.rows<@recent>>
  return
}

// -----

// derive_grad takes rows.
!shared8 = tensor<8xf32>
!event = !genrec.domain<@event>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
func.func @test(%x: !shared8, %d: !event) {
  // expected-error@+1 {{'genrec.derive_grad' op 'x' must be rows of a domain, but is shared [8] x f32}}
  %0 = genrec.derive_grad %x into %d : (!shared8, !event) -> !evec
  return
}

// -----

// derive_grad keeps the row.
!rvec = tensor<?x8xf32, #genrec.rows<@recent>>
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
func.func @test(%x: !rvec, %d: !event) {
  // expected-error@+1 {{'genrec.derive_grad' op 'result' must be rows of @event, [8] x f32 (x's rows in another domain), but is rows of @event, [] x f32}}
  %0 = genrec.derive_grad %x into %d : (!rvec, !event) -> !enum
  return
}

// -----

// derive_grad leaves a truncated domain.
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
    // expected-error@+1 {{'genrec.derive_grad' op takes rows of a domain made by genrec.truncate or genrec.pad, but 'x' has rows of @request}}
    %0 = genrec.derive_grad %x into %e : (!num, !event) -> !enum
  }
}

// -----

// derive_grad goes back to the source.
!event = !genrec.domain<@event>
!enum = tensor<?xf32, #genrec.rows<@event>>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @recent parent @request kind derived
  genrec.domain @other parent @request {column = "o"}
  genrec.program @main {
    %e, %o = genrec.batch : !event, !genrec.domain<@other>
    %x = genrec.feature %e "x" : (!event) -> !enum
    %r = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
    %y = genrec.derive %x into %r : (!enum, !recent) -> tensor<?xf32, #genrec.rows<@recent>>
    // expected-error@+1 {{'genrec.derive_grad' op 'domain' must be @event, the source that @recent was made of, but is @other}}
    %0 = genrec.derive_grad %y into %o : (tensor<?xf32, #genrec.rows<@recent>>, !genrec.domain<@other>) -> tensor<?xf32, #genrec.rows<@other>>
  }
}

// -----

// concat_rows goes into a joined domain.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!seq = !genrec.domain<@seq>
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
func.func @test(%x: !evec, %d: !seq) {
  // expected-error@+1 {{'genrec.concat_rows' op joins values into a domain made by genrec.concat_domains, but 'domain' @seq is made otherwise}}
  %0 = genrec.concat_rows %x into %d : (!evec, !seq) -> !svec
  return
}

// -----

// concat_rows has a part per source.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!seq = !genrec.domain<@seq>
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
func.func @test(%x: !evec, %r: !request, %e: !event) {
  %d = genrec.concat_domains %r, %e : (!request, !event) -> !seq
  // expected-error@+1 {{'genrec.concat_rows' op needs a part per source of @seq, 2, but has 1}}
  %0 = genrec.concat_rows %x into %d : (!evec, !seq) -> !svec
  return
}

// -----

// concat_rows takes rows of each source.
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!seq = !genrec.domain<@seq>
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
func.func @test(%x: !evec, %r: !request, %e: !event) {
  %d = genrec.concat_domains %r, %e : (!request, !event) -> !seq
  // expected-error@+1 {{'genrec.concat_rows' op 'part 0' must be rows of @request, [8] x f32 (source 0 of the concat_domains op, part 0's row), but is rows of @event, [8] x f32}}
  %0 = genrec.concat_rows %x, %x into %d : (!evec, !evec, !seq) -> !svec
  return
}

// -----

// concat_rows takes rows of one shape.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!seq = !genrec.domain<@seq>
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
func.func @test(%x: !vec, %y: !enum, %r: !request, %e: !event) {
  %d = genrec.concat_domains %r, %e : (!request, !event) -> !seq
  // expected-error@+1 {{'genrec.concat_rows' op 'part 1' must be rows of @event, [8] x f32 (source 1 of the concat_domains op, part 0's row), but is rows of @event, [] x f32}}
  %0 = genrec.concat_rows %x, %y into %d : (!vec, !enum, !seq) -> !svec
  return
}

// -----

// concat_rows takes one element type.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec64 = tensor<?x8xf64, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!seq = !genrec.domain<@seq>
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
func.func @test(%x: !vec, %y: !evec64, %r: !request, %e: !event) {
  %d = genrec.concat_domains %r, %e : (!request, !event) -> !seq
  // expected-error@+1 {{'genrec.concat_rows' op 'part 1' must be rows of @event, [8] x f32 (source 1 of the concat_domains op, part 0's row), but is rows of @event, [8] x f64}}
  %0 = genrec.concat_rows %x, %y into %d : (!vec, !evec64, !seq) -> !svec
  return
}

// -----

// concat_rows keeps the row.
!vec = tensor<?x8xf32, #genrec.rows<@request>>
!evec = tensor<?x8xf32, #genrec.rows<@event>>
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!seq = !genrec.domain<@seq>
func.func @test(%x: !vec, %y: !evec, %r: !request, %e: !event) {
  %d = genrec.concat_domains %r, %e : (!request, !event) -> !seq
  // expected-error@+1 {{'genrec.concat_rows' op 'result' must be rows of @seq, [8] x f32 (the parts joined), but is rows of @event, [8] x f32}}
  %0 = genrec.concat_rows %x, %y into %d : (!vec, !evec, !seq) -> !evec
  return
}

// -----

// split_rows leads to the given domain.
!svec = tensor<?x8xf32, #genrec.rows<@seq>>
!event = !genrec.domain<@event>
!vec = tensor<?x8xf32, #genrec.rows<@request>>
func.func @test(%x: !svec, %d: !event) {
  // expected-error@+1 {{'genrec.split_rows' op 'result' must be rows of @event, [8] x f32 (x's rows in another domain), but is rows of @request, [8] x f32}}
  %0 = genrec.split_rows %x part 0 into %d : (!svec, !event) -> !vec
  return
}

// -----

// split_rows leaves a joined domain.
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
    // expected-error@+1 {{'genrec.split_rows' op takes rows of a domain made by genrec.concat_domains, but 'x' has rows of @request}}
    %0 = genrec.split_rows %x part 0 into %e : (!num, !event) -> !enum
  }
}

// -----

// split_rows takes a part that there is.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
!seq = !genrec.domain<@seq>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seq parent @request kind derived
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %r "x" : (!request) -> !num
    %y = genrec.feature %e "y" : (!event) -> !enum
    %s = genrec.concat_domains %r, %e : (!request, !event) -> !seq
    %z = genrec.concat_rows %x, %y into %s : (!num, !enum, !seq) -> tensor<?xf32, #genrec.rows<@seq>>
    // expected-error@+1 {{'genrec.split_rows' op 'part' must be 0 to 1, but is 2}}
    %0 = genrec.split_rows %z part 2 into %e : (tensor<?xf32, #genrec.rows<@seq>>, !event) -> !enum
  }
}

// -----

// split_rows goes back to the source.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!num = tensor<?xf32, #genrec.rows<@request>>
!enum = tensor<?xf32, #genrec.rows<@event>>
!seq = !genrec.domain<@seq>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @seq parent @request kind derived
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    %x = genrec.feature %r "x" : (!request) -> !num
    %y = genrec.feature %e "y" : (!event) -> !enum
    %s = genrec.concat_domains %r, %e : (!request, !event) -> !seq
    %z = genrec.concat_rows %x, %y into %s : (!num, !enum, !seq) -> tensor<?xf32, #genrec.rows<@seq>>
    // expected-error@+1 {{'genrec.split_rows' op 'domain' must be @request, source 0 of @seq, but is @event}}
    %0 = genrec.split_rows %z part 0 into %e : (tensor<?xf32, #genrec.rows<@seq>>, !event) -> !enum
  }
}
