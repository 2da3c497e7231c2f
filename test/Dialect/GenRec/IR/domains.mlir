// RUN: genrec-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: genrec.model @domains
genrec.model @domains {
  genrec.domain @request
  genrec.domain @event parent @request {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.domain @recent parent @request kind derived
  genrec.domain @first parent @request kind derived
  genrec.domain @twice parent @request kind derived
  genrec.domain @items kind catalogue
  genrec.program @main {
    // CHECK: %[[DATA:.*]]:3 = genrec.batch : !genrec.domain<@request>, !genrec.domain<@event>, !genrec.domain<@tag>
    %request, %event, %tag = genrec.batch
        : !genrec.domain<@request>, !genrec.domain<@event>, !genrec.domain<@tag>
    // CHECK: genrec.catalogue : !genrec.domain<@items>
    %items = genrec.catalogue : !genrec.domain<@items>

    // CHECK: genrec.feature %[[DATA]]#2 "tag" {nullable, padding_id = -1 : i64} : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@tag>>
    %t = genrec.feature %tag "tag" {nullable, padding_id = -1 : i64, id_bits = 0 : i64}
        : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@tag>>
    // CHECK: genrec.feature_valid %[[DATA]]#2 "tag"
    %v = genrec.feature_valid %tag "tag" : (!genrec.domain<@tag>) -> tensor<?xi1, #genrec.rows<@tag>>
    // CHECK: genrec.feature %{{.*}} "name" : (!genrec.domain<@items>) -> tensor<?x!genrec.string, #genrec.rows<@items>>
    %n = genrec.feature %items "name" : (!genrec.domain<@items>) -> tensor<?x!genrec.string, #genrec.rows<@items>>
    %id = genrec.feature %items "id" : (!genrec.domain<@items>) -> tensor<?xi32, #genrec.rows<@items>>
    %x = genrec.feature %event "x" : (!genrec.domain<@event>) -> tensor<?xf64, #genrec.rows<@event>>

    // Default attributes are not printed.
    // CHECK: %[[RECENT:.*]] = genrec.truncate %[[DATA]]#1 {count = 5 : i64} :
    %recent = genrec.truncate %event {count = 5 : i64, keep = #genrec<keep last>}
        : (!genrec.domain<@event>) -> !genrec.domain<@recent>
    // CHECK: genrec.truncate %[[RECENT]] {count = 2 : i64, keep = #genrec<keep first>}
    %first = genrec.truncate %recent {count = 2 : i64, keep = #genrec<keep first>}
        : (!genrec.domain<@recent>) -> !genrec.domain<@first>
    %y = genrec.derive %x into %recent
        : (tensor<?xf64, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xf64, #genrec.rows<@recent>>
    // A derived domain may be cut again.
    // CHECK: %[[Z:.*]] = genrec.derive %{{.*}} into %{{.*}} : (tensor<?xf64, #genrec.rows<@recent>>, !genrec.domain<@first>)
    %z = genrec.derive %y into %first
        : (tensor<?xf64, #genrec.rows<@recent>>, !genrec.domain<@first>) -> tensor<?xf64, #genrec.rows<@first>>
    // CHECK: genrec.derive_grad %[[Z]] into %[[RECENT]]
    %dy = genrec.derive_grad %z into %recent
        : (tensor<?xf64, #genrec.rows<@first>>, !genrec.domain<@recent>) -> tensor<?xf64, #genrec.rows<@recent>>

    // A domain may be joined with itself and with its parent.
    // CHECK: genrec.concat_domains %[[DATA]]#1, %[[DATA]]#0, %[[DATA]]#1
    %twice = genrec.concat_domains %event, %request, %event
        : (!genrec.domain<@event>, !genrec.domain<@request>, !genrec.domain<@event>) -> !genrec.domain<@twice>
    %p = genrec.pool sum %x to %request
        : (tensor<?xf64, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?xf64, #genrec.rows<@request>>
    // CHECK: %[[J:.*]] = genrec.concat_rows %{{.*}}, %{{.*}}, %{{.*}} into
    %j = genrec.concat_rows %x, %p, %x into %twice
        : (tensor<?xf64, #genrec.rows<@event>>, tensor<?xf64, #genrec.rows<@request>>, tensor<?xf64, #genrec.rows<@event>>,
           !genrec.domain<@twice>) -> tensor<?xf64, #genrec.rows<@twice>>
    // CHECK: genrec.split_rows %[[J]] part 2 into %[[DATA]]#1
    %s = genrec.split_rows %j part 2 into %event
        : (tensor<?xf64, #genrec.rows<@twice>>, !genrec.domain<@event>) -> tensor<?xf64, #genrec.rows<@event>>

    // Down and up through several levels.
    // CHECK: %[[F:.*]] = genrec.fanout %{{.*}} to %[[DATA]]#2
    %f = genrec.fanout %p to %tag
        : (tensor<?xf64, #genrec.rows<@request>>, !genrec.domain<@tag>) -> tensor<?xf64, #genrec.rows<@tag>>
    // CHECK: genrec.pool sum %[[F]] to %[[DATA]]#0
    %u = genrec.pool sum %f to %request
        : (tensor<?xf64, #genrec.rows<@tag>>, !genrec.domain<@request>) -> tensor<?xf64, #genrec.rows<@request>>
    // CHECK: genrec.pool last %{{.*}} to %[[DATA]]#1 : (tensor<?xi1, #genrec.rows<@tag>>
    %l = genrec.pool last %v to %event
        : (tensor<?xi1, #genrec.rows<@tag>>, !genrec.domain<@event>) -> tensor<?xi1, #genrec.rows<@event>>
    // CHECK: genrec.pool_grad first
    %g = genrec.pool_grad first %f, %x to %event
        : (tensor<?xf64, #genrec.rows<@tag>>, tensor<?xf64, #genrec.rows<@event>>, !genrec.domain<@event>)
        -> tensor<?xf64, #genrec.rows<@tag>>

    // CHECK: genrec.lead %{{.*}} : (tensor<?xf64
    %next, %has_next = genrec.lead %x {distance = 1 : i64}
        : (tensor<?xf64, #genrec.rows<@event>>) -> (tensor<?xf64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>)
    // CHECK: genrec.lag %{{.*}} {distance = 3 : i64}
    %before, %has_before = genrec.lag %x {distance = 3 : i64}
        : (tensor<?xf64, #genrec.rows<@event>>) -> (tensor<?xf64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>)
    // CHECK: genrec.position %{{.*}} : (!genrec.domain<@twice>)
    %position = genrec.position %twice : (!genrec.domain<@twice>) -> tensor<?xi64, #genrec.rows<@twice>>
    // CHECK: genrec.length %{{.*}} : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@event>>
    %tags = genrec.length %tag : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@event>>
    // CHECK: genrec.gather_rows %{{.*}} at %{{.*}} : (tensor<?xi32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@event>>) -> tensor<?xi32, #genrec.rows<@event>>
    %ids = genrec.gather_rows %id at %tags
        : (tensor<?xi32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@event>>) -> tensor<?xi32, #genrec.rows<@event>>
  }
}

// Outside a program the domain tree is not known, and only what an op itself says is checked.
// CHECK-LABEL: func @outside
func.func @outside(%event: !genrec.domain<@event>, %request: !genrec.domain<@request>,
                   %x: tensor<?xf32, #genrec.rows<@event>>) {
  // CHECK: genrec.truncate
  %a = genrec.truncate %event {count = 5 : i64} : (!genrec.domain<@event>) -> !genrec.domain<@recent>
  // CHECK: genrec.concat_domains
  %b = genrec.concat_domains %event, %request : (!genrec.domain<@event>, !genrec.domain<@request>) -> !genrec.domain<@twice>
  // CHECK: genrec.derive_grad
  %c = genrec.derive_grad %x into %request
      : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
  // CHECK: genrec.split_rows
  %d = genrec.split_rows %x part 0 into %request
      : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
  // CHECK: genrec.fanout
  %e = genrec.fanout %x to %request
      : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
  // CHECK: genrec.pool max
  %f = genrec.pool max %x to %request
      : (tensor<?xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
  // CHECK: genrec.length
  %g = genrec.length %event : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@request>>
  return
}
