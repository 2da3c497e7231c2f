// Losses with closed forms. log 2 = 0.693147181, log(1 + e^2) - 2 = 0.126928011, log(1 + e) - 1 = 0.313261688.
// RUN: genrec-run %s --batch=%S/Inputs/one.json | FileCheck %s
// RUN: genrec-run %s --batch=%S/Inputs/one.json --mode=predict | FileCheck %s --check-prefix=ROWS

!user = !genrec.domain<@user>
!s = tensor<f32>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u1 = tensor<?x1xf32, #genrec.rows<@user>>
!i = tensor<?xi64, #genrec.rows<@user>>
!b = tensor<?xi1, #genrec.rows<@user>>

genrec.model @losses {
  genrec.domain @user
  genrec.program @main {
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %label = genrec.feature %user "label" : (!user) -> !u
    %one = genrec.constant dense<1.0> : !s
    %zero = genrec.constant dense<0.0> : !s
    %bce = genrec.bce_with_logits %x, %label : (!u, !u) -> !u
    %not = genrec.sub %one, %label : (!s, !u) -> !u
    %logits = genrec.concat_columns %x, %not : (!u, !u) -> !u2
    %class = genrec.cast %label : (!u) -> !i
    %cross = genrec.softmax_cross_entropy %logits, %class : (!u2, !i) -> !u
    %id = genrec.feature %user "id" : (!user) -> !i
    %null = genrec.softmax_cross_entropy %logits, %id : (!u2, !i) -> !u
    %positive = genrec.compare gt %x, %zero : (!u, !s) -> !b
    %never = genrec.compare lt %x, %zero : (!u, !s) -> !b
    genrec.loss "1 bce" %bce : !u
    genrec.loss "2 valid" %bce valid %positive : !u, !b
    genrec.loss "3 weight" %bce weight %x {scale = 2.0} : !u, !u
    genrec.loss "4 none" %bce valid %never : !u, !b
    genrec.output "1 bce" %bce : !u
    genrec.output "2 cross" %cross : !u
    genrec.output "3 no class" %null : !u
    // Class 0 and class 1 one after the other; the other class than before.
    %other = genrec.cast %not : (!u) -> !i
    %first = genrec.slice_columns %logits from 0 : (!u2) -> !u1
    %second = genrec.slice_columns %logits from 1 : (!u2) -> !u1
    %sum0 = genrec.log_sum_exp %first : (!u1) -> !u
    %sum = genrec.log_sum_exp %second before %sum0 : (!u1, !u) -> !u
    %pick0 = genrec.pick_column %first at %other : (!u1, !i) -> !u
    %pick1 = genrec.pick_column %second at %other {first = 1 : i64} : (!u1, !i) -> !u
    %grad1 = genrec.softmax_cross_entropy_grad %second, %other, %x log_sum_exp %sum {first = 1 : i64} : (!u1, !i, !u, !u) -> !u1
    genrec.output "4 log sum exp" %sum : !u
    genrec.output "5 class 0" %pick0 : !u
    genrec.output "6 class 1" %pick1 : !u
    genrec.output "7 gradient of class 1" %grad1 : !u1
  }
}
// The sum of 0.693147181, 0.126928011 and 0.313261688; with weights 0, 2 and 1.
// CHECK: 1 bce:
// CHECK-NEXT: mean: 0.37777896
// CHECK-NEXT: sum: 1.13333688
// CHECK-NEXT: weight: 3
// CHECK: 2 valid:
// CHECK-NEXT: mean: 0.220094849
// CHECK-NEXT: sum: 0.440189699
// CHECK-NEXT: weight: 2
// CHECK: 3 weight:
// CHECK-NEXT: mean: 0.189039237
// CHECK-NEXT: sum: 0.56711771
// CHECK-NEXT: weight: 3
// CHECK: 4 none:
// CHECK-NEXT: mean: null
// CHECK-NEXT: sum: 0
// CHECK-NEXT: weight: 0
// The third counts twice.
// CHECK: {{^}}loss: 0.975952

// ROWS: 1 bce: [0.693147181, 0.126928011, 0.313261688]
// Logits (0, 1), (2, 0), (1, 0) with classes 0, 1, 1: log(1 + e^gap) for gaps 1, 2 and 1.
// ROWS: 2 cross: [1.31326169, 2.12692801, 1.31326169]
// ROWS: 3 no class: [0, 0, 0]
// log(e^0 + e^1), log(e^2 + e^0), log(e^1 + e^0); the logits 1, 2 and 1 of the classes 1, 0 and 0; the share of class 1
// times x, 2 / (e^2 + 1) and 1 / (e + 1), where x is not 0.
// ROWS: 4 log sum exp: [1.31326169, 2.12692801, 1.31326169]
// ROWS: 5 class 0: [0, 2, 1]
// ROWS: 6 class 1: [1, 0, 0]
// ROWS: 7 gradient of class 1: {{.*}}0{{.*}} 0.238405844{{.*}} 0.268941421
