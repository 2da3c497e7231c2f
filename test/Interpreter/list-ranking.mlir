// Lists of targets, lists of candidates, weights, nulls of outputs.
// Items (1, 0), (0, 1), (1, 0), (2, 2) with ids 10 to 13, and queries (1, 0), (0, 1), (1, -1): scores 1 0 1 2, then 0 1 0 2,
// then 1 -1 1 0.
// RUN: genrec-run %s --mode=predict --batch=%S/Inputs/list-ranking.json | FileCheck %s
// RUN: genrec-run %s --mode=evaluate --batch=%S/Inputs/list-ranking.json | FileCheck %s --check-prefix=METRIC

!user = !genrec.domain<@user>
!shown = !genrec.domain<@shown>
!seen = !genrec.domain<@seen>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!u2 = tensor<?x2xf32, #genrec.rows<@user>>
!u3 = tensor<?x3xf32, #genrec.rows<@user>>
!ui3 = tensor<?x3xi64, #genrec.rows<@user>>
!ub3 = tensor<?x3xi1, #genrec.rows<@user>>
!s = tensor<?xf32, #genrec.rows<@shown>>
!si = tensor<?xi64, #genrec.rows<@shown>>
!sb = tensor<?xi1, #genrec.rows<@shown>>
!ei = tensor<?xi64, #genrec.rows<@seen>>
!m = tensor<?xf32, #genrec.rows<@items>>
!m2 = tensor<?x2xf32, #genrec.rows<@items>>
!mi = tensor<?xi64, #genrec.rows<@items>>

genrec.model @lists {
  genrec.domain @user
  genrec.domain @shown parent @user {column = "shown"}
  genrec.domain @seen parent @user {column = "seen"}
  genrec.domain @items kind catalogue
  genrec.program @main {
    %user, %shown, %seen = genrec.batch : !user, !shown, !seen
    %items = genrec.catalogue : !items
    %x = genrec.feature %user "x" : (!user) -> !u
    %y = genrec.feature %user "y" : (!user) -> !u
    %w = genrec.feature %user "w" : (!user) -> !u
    %query = genrec.concat_columns %x, %y : (!u, !u) -> !u2
    %ix = genrec.feature %items "x" : (!items) -> !m
    %iy = genrec.feature %items "y" : (!items) -> !m
    %item = genrec.concat_columns %ix, %iy : (!m, !m) -> !m2
    %ids = genrec.feature %items "id" : (!items) -> !mi
    %target_id = genrec.feature %shown "shown.target" {nullable} : (!shown) -> !si
    %has_target = genrec.feature_valid %shown "shown.target" : (!shown) -> !sb
    %target = genrec.resolve %target_id valid %has_target in %ids : (!si, !sb, !mi) -> !si
    %seen_id = genrec.feature %seen "seen.item" : (!seen) -> !ei
    %excluded = genrec.resolve %seen_id in %ids : (!ei, !mi) -> !ei
    %score = genrec.feature %shown "shown.score" : (!shown) -> !s
    %label = genrec.feature %shown "shown.label" : (!shown) -> !s

    %all = genrec.rank %query, %target, %item : (!u2, !si, !m2) -> !si
    %new = genrec.rank %query, %target, %item exclude %excluded : (!u2, !si, !m2, !ei) -> !si
    %place = genrec.rank_in_list %score, %label : (!s, !s) -> !si
    %known = genrec.rank_in_list %score, %label valid %has_target : (!s, !s, !sb) -> !si
    %index, %best = genrec.top_k %query, %item exclude %excluded : (!u2, !m2, !ei) -> (!ui3, !u3)
    %none = genrec.constant dense<0> : tensor<i64>
    %exists = genrec.compare ge %index, %none : (!ui3, tensor<i64>) -> !ub3
    genrec.output "1 all" %all : !si
    genrec.output "2 new" %new : !si
    genrec.output "3 place" %place : !si
    genrec.output "4 known" %known : !si
    genrec.output "5 index" %index valid %exists : !ui3, !ub3
    genrec.output "6 target" %target_id valid %has_target : !si, !sb
    genrec.metric ranking "ranking" %all weight %w {at = array<i64: 1, 3>, per_list} : !si, !u
    genrec.metric ranking "shown" %place {at = array<i64: 1>, per_list} : !si
    genrec.metric rmse "rmse" %score label %label : !s, !s
    genrec.metric mae "mae" %x label %y weight %w : !u, !u, !u
    genrec.metric auc "auc" %score label %label weight %score : !s, !s, !s
  }
}
// The targets 10 and 12 are as good as each other and have places of their own, the first first; 10 once only. Targets 11 and
// 13 of the last query, with scores -1 and 0, come behind 10 and 12.
// CHECK: 1 all: [2, 3, 0, 0, 4, 3]
// Target 12 counts, though the user has seen it; 13 is left out.
// CHECK: 2 new: [1, 2, 0, 0, 4, 3]
// The row of label 0 comes first of those of score 2.
// CHECK: 3 place: [3, 0, 1, 0, 0, 2]
// CHECK: 4 known: [3, 0, 1, 0, 0, 2]
// CHECK: 5 index:
// CHECK-NEXT: [0, 1, null]
// CHECK-NEXT: [3, 1, 0]
// CHECK-NEXT: [0, 2, 3]
// CHECK: 6 target: [10, 12, 10, null, 11, 13]

// Pairs of a positive and a negative row, by weight: 2 and 3 and 0 against 2, 5 and 1. In order: 2 · 1, 3 · (2 + 1), and
// half of 2 · 2, of 40.
// METRIC: auc: 0.325
// Ranks 2 and 3 of the first user, weight 1; 3 and 4 of the third, weight 2; the second has none.
// METRIC: hr@1: 0
// METRIC: hr@3: 1
// METRIC: mae: 1.33333333
// METRIC: mrr: 0.388888889
// METRIC: ndcg@1: 0
// METRIC: ndcg@3: 0.435524
// METRIC: recall@1: 0
// METRIC: recall@3: 0.666666667
// METRIC: rmse: 2.44948974
// METRIC: shown.hr@1: 0.5
// METRIC: shown.mrr: 0.75
// METRIC: shown.ndcg@1: 0.5
// METRIC: shown.recall@1: 0.25
