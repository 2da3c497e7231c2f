// Lists with empty parents, nested lists, and the moves between them, one domain of outputs per part.
// RUN: genrec-run %s --split-input-file --mode=predict --batch=%S/Inputs/lists.json | FileCheck %s

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!tag = !genrec.domain<@tag>
!u = tensor<?xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!ti = tensor<?xi64, #genrec.rows<@tag>>

genrec.model @up {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @tag parent @history {column = "history.tags"}
  genrec.program @main {
    %user, %history, %tag = genrec.batch : !user, !history, !tag
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %score = genrec.feature %history "history.score" : (!history) -> !h
    %tags = genrec.feature %tag "history.tags" : (!tag) -> !ti
    %length = genrec.length %history : (!history) -> !ui
    %sum = genrec.pool sum %score to %user : (!h, !user) -> !u
    %mean = genrec.pool mean %score to %user : (!h, !user) -> !u
    %max = genrec.pool max %score to %user : (!h, !user) -> !u
    %first = genrec.pool first %movie to %user : (!hi, !user) -> !ui
    %last = genrec.pool last %movie to %user : (!hi, !user) -> !ui
    %far = genrec.pool sum %tags to %user : (!ti, !user) -> !ui
    genrec.output "1 length" %length : !ui
    genrec.output "2 sum" %sum : !u
    genrec.output "3 mean" %mean : !u
    genrec.output "4 max" %max : !u
    genrec.output "5 first" %first : !ui
    genrec.output "6 last" %last : !ui
    genrec.output "7 far" %far : !ui
  }
}
// The pool of an empty list is 0, also the maximum of nothing; that of -2 is -2.
// CHECK: 1 length: [3, 0, 1, 0]
// CHECK: 2 sum: [6.5, 0, -2, 0]
// CHECK: 3 mean: [2.16666667, 0, -2, 0]
// CHECK: 4 max: [3, 0, -2, 0]
// CHECK: 5 first: [1, 0, 4, 0]
// CHECK: 6 last: [3, 0, 4, 0]
// CHECK: 7 far: [24, 0, 7, 0]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!ui = tensor<?xi64, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hb = tensor<?xi1, #genrec.rows<@history>>

genrec.model @within {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %id = genrec.feature %user "user" : (!user) -> !ui
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %next, %has_next = genrec.lead %movie : (!hi) -> (!hi, !hb)
    %before, %has_before = genrec.lag %movie {distance = 2} : (!hi) -> (!hi, !hb)
    %position = genrec.position %history : (!history) -> !hi
    %from_end = genrec.position %history {from_end} : (!history) -> !hi
    %user_of = genrec.fanout %id to %history : (!ui, !history) -> !hi
    genrec.output "1 next" %next : !hi
    genrec.output "2 has next" %has_next : !hb
    genrec.output "3 before" %before : !hi
    genrec.output "4 has before" %has_before : !hb
    genrec.output "5 position" %position : !hi
    genrec.output "6 from end" %from_end : !hi
    genrec.output "7 user" %user_of : !hi
  }
}
// CHECK: 1 next: [2, 3, 0, 0]
// CHECK: 2 has next: [1, 1, 0, 0]
// CHECK: 3 before: [0, 0, 1, 0]
// CHECK: 4 has before: [0, 0, 1, 0]
// CHECK: 5 position: [0, 1, 2, 0]
// CHECK: 6 from end: [2, 1, 0, 0]
// CHECK: 7 user: [10, 10, 10, 30]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!recent = !genrec.domain<@recent>
!oldest = !genrec.domain<@oldest>
!joined = !genrec.domain<@joined>
!ui = tensor<?xi64, #genrec.rows<@user>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!ri = tensor<?xi64, #genrec.rows<@recent>>
!oi = tensor<?xi64, #genrec.rows<@oldest>>
!ji = tensor<?xi64, #genrec.rows<@joined>>

genrec.model @derived {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @oldest parent @user kind derived
  genrec.domain @joined parent @user kind derived
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %id = genrec.feature %user "user" : (!user) -> !ui
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %recent = genrec.truncate %history {count = 2} : (!history) -> !recent
    %oldest = genrec.truncate %history {count = 1, keep = #genrec<keep first>} : (!history) -> !oldest
    %late = genrec.derive %movie into %recent : (!hi, !recent) -> !ri
    %early = genrec.derive %movie into %oldest : (!hi, !oldest) -> !oi
    %joined = genrec.concat_domains %recent, %user, %oldest : (!recent, !user, !oldest) -> !joined
    %all = genrec.concat_rows %late, %id, %early into %joined : (!ri, !ui, !oi, !joined) -> !ji
    %part = genrec.split_rows %all part 0 into %recent : (!ji, !recent) -> !ri
    %rejoined = genrec.concat_rows %part, %id, %early into %joined : (!ri, !ui, !oi, !joined) -> !ji
    %place = genrec.position %joined : (!joined) -> !ji
    genrec.output "1 all" %all : !ji
    genrec.output "2 rejoined" %rejoined : !ji
    genrec.output "3 place" %place : !ji
  }
}
// CHECK: 1 all: [2, 3, 10, 1, 20, 4, 30, 4, 40]
// CHECK: 2 rejoined: [2, 3, 10, 1, 20, 4, 30, 4, 40]
// CHECK: 3 place: [0, 1, 2, 3, 0, 0, 1, 2, 0]

// -----

// A kernel over a truncated list reads its rows where they lie in the whole list.

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!recent = !genrec.domain<@recent>
!oldest = !genrec.domain<@oldest>
!hi = tensor<?xi64, #genrec.rows<@history>>
!ri = tensor<?xi64, #genrec.rows<@recent>>
!oi2 = tensor<?x2xi64, #genrec.rows<@oldest>>

genrec.model @untruncated {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @recent parent @user kind derived
  genrec.domain @oldest parent @user kind derived
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %recent = genrec.truncate %history {count = 2} : (!history) -> !recent
    %oldest = genrec.truncate %history {count = 1, keep = #genrec<keep first>} : (!history) -> !oldest
    %late = genrec.row_kernel %recent(%movie) attributes {
        operand_roles = [#genrec<operand_role untruncated>], result_roles = [#genrec<result_role aligned>]} : (!recent, !hi) -> !ri {
    ^bb0(%one: i64):
      genrec.row_yield %one : i64
    }
    %early = genrec.row_kernel %oldest(%movie) attributes {
        operand_roles = [#genrec<operand_role untruncated>], result_roles = [#genrec<result_role aligned>]} : (!oldest, !hi) -> !oi2 {
    ^bb0(%one: i64):
      %two = vector.broadcast %one : i64 to vector<2xi64>
      genrec.row_yield %two : vector<2xi64>
    }
    genrec.output "late" %late : !ri
    genrec.output "early" %early : !oi2
  }
}
// CHECK: early:
// CHECK-NEXT: [1, 1]
// CHECK-NEXT: [4, 4]
// CHECK: late: [2, 3, 4]
