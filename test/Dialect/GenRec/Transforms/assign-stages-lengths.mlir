// RUN: genrec-opt %s --genrec-assign-stages | FileCheck %s

// The lengths of lists of one domain are one op, where the first is. Those of another domain, of another stage, and of lists that
// are made behind it stay.

// CHECK: %[[BATCH:.*]]:4 = genrec.batch
// CHECK: %[[LENGTHS:.*]]:2 = genrec.length %[[BATCH]]#1, %[[BATCH]]#2 {genrec.stage = #genrec<stage copy>}
// CHECK-SAME: -> (tensor<?xi64, #genrec.rows<@user>>, tensor<?xi64, #genrec.rows<@user>>)
// CHECK: genrec.output "a" %[[LENGTHS]]#0
// CHECK: genrec.output "b" %[[LENGTHS]]#1
// CHECK: %[[BELOW:.*]] = genrec.length %[[BATCH]]#3
// CHECK: genrec.output "c" %[[BELOW]]
// CHECK: %[[SHORT:.*]] = genrec.truncate
// CHECK: %[[LATER:.*]] = genrec.length %[[SHORT]]
// CHECK: genrec.output "short" %[[LATER]]
// CHECK-NOT: genrec.length
!u = tensor<?xi64, #genrec.rows<@user>>
!b = tensor<?xi64, #genrec.rows<@b>>
genrec.model @lists {
  genrec.domain @user
  genrec.domain @a parent @user {column = "a"}
  genrec.domain @b parent @user {column = "b"}
  genrec.domain @c parent @b {column = "b.c"}
  genrec.domain @short parent @user {kind = #genrec<domain_kind derived>}
  genrec.program @predict mode predict {
    %user, %a, %b, %c = genrec.batch : !genrec.domain<@user>, !genrec.domain<@a>, !genrec.domain<@b>, !genrec.domain<@c>
    %la = genrec.length %a : (!genrec.domain<@a>) -> !u
    genrec.output "a" %la : !u
    %lb = genrec.length %b : (!genrec.domain<@b>) -> !u
    genrec.output "b" %lb : !u
    %lc = genrec.length %c : (!genrec.domain<@c>) -> !b
    genrec.output "c" %lc : !b
    %short = genrec.truncate %a {count = 2 : i64} : (!genrec.domain<@a>) -> !genrec.domain<@short>
    %ls = genrec.length %short : (!genrec.domain<@short>) -> !u
    genrec.output "short" %ls : !u
  }
}
