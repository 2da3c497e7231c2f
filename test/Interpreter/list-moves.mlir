// Lists lengthened, paired and put side by side: three users with 3, 0 and 1 events and 2, 1 and 0 items shown.
// RUN: genrec-run %s --split-input-file --mode=predict --batch=%S/Inputs/list-moves.json | FileCheck %s

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!ui2 = tensor<?x2xi64, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!h = tensor<?xf32, #genrec.rows<@history>>

genrec.model @tile {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %score = genrec.feature %history "history.score" : (!history) -> !h
    %first = genrec.tile %movie to %user {count = 2 : i64} : (!hi, !user) -> !ui2
    %last = genrec.tile %score to %user {count = 2 : i64, keep = #genrec<keep last>} : (!h, !user) -> !u2
    genrec.output "1 first" %first : !ui2
    genrec.output "2 last" %last : !u2
  }
}
// CHECK: 1 first:
// CHECK-NEXT: [1, 2]
// CHECK-NEXT: [0, 0]
// CHECK-NEXT: [4, 0]
// CHECK: 2 last:
// CHECK-NEXT: [4, 2]
// CHECK-NEXT: [0, 0]
// CHECK-NEXT: [-2, 0]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!padded = !genrec.domain<@padded>
!hi = tensor<?xi64, #genrec.rows<@history>>
!pi = tensor<?xi64, #genrec.rows<@padded>>

genrec.model @back {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @padded parent @user kind derived
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %padded = genrec.pad %history {count = 2 : i64} : (!history) -> !padded
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %long = genrec.derive %movie into %padded : (!hi, !padded) -> !pi
    genrec.output "3 back" %long : !pi
  }
}
// CHECK: 3 back: [1, 2, 3, 0, 0, 4, 0]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!padded = !genrec.domain<@padded>
!hi = tensor<?xi64, #genrec.rows<@history>>
!pi = tensor<?xi64, #genrec.rows<@padded>>

genrec.model @front {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @padded parent @user kind derived
  genrec.program @main {
    %user, %history = genrec.batch : !user, !history
    %padded = genrec.pad %history {count = 2 : i64, side = #genrec<pad_side front>} : (!history) -> !padded
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %long = genrec.derive %movie into %padded : (!hi, !padded) -> !pi
    genrec.output "4 front" %long : !pi
  }
}
// CHECK: 4 front: [1, 2, 3, 0, 0, 0, 4]

// -----

!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!shown = !genrec.domain<@shown>
!pair = !genrec.domain<@pair>
!hi = tensor<?xi64, #genrec.rows<@history>>
!si = tensor<?xi64, #genrec.rows<@shown>>
!pi = tensor<?xi64, #genrec.rows<@pair>>

genrec.model @pairs {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @shown parent @user {column = "shown"}
  genrec.domain @pair parent @shown kind derived
  genrec.program @main {
    %user, %history, %shown = genrec.batch : !user, !history, !shown
    %pair = genrec.pair_domains %shown, %history : (!shown, !history) -> !pair
    %movie = genrec.feature %history "history.movie" : (!history) -> !hi
    %item = genrec.feature %shown "shown" : (!shown) -> !si
    %first = genrec.fanout %item to %pair : (!si, !pair) -> !pi
    %second = genrec.pair_rows %movie into %pair : (!hi, !pair) -> !pi
    genrec.output "5 first" %first : !pi
    genrec.output "6 second" %second : !pi
  }
}
// CHECK: 5 first: [7, 7, 7, 8, 8, 8]
// CHECK: 6 second: [1, 2, 3, 1, 2, 3]
