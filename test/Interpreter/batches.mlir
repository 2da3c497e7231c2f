// Lists of plain values, parallel lists, padding, and what --print-batch writes reads back as the same.
// RUN: genrec-run %s --split-input-file --mode=predict --batch=%S/Inputs/columns.json | FileCheck %s
// RUN: genrec-run %s --split-input-file --mode=predict --batch=%S/Inputs/columns.json --precision=float | FileCheck %s --check-prefix=FLOAT
// RUN: genrec-run %S/lists.mlir --split-input-file --mode=predict --random=3 --print-batch --json > %t.lists
// RUN: FileCheck %s --check-prefix=BATCH < %t.lists

!user = !genrec.domain<@user>
!interest = !genrec.domain<@interest>
!u = tensor<?xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!ii = tensor<?xi64, #genrec.rows<@interest>>
!s = tensor<f32>
genrec.model @plain {
  genrec.domain @user
  genrec.domain @interest parent @user {column = "interest"}
  genrec.program @main {
    %user, %interest = genrec.batch : !user, !interest
    %x = genrec.feature %user "x" : (!user) -> !u
    %id = genrec.feature %interest "interest" {padding_id = 9} : (!interest) -> !ii
    %three = genrec.constant dense<3.0> : !s
    %product = genrec.mul %x, %three : (!u, !s) -> !u
    %length = genrec.length %interest : (!interest) -> !ui
    %sum = genrec.pool sum %id to %user : (!ii, !user) -> !ui
    genrec.output "1 product" %product : !u
    genrec.output "2 length" %length : !ui
    genrec.output "3 sum" %sum : !ui
  }
}
// The float nearest to 0.1, times 3 in double; and rounded to float.
// CHECK: 1 product: [0.300000004, 0.600000009]
// FLOAT: 1 product: [0.300000012, 0.600000024]
// CHECK: 2 length: [2, 0]
// CHECK: 3 sum: [6, 0]

// -----

!user = !genrec.domain<@user>
!event = !genrec.domain<@event>
!ei = tensor<?xi64, #genrec.rows<@event>>
genrec.model @parallel {
  genrec.domain @user
  genrec.domain @event parent @user {column = "movies"}
  genrec.program @main {
    %user, %event = genrec.batch : !user, !event
    %movie = genrec.feature %event "movies" {padding_id = 0} : (!event) -> !ei
    %time = genrec.feature %event "times" : (!event) -> !ei
    %place = genrec.position %event : (!event) -> !ei
    genrec.output "4 movie" %movie : !ei
    genrec.output "5 time" %time : !ei
    genrec.output "6 place" %place : !ei
  }
}
// All columns of a list lose the padded row.
// CHECK: 4 movie: [30, 32]
// CHECK: 5 time: [5, 7]
// CHECK: 6 place: [0, 1]

// BATCH: "positions": [
// BATCH: "history": [
// BATCH: "tags": [
// BATCH: {"outputs":{{.*}}"1 length"
