// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of domain instances.

// A batch gives a domain once.
!request = !genrec.domain<@request>
func.func @test() {
  // expected-error@+1 {{'genrec.batch' op gives @request twice}}
  %0, %1 = genrec.batch : !request, !request
  return
}

// -----

// truncate makes a new domain.
!event = !genrec.domain<@event>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.truncate' op must derive a domain of its own, but 'source' and 'result' are both @event}}
  %0 = genrec.truncate %d {count = 1 : i64} : (!event) -> !event
  return
}

// -----

// truncate keeps at least a row.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
func.func @test(%d: !event) {
  // expected-error@+1 {{custom op 'genrec.truncate' 'genrec.truncate' op attribute 'count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = genrec.truncate %d {count = 0 : i64} : (!event) -> !recent
  return
}

// -----

// truncate keeps as many rows as a batch may have.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.truncate' op 'count' must be at most 2147483647, but is 2147483648}}
  %0 = genrec.truncate %d {count = 2147483648 : i64} : (!event) -> !recent
  return
}

// -----

// truncate cuts lists.
!request = !genrec.domain<@request>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @recent parent @request kind derived
  genrec.program @main {
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.truncate' op needs lists to cut, but 'source' @request is a root}}
    %0 = genrec.truncate %r {count = 1 : i64} : (!request) -> !recent
  }
}

// -----

// truncate keeps the parent.
!tag = !genrec.domain<@tag>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.domain @recent parent @request kind derived
  genrec.program @main {
    %t = genrec.batch : !tag
    // expected-error@+1 {{'genrec.truncate' op keeps the parent of 'source' @tag, @event, but 'result' @recent is declared with parent @request}}
    %0 = genrec.truncate %t {count = 1 : i64} : (!tag) -> !recent
  }
}

// -----

// concat_domains joins something.
!seq = !genrec.domain<@seq>
func.func @test() {
  // expected-error@+1 {{'genrec.concat_domains' op needs at least one source}}
  %0 = "genrec.concat_domains"() : () -> !seq
  return
}

// -----

// concat_domains makes a new domain.
!event = !genrec.domain<@event>
func.func @test(%d: !event) {
  // expected-error@+1 {{'genrec.concat_domains' op must derive a domain of its own, but 'result' is the source @event}}
  %0 = genrec.concat_domains %d : (!event) -> !event
  return
}

// -----

// concat_domains joins children of one parent.
!tag = !genrec.domain<@tag>
!seq = !genrec.domain<@seq>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.domain @seq parent @request kind derived
  genrec.program @main {
    %t = genrec.batch : !tag
    // expected-error@+1 {{'genrec.concat_domains' op joins children of @request, the parent of 'result' @seq, and @request itself, but source @tag has parent @event}}
    %0 = genrec.concat_domains %t : (!tag) -> !seq
  }
}

// -----

// concat_domains does not join roots.
!items = !genrec.domain<@items>
!seq = !genrec.domain<@seq>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @items kind catalogue
  genrec.domain @seq parent @request kind derived
  genrec.program @main {
    %t = genrec.catalogue : !items
    // expected-error@+1 {{'genrec.concat_domains' op joins children of @request, the parent of 'result' @seq, and @request itself, but source @items is another root}}
    %0 = genrec.concat_domains %t : (!items) -> !seq
  }
}

// -----

// A catalogue gives rows.
func.func @test() {
  // expected-error@+1 {{'genrec.catalogue' op gives the rows of a catalogue, but has no result}}
  "genrec.catalogue"() : () -> ()
  return
}

// -----

// A catalogue gives a list once.
!items = !genrec.domain<@items>
!tag = !genrec.domain<@tag>
func.func @test() {
  // expected-error@+1 {{'genrec.catalogue' op gives @tag twice}}
  %0, %1, %2 = genrec.catalogue : !items, !tag, !tag
  return
}

// -----

// The lists of a catalogue lie below it.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!items = !genrec.domain<@items>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.catalogue' op gives the lists of @items after it, but @event does not lie below}}
    %i, %e = genrec.catalogue : !items, !event
  }
}

// -----

// The rows of a catalogue come first.
!items = !genrec.domain<@items>
!tag = !genrec.domain<@tag>
genrec.model @m {
  genrec.domain @items kind catalogue
  // expected-note@+1 {{domain declared here}}
  genrec.domain @tag parent @items {column = "tags"}
  genrec.program @main {
    // expected-error@+1 {{'genrec.catalogue' op makes domains of kind catalogue, but @tag is of kind data}}
    %t, %i = genrec.catalogue : !tag, !items
  }
}

// -----

// A batch holds no list of a catalogue.
!request = !genrec.domain<@request>
!items = !genrec.domain<@items>
!tag = !genrec.domain<@tag>
genrec.model @m {
  genrec.domain @request
  genrec.domain @items kind catalogue
  genrec.domain @tag parent @items {column = "tags"}
  genrec.program @main {
    // expected-error@+1 {{'genrec.batch' op gives rows of the dataset, but @tag is of a catalogue; it is a result of genrec.catalogue}}
    %r, %t = genrec.batch : !request, !tag
    %i = genrec.catalogue : !items
  }
}
