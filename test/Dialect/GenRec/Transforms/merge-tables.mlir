// RUN: genrec-opt %s --genrec-merge-tables --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-merge-tables --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT
// RUN: genrec-opt %s --genrec-graph-pipeline="merge-tables=false" --split-input-file | FileCheck %s --check-prefix=OFF

// Two tables of one spec are one; a table that differs in its optimizer stays apart, as does one of
// another dimension. Equal lookups are one part.

// COUNT: group-lookups: 6
// COUNT: merge-tables: 6
// COUNT: genrec-merge-tables grouped-lookups: 6
// COUNT: genrec-merge-tables lookups: 14
// COUNT: genrec-merge-tables merged: 6
// COUNT: genrec-merge-tables tables: 12

// OFF-NOT: merged_keys

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @specs
// CHECK-SAME: "merge-tables: table 'other' stays apart: it differs from 'a' in optimizer"
// CHECK-SAME: "merge-tables: table 'wide' stays apart: no other table has dimension 8"
// CHECK-SAME: "merge-tables: tables a, b are one, 'merged_4', with 61 bits for ids: same dimension, initializer and optimizer"
// CHECK: genrec.domain @merged_4_keys kind {{ *}}step
// CHECK: genrec.table @a dim 4
// CHECK: genrec.table @b dim 4
// CHECK: genrec.table @merged_4 dim 4 {id_bits = 63 : i64, init = {{.*}}, members = [@a, @b], optimizer =
// CHECK: %[[D:.*]]:2 = genrec.batch
// CHECK-DAG: %[[I:.*]] = genrec.feature %[[D]]#0 "i"
// CHECK-DAG: %[[J:.*]] = genrec.feature %[[D]]#1 "list.j"
// CHECK-DAG: %[[JV:.*]] = genrec.feature_valid %[[D]]#1 "list.j"
// CHECK-DAG: %[[STACK:.*]] = genrec.stack_domains %[[D]]#0, %[[D]]#1, %[[D]]#1
// CHECK-DAG: genrec.lookup %[[I]] in @other
// CHECK-DAG: genrec.lookup %[[I]] in @wide
// CHECK: %[[KEYS:.*]] = genrec.merged_keys %[[I]], %[[J]], %[[J]] valid(%[[JV]]) of [1] in [@a, @b, @a] of @merged_4 into %[[STACK]]
// CHECK: %[[ROWS:.*]]:3 = genrec.grouped_lookup %[[KEYS]] in @merged_4 into %[[D]]#0, %[[D]]#1, %[[D]]#1
// CHECK: genrec.add %[[ROWS]]#0, %[[ROWS]]#0
genrec.model @specs {
  genrec.domain @user
  genrec.domain @list parent @user {column = "list"}
  genrec.table @a dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @b dim 4 {id_bits = 20, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.table @other dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.2}>}
  genrec.table @wide dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @main {
    %user, %list = genrec.batch : !genrec.domain<@user>, !genrec.domain<@list>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %i in @a : (!ids) -> !x
    %again = genrec.lookup %i in @a : (!ids) -> !x
    %o = genrec.lookup %i in @other : (!ids) -> !x
    %w = genrec.lookup %i in @wide : (!ids) -> tensor<?x8xf32, #genrec.rows<@user>>
    %j = genrec.feature %list "list.j" {nullable} : (!genrec.domain<@list>) -> tensor<?xi64, #genrec.rows<@list>>
    %jv = genrec.feature_valid %list "list.j" : (!genrec.domain<@list>) -> tensor<?xi1, #genrec.rows<@list>>
    %y = genrec.lookup %j valid %jv in @b : (tensor<?xi64, #genrec.rows<@list>>, tensor<?xi1, #genrec.rows<@list>>) -> tensor<?x4xf32, #genrec.rows<@list>>
    %z = genrec.lookup %j in @a : (tensor<?xi64, #genrec.rows<@list>>) -> tensor<?x4xf32, #genrec.rows<@list>>
    %sum = genrec.add %x, %again : (!x, !x) -> !x
    genrec.output "sum" %sum : !x
    genrec.output "o" %o : !x
    genrec.output "w" %w : tensor<?x8xf32, #genrec.rows<@user>>
    %p = genrec.pool sum %y to %user : (tensor<?x4xf32, #genrec.rows<@list>>, !genrec.domain<@user>) -> !x
    %q = genrec.pool sum %z to %user : (tensor<?x4xf32, #genrec.rows<@list>>, !genrec.domain<@user>) -> !x
    genrec.output "p" %p : !x
    genrec.output "q" %q : !x
  }
}

// -----

// Ids of 62 bits leave room for no table number of two bits: as many tables as fit stay together.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @bits
// CHECK-SAME: "merge-tables: table 'huge' stays apart: its ids of 62 bits do not fit beside the numbers of 3 tables, which leave 61"
// CHECK: members = [@a, @b]
// CHECK-NOT: members
// CHECK: genrec.merged_keys %{{.*}}, %{{.*}} in [@a, @b]
// CHECK: genrec.lookup %{{.*}} in @huge
genrec.model @bits {
  genrec.domain @user
  genrec.table @a dim 4 {id_bits = 61, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @huge dim 4 {id_bits = 62, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {id_bits = 61, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %a = genrec.lookup %i in @a : (!ids) -> !x
    %h = genrec.lookup %i in @huge : (!ids) -> !x
    %b = genrec.lookup %i in @b : (!ids) -> !x
    genrec.output "a" %a : !x
    genrec.output "h" %h : !x
    genrec.output "b" %b : !x
  }
}

// -----

// A table that is looked up for a whole catalogue stays apart.

!ids = tensor<?xi64, #genrec.rows<@items>>
!x = tensor<?x4xf32, #genrec.rows<@items>>

// CHECK-LABEL: genrec.model @catalogue
// CHECK-SAME: "merge-tables: table 'item' stays apart: it is looked up for a whole catalogue
// CHECK-SAME: "merge-tables: tables user_table, city are one
// CHECK: genrec.lookup %{{.*}} in @item
genrec.model @catalogue {
  genrec.domain @user
  genrec.domain @items kind catalogue
  genrec.table @user_table dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @item dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @city dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %items = genrec.catalogue : !genrec.domain<@items>
    %i = genrec.feature %items "i" : (!genrec.domain<@items>) -> !ids
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %i in @item : (!ids) -> !x
    %y = genrec.lookup %u in @user_table : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %z = genrec.lookup %u in @city : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    %s = genrec.add %y, %z : (tensor<?x4xf32, #genrec.rows<@user>>, tensor<?x4xf32, #genrec.rows<@user>>) -> tensor<?x4xf32, #genrec.rows<@user>>
    genrec.output "s" %s : tensor<?x4xf32, #genrec.rows<@user>>
  }
}

// -----

// Rules about rows are part of the spec: tables that agree in them are one, others stay apart.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @rules
// CHECK-SAME: "merge-tables: table 'c' stays apart: it differs from 'a' in admit_after, ttl, bounded"
// CHECK-SAME: "merge-tables: table 'f' stays apart: it differs from 'a' in admit_after, ttl, ttl_in_seconds, bounded"
// CHECK-SAME: "merge-tables: tables a, b are one, 'merged_4', with 61 bits for ids: same dimension, initializer, optimizer and rules about rows"
// CHECK-SAME: "merge-tables: tables d, e are one, 'merged_4_2', with 61 bits for ids: same dimension, initializer and optimizer; apart from 'merged_4' by bounded"
// CHECK: genrec.table @merged_4 dim 4 {bounded = 9 : i64, id_bits = 63 : i64, {{.*}}members = [@a, @b]
// CHECK: genrec.table @merged_4_2 dim 4 {id_bits = 63 : i64, {{.*}}members = [@d, @e]
// CHECK: genrec.merged_keys {{.*}} in [@a, @b] of @merged_4
// CHECK: genrec.lookup %{{.*}} in @c
// CHECK: genrec.lookup %{{.*}} in @f
genrec.model @rules {
  genrec.domain @user
  genrec.table @a dim 4 {bounded = 9 : i64, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {bounded = 9 : i64, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @c dim 4 {ttl = 9 : i64, admit_after = 2 : i64, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @d dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @e dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @f dim 4 {ttl = 9 : i64, ttl_in_seconds, admit_after = 2 : i64, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %a = genrec.lookup %i in @a : (!ids) -> !x
    %b = genrec.lookup %i in @b : (!ids) -> !x
    %c = genrec.lookup %i in @c : (!ids) -> !x
    %f = genrec.lookup %i in @f : (!ids) -> !x
    genrec.output "f" %f : !x
    genrec.output "a" %a : !x
    genrec.output "b" %b : !x
    genrec.output "c" %c : !x
    %d = genrec.lookup %i in @d : (!ids) -> !x
    %e = genrec.lookup %i in @e : (!ids) -> !x
    genrec.output "d" %d : !x
    genrec.output "e" %e : !x
  }
}

// -----

// So are elements and how they are rounded.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @elements
// CHECK-SAME: "merge-tables: table 'c' stays apart: it differs from 'a' in rounding"
// CHECK-SAME: "merge-tables: table 'd' stays apart: it differs from 'a' in element, rounding"
// CHECK-SAME: "merge-tables: tables a, b are one, 'merged_4'
// CHECK: genrec.table @merged_4 dim 4 {element = #genrec<row_element bf16>, id_bits = 63 : i64, {{.*}}members = [@a, @b]{{.*}}rounding = #genrec<row_rounding stochastic>
genrec.model @elements {
  genrec.domain @user
  genrec.table @a dim 4 {element = #genrec<row_element bf16>, rounding = #genrec<row_rounding stochastic>, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @b dim 4 {element = #genrec<row_element bf16>, rounding = #genrec<row_rounding stochastic>, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @c dim 4 {element = #genrec<row_element bf16>, init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.table @d dim 4 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> !ids
    %a = genrec.lookup %i in @a : (!ids) -> !x
    %b = genrec.lookup %i in @b : (!ids) -> !x
    %c = genrec.lookup %i in @c : (!ids) -> !x
    %d = genrec.lookup %i in @d : (!ids) -> !x
    genrec.output "a" %a : !x
    genrec.output "b" %b : !x
    genrec.output "c" %c : !x
    genrec.output "d" %d : !x
  }
}
