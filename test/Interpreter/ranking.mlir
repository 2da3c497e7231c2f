// Items (1, 0), (0, 1), (1, 0), (2, 2) and queries (1, 0), (0, 1), (1, -1): scores 1 0 1 2, then 0 1 0 2, then 1 -1 1 0.
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/ranking.json | FileCheck %s
// RUN: genrec-run %s --mode=evaluate --batch=%S/Inputs/ranking.json | FileCheck %s --check-prefix=METRIC

!user = !genrec.domain<@user>
!seen = !genrec.domain<@seen>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!u5 = tensor<?x5xf32, #genrec.rows<@user>>
!ui = tensor<?xi64, #genrec.rows<@user>>
!ui3 = tensor<?x3xi64, #genrec.rows<@user>>
!ub = tensor<?xi1, #genrec.rows<@user>>
!si = tensor<?xi64, #genrec.rows<@seen>>
!m = tensor<?xf32, #genrec.rows<@items>>
!m2 = tensor<?x2xf32, #genrec.rows<@items>>
!mi = tensor<?xi64, #genrec.rows<@items>>

genrec.model @ranking {
  genrec.domain @user
  genrec.domain @seen parent @user {column = "seen"}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %user, %seen = genrec.batch : !user, !seen
    %items = genrec.catalogue : !items
    %x = genrec.feature %user "x" : (!user) -> !u
    %y = genrec.feature %user "y" : (!user) -> !u
    %query = genrec.concat_columns %x, %y : (!u, !u) -> !u2
    %ix = genrec.feature %items "x" : (!items) -> !m
    %iy = genrec.feature %items "y" : (!items) -> !m
    %item = genrec.concat_columns %ix, %iy : (!m, !m) -> !m2
    %ids = genrec.feature %items "id" : (!items) -> !mi
    %target_id = genrec.feature %user "target" {nullable} : (!user) -> !ui
    %has_target = genrec.feature_valid %user "target" : (!user) -> !ub
    %target = genrec.resolve %target_id valid %has_target in %ids : (!ui, !ub, !mi) -> !ui
    %seen_id = genrec.feature %seen "seen.item" : (!seen) -> !si
    %excluded = genrec.resolve %seen_id in %ids : (!si, !mi) -> !si

    %all_index, %all_score = genrec.top_k %query, %item : (!u2, !m2) -> (!ui3, !u3)
    %index, %score = genrec.top_k %query, %item exclude %excluded : (!u2, !m2, !si) -> (!ui3, !u3)
    %best = genrec.gather_rows %ids at %index : (!mi, !ui3) -> !ui3
    %rank = genrec.rank %query, %target, %item : (!u2, !ui, !m2) -> !ui
    %rank_new = genrec.rank %query, %target, %item exclude %excluded : (!u2, !ui, !m2, !si) -> !ui
    %scores = genrec.scores %query, %item : (!u2, !m2) -> !u5
    genrec.output "1 target" %target : !ui
    genrec.output "2 all" %all_index : !ui3
    genrec.output "3 new" %best : !ui3
    genrec.output "4 rank" %rank : !ui
    genrec.output "5 rank new" %rank_new : !ui
    genrec.output "6 scores" %scores : !u5
    genrec.metric ranking "ranking" %rank {at = array<i64: 2, 3>} : !ui
    genrec.metric ranking "new" %rank_new {at = array<i64: 2>} : !ui
    %zero = genrec.constant dense<0.0> : tensor<f32>
    %is_up = genrec.compare gt %y, %zero : (!u, tensor<f32>) -> !ub
    %up = genrec.cast %is_up : (!ub) -> !u
    genrec.metric auc "auc" %x label %up : !u, !u
  }
}
// CHECK: 1 target: [0, 0, -1]
// Ties: the lower row first.
// CHECK: 2 all:
// CHECK-NEXT: [3, 0, 2]
// CHECK-NEXT: [3, 1, 0]
// CHECK-NEXT: [0, 2, 3]
// Past the end: -1, which gathers 0.
// CHECK-NEXT: 3 new:
// CHECK-NEXT: [10, 12, 11]
// CHECK-NEXT: [13, 11, 10]
// CHECK-NEXT: [0, 0, 0]
// Ties count against the model: item 12 is as good as the target, item 10. No target: 0.
// CHECK: 4 rank: [3, 4, 0]
// CHECK: 5 rank new: [2, 4, 0]
// CHECK: 6 scores:
// CHECK-NEXT: [1, 0, 1, 2, -1e+30]

// Ranks 3 and 4: one of two within 3, with gain 1 / log2(4); reciprocals 1/3 and 1/4.
// METRIC: auc: 0
// METRIC: hr@2: 0
// METRIC: hr@3: 0.5
// METRIC: mrr: 0.291666667
// METRIC: ndcg@2: 0
// METRIC: ndcg@3: 0.25
// METRIC: new.hr@2: 0.5
// METRIC: new.mrr: 0.375
// METRIC: new.ndcg@2: 0.315464877
