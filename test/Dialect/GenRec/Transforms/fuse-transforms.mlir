// RUN: genrec-opt %s --genrec-infer-domains --genrec-merge-tables --genrec-fuse-transforms --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-infer-domains --genrec-merge-tables --genrec-fuse-transforms --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-graph-pipeline --genrec-plan-memory --split-input-file | FileCheck %s --check-prefix=PLAN
// RUN: genrec-opt %s --genrec-graph-pipeline="fuse-transforms=false" --split-input-file | FileCheck %s --check-prefix=OFF

// Chains of one shape are one program; what they differ in are operands. A null has the key -1.

// COUNT: fuse-columns: 10
// COUNT: share-column-program: 3
// COUNT: genrec-fuse-transforms columns: 10
// COUNT: genrec-fuse-transforms launches: 3
// COUNT: genrec-fuse-transforms programs: 7
// COUNT: genrec-fuse-transforms transforms: 6

// OFF-NOT: genrec.transform_columns
// OFF: genrec.merged_keys

!ids = tensor<?xi64, #genrec.rows<@user>>
!rows = tensor<?xf32, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @columns
// CHECK-SAME: "fuse-transforms: @main computes the keys of 5 columns by 3 programs in one launch"
// CHECK-DAG: %[[I:.*]] = genrec.feature %{{.*}} "i"
// CHECK-DAG: %[[J:.*]] = genrec.feature %{{.*}} "j"
// CHECK-DAG: %[[S:.*]] = genrec.feature %{{.*}} "s"
// CHECK-DAG: %[[T:.*]] = genrec.feature %{{.*}} "t"
// CHECK-DAG: %[[N:.*]] = genrec.feature %{{.*}} "n"
// CHECK-DAG: %[[V:.*]] = genrec.feature_valid %{{.*}} "n"
// CHECK-DAG: %[[A:.*]] = genrec.constant dense<100>
// CHECK-DAG: %[[B:.*]] = genrec.constant dense<7>
// CHECK-DAG: %[[E:.*]] = genrec.constant dense<[0.000000e+00, 1.000000e+00]>
// CHECK-DAG: %[[G:.*]] = genrec.constant dense<[5.000000e-01, 9.000000e+00]>
// CHECK: genrec.transform_columns(%[[I]], %[[A]], %{{.*}}, %[[J]], %[[B]], %{{.*}}, %[[S]], %[[E]], %{{.*}}, %[[T]], %[[G]], %{{.*}}, %[[N]], %[[V]]) into(
// CHECK-SAME: programs = array<i64: 0, 0, 1, 1, 2>
// CHECK: ^bb0(%[[ID:.*]]: i64, %[[DIVISOR:.*]]: i64, %[[TAG:.*]]: i64):
// CHECK: %[[H:.*]] = genrec.row_hash xxh3 %[[ID]]
// CHECK: arith.remsi %[[H]], %[[DIVISOR]]
// CHECK: %[[KEY:.*]] = arith.ori %{{.*}}, %[[TAG]]
// CHECK: genrec.row_yield %[[KEY]]
// CHECK: ^bb0(%[[F:.*]]: f32, %[[EDGES:.*]]: tensor<2xf64>, %{{.*}}: i64):
// CHECK: genrec.row_search %[[F]] in %[[EDGES]]
// CHECK: ^bb0(%[[M:.*]]: i64, %[[IS:.*]]: i1):
// CHECK: %[[K:.*]] = arith.ori %[[M]]
// CHECK: %[[NONE:.*]] = arith.constant -1
// CHECK: arith.select %[[IS]], %[[K]], %[[NONE]]
// CHECK-NOT: genrec.merged_keys
// CHECK-NOT: genrec.hash
// CHECK-NOT: genrec.mod
// CHECK-NOT: genrec.bucketize

// The only buffers of ids are those of the keys.
// PLAN: genrec.program
// PLAN-NOT: name = "hash
// PLAN-NOT: name = "mod
// PLAN-NOT: name = "bucketize
// PLAN: name = "merged_4_keys_offsets"
genrec.model @columns {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @c dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @d dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @e dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %j = genrec.feature %user "j" : (!genrec.domain<@user>) -> !ids
    %s = genrec.feature %user "s" : (!genrec.domain<@user>) -> !rows
    %t = genrec.feature %user "t" : (!genrec.domain<@user>) -> !rows
    %n = genrec.feature %user "n" {nullable} : (!genrec.domain<@user>) -> !ids
    %v = genrec.feature_valid %user "n" : (!genrec.domain<@user>) -> tensor<?xi1, #genrec.rows<@user>>
    %hi = genrec.hash xxh3 %i {bits = 63 : i64, seed = 0 : i64} : (!ids) -> !ids
    %mi = genrec.mod %hi {divisor = 100 : i64} : (!ids) -> !ids
    %hj = genrec.hash xxh3 %j {bits = 63 : i64, seed = 0 : i64} : (!ids) -> !ids
    %mj = genrec.mod %hj {divisor = 7 : i64} : (!ids) -> !ids
    %bs = genrec.bucketize %s {edges = array<f64: 0.0, 1.0>} : (!rows) -> !ids
    %bt = genrec.bucketize %t {edges = array<f64: 0.5, 9.0>} : (!rows) -> !ids
    %xa = genrec.lookup %mi in @a : (!ids) -> !x
    %xb = genrec.lookup %mj in @b : (!ids) -> !x
    %xc = genrec.lookup %bs in @c : (!ids) -> !x
    %xd = genrec.lookup %bt in @d : (!ids) -> !x
    %xe = genrec.lookup %n valid %v in @e : (!ids, tensor<?xi1, #genrec.rows<@user>>) -> !x
    %y = genrec.concat_columns %xa, %xb, %xc, %xd, %xe : (!x, !x, !x, !x, !x) -> tensor<?x20xf32, #genrec.rows<@user>>
    %z = genrec.row_reduce sum %y : (tensor<?x20xf32, #genrec.rows<@user>>) -> !rows
    genrec.loss "z" %z : !rows
  }
}

// -----

// Ids that may not fit are left to merged_keys, which checks them.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @unbounded
// CHECK-SAME: "fuse-transforms: keys of 'merged_4' are made and checked apart: the ids of 'b' made by add are not known to have 52 bits"
// CHECK: genrec.add
// CHECK: genrec.merged_keys
// PLAN-LABEL: genrec.model @unbounded
// OFF-LABEL: genrec.model @unbounded
genrec.model @unbounded {
  genrec.domain @user
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %j = genrec.add %i, %i : (!ids, !ids) -> !ids
    %xa = genrec.lookup %i in @a : (!ids) -> !x
    %xb = genrec.lookup %j in @b : (!ids) -> !x
    %y = genrec.add %xa, %xb : (!x, !x) -> !x
    %z = genrec.row_reduce sum %y : (!x) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "z" %z : tensor<?xf32, #genrec.rows<@user>>
  }
}

// -----

// A column whose ids are rows of an ancestor is another program than one with ids of its own rows, though
// both do the same to them.

// CHECK-LABEL: genrec.model @ancestors
// CHECK: genrec.transform_columns
// CHECK-SAME: programs = array<i64: 0, 1>
genrec.model @ancestors {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.table @users dim 4 {id_bits = 20 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @items dim 4 {id_bits = 20 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %u = genrec.feature %user "u" {id_bits = 20 : i64} : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %i = genrec.feature %event "event.i" {id_bits = 20 : i64} : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %spread = genrec.fanout %u to %event : (tensor<?xi64, #genrec.rows<@user>>, !genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %a = genrec.lookup %spread in @users : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    %b = genrec.lookup %i in @items : (tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
    genrec.output "a" %a : tensor<?x4xf32, #genrec.rows<@event>>
    genrec.output "b" %b : tensor<?x4xf32, #genrec.rows<@event>>
  }
}

// -----

// Ids of a truncated list are read where they lie in the whole list: no copy of the rows that are kept is left. Columns
// of one list share a program. Of a padded list there is no such row, so its ids are brought there before.

// CHECK-LABEL: genrec.model @truncated
// CHECK-DAG: %[[I:.*]] = genrec.feature %{{.*}} "event.i"
// CHECK-DAG: %[[J:.*]] = genrec.feature %{{.*}} "event.j"
// CHECK-DAG: %[[K:.*]] = genrec.feature %{{.*}} "event.k"
// CHECK-DAG: %[[LONG:.*]] = genrec.derive %[[K]]
// CHECK-NOT: genrec.derive
// CHECK: genrec.transform_columns(%[[I]], %{{.*}}, %[[J]], %{{.*}}, %[[LONG]]) into(
// CHECK-SAME: programs = array<i64: 0, 0, 1>
// PLAN-LABEL: genrec.model @truncated
// OFF-LABEL: genrec.model @truncated
// OFF: genrec.derive
genrec.model @truncated {
  genrec.domain @user
  genrec.domain @event parent @user {column = "event"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @long parent @user kind derived
  genrec.table @a dim 4 {id_bits = 20 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {id_bits = 20 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @c dim 4 {id_bits = 20 : i64, init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>
    %recent = genrec.truncate %event {count = 3} : (!genrec.domain<@event>) -> !genrec.domain<@recent>
    %long = genrec.pad %event {count = 9} : (!genrec.domain<@event>) -> !genrec.domain<@long>
    %i = genrec.feature %event "event.i" {id_bits = 20 : i64} : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %j = genrec.feature %event "event.j" {id_bits = 20 : i64} : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %k = genrec.feature %event "event.k" {id_bits = 20 : i64} : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    %di = genrec.derive %i into %recent : (tensor<?xi64, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xi64, #genrec.rows<@recent>>
    %dj = genrec.derive %j into %recent : (tensor<?xi64, #genrec.rows<@event>>, !genrec.domain<@recent>) -> tensor<?xi64, #genrec.rows<@recent>>
    %dk = genrec.derive %k into %long : (tensor<?xi64, #genrec.rows<@event>>, !genrec.domain<@long>) -> tensor<?xi64, #genrec.rows<@long>>
    %a = genrec.lookup %di in @a : (tensor<?xi64, #genrec.rows<@recent>>) -> tensor<?x4xf32, #genrec.rows<@recent>>
    %b = genrec.lookup %dj in @b : (tensor<?xi64, #genrec.rows<@recent>>) -> tensor<?x4xf32, #genrec.rows<@recent>>
    %c = genrec.lookup %dk in @c : (tensor<?xi64, #genrec.rows<@long>>) -> tensor<?x4xf32, #genrec.rows<@long>>
    genrec.output "a" %a : tensor<?x4xf32, #genrec.rows<@recent>>
    genrec.output "b" %b : tensor<?x4xf32, #genrec.rows<@recent>>
    genrec.output "c" %c : tensor<?x4xf32, #genrec.rows<@long>>
  }
}
