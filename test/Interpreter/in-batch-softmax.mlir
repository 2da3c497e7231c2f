// In-batch softmax in closed form. Vectors are 0, 2 and 1, so that logits are products of two of them; the first and the
// last row have one id and do not see each other.
// RUN: genrec-run %s --batch=%S/Inputs/one.json --mode=predict | FileCheck %s

!user = !genrec.domain<@user>
!s = tensor<f32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u1 = tensor<?x1xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>

genrec.model @in_batch {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %label = genrec.feature %user "label" : (!user) -> !u
    %id = genrec.feature %user "id" : (!user) -> !i
    %zero = genrec.constant dense<0.0> : !s
    %positive = genrec.compare gt %x, %zero : (!u, !s) -> !b
    %both = genrec.concat_columns %x, %label : (!u, !u) -> !u2
    %vector = genrec.slice_columns %both from 0 : (!u2) -> !u1
    // log(1 + e^0), log(1 + e^-4 + e^-2), log(1 + e^1)
    %loss, %kept = genrec.in_batch_softmax %vector, %vector, %id {temperature = 1.0 : f64} : (!u1, !u1, !i) -> (!u, !u2)
    genrec.output "1 loss" %loss : !u
    // CHECK: 1 loss: [0.693147181, 0.142931628, 1.31326169]
    // The share of the others: 1 / 2, 1 - 1 / (1 + e^-4 + e^-2), 1 - 1 / (1 + e).
    genrec.output "2 kept" %kept : !u2
    // CHECK: 2 kept:
    // CHECK-NEXT: [0.693147181, 0.5]
    // CHECK-NEXT: [4.14293163, 0.133186668]
    // CHECK-NEXT: [2.31326169, 0.731058579]
    // Logits less 0, 1 and 1: log(1 + e^-1), log(1 + e^-3 + e^-2), log(1 + e^1).
    %corrected, %kept1 = genrec.in_batch_softmax %vector, %vector, %id log_q %label {temperature = 1.0 : f64} : (!u1, !u1, !i, !u) -> (!u, !u2)
    genrec.output "3 corrected" %corrected : !u
    // CHECK: 3 corrected: [0.313261688, 0.16984602, 1.31326169]
    // Without the first row: log(1 + e^-2), log(1 + e^1).
    %masked, %kept2 = genrec.in_batch_softmax %vector, %vector, %id valid %positive {temperature = 1.0 : f64} : (!u1, !u1, !i, !b) -> (!u, !u2)
    genrec.output "4 without the first" %masked : !u
    // CHECK: 4 without the first: [0, 0.126928011, 1.31326169]
    // With x as the loss's gradient: the first item's is that of the second row alone, 4 times its share e^-4 / (1 + e^-4 +
    // e^-2); the third query's is its share e / (1 + e) of the second item, times 2 - 1.
    %dquery, %ditem = genrec.in_batch_softmax_grad %vector, %vector, %id, %kept, %x {temperature = 1.0 : f64} : (!u1, !u1, !i, !u2, !u) -> (!u1, !u1)
    genrec.output "5 dquery" %dquery : !u1
    genrec.output "6 ditem" %ditem : !u1
    // CHECK: 5 dquery: [0, -0.298125816, 0.731058579]
    // CHECK: 6 ditem: [0.0635049599, 0.198311907, -0.261816867]
  }
}
