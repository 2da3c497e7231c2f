// RUN: genrec-opt %s --split-input-file --verify-diagnostics

// The rules of a program as a whole.

// A program holds ops of this dialect.
genrec.model @m {
  // expected-error@+1 {{'genrec.program' op holds ops of genrec and of its plugins only, but has 'arith.constant'}}
  genrec.program @main {
    %0 = arith.constant 1 : i64
  }
}

// -----

// Domains are declared.
!event = !genrec.domain<@event>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.batch' op makes rows of @event, which the model does not declare}}
    %e = genrec.batch : !event
  }
}

// -----

// Kinds fit the op.
!items = !genrec.domain<@items>
genrec.model @m {
  genrec.domain @request
  // expected-note@+1 {{domain declared here}}
  genrec.domain @items kind catalogue
  genrec.program @main {
    // expected-error@+1 {{'genrec.batch' op makes domains of kind data, but @items is of kind catalogue}}
    %e = genrec.batch : !items
  }
}

// -----

// Kinds fit the op.
!request = !genrec.domain<@request>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.catalogue' op makes domains of kind catalogue, but @request is of kind data}}
    %e = genrec.catalogue : !request
  }
}

// -----

// Kinds fit the op.
!event = !genrec.domain<@event>
!request = !genrec.domain<@request>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %e = genrec.batch : !event
    // expected-error@+1 {{'genrec.truncate' op makes domains of kind derived, but @request is of kind data}}
    %r = genrec.truncate %e {count = 1 : i64} : (!event) -> !request
  }
}

// -----

// Kinds fit the op.
!request = !genrec.domain<@request>
genrec.model @m {
  // expected-note@+1 {{domain declared here}}
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.fixed_rows' op makes domains of kind step, but @request is of kind data}}
    %0 = genrec.fixed_rows 1 : !request
  }
}

// -----

// A program has one value of a domain.
!request = !genrec.domain<@request>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-note@+1 {{made first here}}
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.batch' op makes rows of @request, which the program has already; a program holds one value of each domain}}
    %s = genrec.batch : !request
  }
}

// -----

// A derived domain is made by one op.
!event = !genrec.domain<@event>
!recent = !genrec.domain<@recent>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @recent parent @request kind derived
  genrec.program @main {
    %e = genrec.batch : !event
    // expected-note@+1 {{made first here}}
    %r = genrec.truncate %e {count = 1 : i64} : (!event) -> !recent
    // expected-error@+1 {{'genrec.truncate' op makes rows of @recent, which the program has already; a program holds one value of each domain}}
    %s = genrec.truncate %e {count = 2 : i64} : (!event) -> !recent
  }
}

// -----

// Rows belong to a domain of the program.
!request = !genrec.domain<@request>
!eid = tensor<?xi64, #genrec.rows<@event>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r = genrec.batch : !request
    // expected-error@+1 {{'genrec.length' op has rows of @event, but the program has no value of that domain}}
    %0 = "genrec.length"(%r) : (!request) -> !eid
  }
}

// -----

// Rows belong to a declared domain.
!request = !genrec.domain<@request>
!event = !genrec.domain<@event>
!cid = tensor<?xi64, #genrec.rows<@items>>
genrec.model @m {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.program @main {
    %r, %e = genrec.batch : !request, !event
    // expected-error@+1 {{'genrec.length' op has rows of @items, which the model does not declare}}
    %0 = genrec.length %e : (!event) -> !cid
  }
}

// -----

// Shared tensors are static.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op result 0 is shared, so it must have a static shape of rank 0 to 2, but is tensor<?xf32>}}
    %0 = genrec.param @p : tensor<?xf32>
  }
}

// -----

// Shared tensors are at most matrices.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op result 0 is shared, so it must have a static shape of rank 0 to 2, but is tensor<2x2x2xf32>}}
    %0 = genrec.param @p : tensor<2x2x2xf32>
  }
}

// -----

// Encodings are those of rows.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    // expected-error@+1 {{'genrec.param' op result 0 has an encoding that is not #genrec.rows: tensor<2xf32, "sparse">}}
    %0 = genrec.param @p : tensor<2xf32, "sparse">
  }
}

// -----

// Losses have names of their own.
!request = !genrec.domain<@request>
!num = tensor<?xf32, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !num
    // expected-note@+1 {{the first is here}}
    genrec.loss "a" %x : !num
    // expected-error@+1 {{'genrec.loss' op is a second loss named "a"}}
    genrec.loss "a" %x : !num
  }
}

// -----

// Reported losses have names of their own.
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %x = genrec.constant dense<1.0> : tensor<f32>
    // expected-note@+1 {{the first is here}}
    genrec.report_loss "a" %x, %x : tensor<f32>, tensor<f32>
    // expected-error@+1 {{'genrec.report_loss' op is a second reported loss named "a"}}
    genrec.report_loss "a" %x, %x : tensor<f32>, tensor<f32>
  }
}

// -----

// Metrics have names of their own.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-note@+1 {{the first is here}}
    genrec.metric ranking "a" %x : !id
    // expected-error@+1 {{'genrec.metric' op is a second metric named "a"}}
    genrec.metric ranking "a" %x : !id
  }
}

// -----

// Outputs have names of their own.
!request = !genrec.domain<@request>
!id = tensor<?xi64, #genrec.rows<@request>>
genrec.model @m {
  genrec.domain @request
  genrec.program @main {
    %r = genrec.batch : !request
    %x = genrec.feature %r "x" : (!request) -> !id
    // expected-note@+1 {{the first is here}}
    genrec.output "a" %x : !id
    // expected-error@+1 {{'genrec.output' op is a second output named "a"}}
    genrec.output "a" %x : !id
  }
}
