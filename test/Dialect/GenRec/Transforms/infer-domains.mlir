// RUN: genrec-opt %s --genrec-infer-domains --split-input-file --verify-diagnostics | FileCheck %s
// RUN: genrec-opt %s --genrec-infer-domains --genrec-pass-statistics --split-input-file --verify-diagnostics 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// The batch gets the ancestors of what it yields and loses what nothing needs.

// CHECK-LABEL: genrec.model @tree
// CHECK: %[[B:.*]]:3 = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>, !genrec.domain<@tag>
// CHECK: genrec.feature %[[B]]#2 "events.tags"
// COUNT: genrec-infer-domains domains-added: 2
// COUNT: genrec-infer-domains domains-dropped: 1
genrec.model @tree {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.domain @impression parent @user {column = "impressions"}
  genrec.program @main {
    %tag, %impression = genrec.batch : !genrec.domain<@tag>, !genrec.domain<@impression>
    %x = genrec.feature %tag "events.tags" : (!genrec.domain<@tag>) -> tensor<?xf32, #genrec.rows<@tag>>
    genrec.output "x" %x : tensor<?xf32, #genrec.rows<@tag>>
  }
}

// -----

// Ids that reach tables unchanged are bounded by the smallest id_bits.

// COUNT: genrec-infer-domains features-bounded: 1
// CHECK-LABEL: genrec.model @bounds
// CHECK: genrec.feature %{{.*}} "events.item" {id_bits = 40 : i64}
// CHECK: genrec.feature %{{.*}} "events.time" :
genrec.model @bounds {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @recent parent @user {kind = #genrec<domain_kind derived>}
  genrec.table @wide dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @narrow dim 4 {id_bits = 40 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %recent = genrec.truncate %event {count = 10 : i64} : (!genrec.domain<@event>) -> !genrec.domain<@recent>
    %item = genrec.feature %event "events.item" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %time = genrec.feature %event "events.time" : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %next, %valid = genrec.lead %item : (tensor<?xi64, #genrec.rows<@event>>) -> (tensor<?xi64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>)
    %ids = genrec.derive %next into %recent : (tensor<?xi64, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xi64, #genrec.rows<@recent>>
    %x = genrec.lookup %ids in @narrow : (tensor<?xi64, #genrec.rows<@recent>>) -> tensor<?x4xf32, #genrec.rows<@recent>>
    %y = genrec.lookup %item in @wide : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %bucket = genrec.mod %time {divisor = 24 : i64} : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?xi64, #genrec.rows<@event>>
    %z = genrec.lookup %bucket in @narrow : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    genrec.output "x" %x : tensor<?x4xf32, #genrec.rows<@recent>>
    %yz = genrec.add %y, %z : (tensor<?x4xf32, #genrec.rows<@event>>, tensor<?x4xf32, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %yr = genrec.derive %yz into %recent : (tensor<?x4xf32, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?x4xf32, #genrec.rows<@recent>>
    genrec.output "y" %yr : tensor<?x4xf32, #genrec.rows<@recent>>
  }
}

// -----

genrec.model @too_many_bits {
  genrec.domain @user
  genrec.table @small dim 4 {id_bits = 16 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %name = genrec.feature %user "name" : (!genrec.domain<@user>) -> tensor<?x!genrec.string, #genrec.rows<@user>>
    // expected-note @+1 {{the ids are made here}}
    %ids = genrec.hash xxh3 %name {bits = 17 : i64} : (tensor<?x!genrec.string, #genrec.rows<@user>>) -> tensor<?xi64, #genrec.rows<@user>>
    // expected-error @+1 {{'genrec.lookup' op reads table 'small' of id_bits = 16 by ids of 17 bits; make fewer bits or raise id_bits}}
    %x = genrec.lookup %ids in @small : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

genrec.model @too_large_divisor {
  genrec.domain @user
  genrec.table @small dim 4 {id_bits = 16 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    // expected-note @+1 {{the ids are made here}}
    %ids = genrec.mod %id {divisor = 65537 : i64} : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?xi64, #genrec.rows<@user>>
    // expected-error @+1 {{'genrec.lookup' op reads table 'small' of id_bits = 16 by ids of 17 bits; make fewer bits or raise id_bits}}
    %x = genrec.lookup %ids in @small : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    genrec.output "x" %x : tensor<?x4xf32, #genrec.rows<@user>>
  }
}
