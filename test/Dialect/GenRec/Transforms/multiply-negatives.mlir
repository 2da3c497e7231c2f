// RUN: genrec-opt %s --genrec-multiply-negatives --cse --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-multiply-negatives --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: multiply-negatives: 4
// COUNT: genrec-multiply-negatives multiplied: 4

!v = tensor<?x8xf32, #genrec.rows<@request>>
!s = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!items = tensor<?x8xf32, #genrec.rows<@items>>

// The loss and its gradient have one product of the same negatives, which are drawn once.

// CHECK-LABEL: genrec.model @drawn_here
// CHECK-SAME: genrec.decisions = ["multiply-negatives: @all: 16 negatives that all rows share (multiply-negatives.mlir:{{[0-9]+}}) are a matrix"]
// CHECK: %[[N:.*]] = genrec.fixed_rows 16
// CHECK: %[[DRAWN:.*]] = genrec.draw_rows %{{.*}} {count = 16 : i64, stream = 256 : i64} : (!genrec.domain<@items>) -> tensor<16xi64>
// CHECK: %[[NUMBERS:.*]] = genrec.shared_rows %[[DRAWN]] as %[[N]] : {{.*}} -> tensor<?xi64, #genrec.rows<@rows_16>>
// CHECK: %[[OWN:.*]] = genrec.gather_rows %[[ITEMS:.*]] at %[[POSITIVE:.*]] : {{.*}} -> tensor<?x8xf32, #genrec.rows<@request>>
// CHECK: %[[ROWS:.*]] = genrec.gather_rows %[[ITEMS]] at %[[NUMBERS]]
// CHECK: %[[MATRIX:.*]] = genrec.rows_as_shared %[[ROWS]] : {{.*}} -> tensor<16x8xf32>
// CHECK: %[[MUL:.*]] = genrec.mul %[[QUERY:.*]], %[[OWN]]
// CHECK: %[[DOT:.*]] = genrec.row_reduce sum %[[MUL]]
// CHECK: %[[DOTS:.*]] = genrec.linear %[[QUERY]], %[[MATRIX]] {transposed}
// CHECK: %[[LOSS:.*]] = genrec.sampled_cross_entropy %[[DOT]], %[[DOTS]], %[[POSITIVE]], %[[DRAWN]] {temperature = 5.000000e-01 : f64}
// CHECK-NOT: genrec.draw_rows
// CHECK: %[[DDOT:.*]], %[[DDOTS:.*]] = genrec.sampled_cross_entropy_grad %[[DOT]], %[[DOTS]], %[[POSITIVE]], %[[DRAWN]], %[[SEED:.*]] {temperature = 5.000000e-01 : f64}
// CHECK: %[[OTHERS:.*]] = genrec.linear %[[DDOTS]], %[[MATRIX]] :
// CHECK: %[[DMATRIX:.*]] = genrec.weight_gradient %[[DDOTS]], %[[QUERY]] : {{.*}} -> tensor<16x8xf32>
// CHECK: %[[MINE:.*]] = genrec.mul %[[OWN]], %[[DDOT]]
// CHECK: %[[DQUERY:.*]] = genrec.add %[[OTHERS]], %[[MINE]]
// CHECK: %[[SHARE:.*]] = genrec.mul %[[QUERY]], %[[DDOT]]
// CHECK: %[[FIRST:.*]] = genrec.scatter_rows %[[SHARE]] at %[[POSITIVE]] : {{.*}} -> tensor<?x8xf32, #genrec.rows<@items>>
// CHECK: %[[DROWS:.*]] = genrec.shared_rows %[[DMATRIX]] as %[[N]]
// CHECK: %[[SECOND:.*]] = genrec.scatter_rows %[[DROWS]] at %[[NUMBERS]] : {{.*}} -> tensor<?x8xf32, #genrec.rows<@items>>
// CHECK: %[[DITEMS:.*]] = genrec.add %[[FIRST]], %[[SECOND]]
// CHECK: genrec.output "loss" %[[LOSS]]
// CHECK: genrec.output "dquery" %[[DQUERY]]
// CHECK: genrec.output "ditems" %[[DITEMS]]
genrec.model @drawn_here {
  genrec.domain @request
  genrec.domain @items kind catalogue {source = "items.parquet"}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %catalogue = genrec.catalogue : !genrec.domain<@items>
    %query = genrec.feature %request "query" : (!genrec.domain<@request>) -> !v
    %positive = genrec.feature %request "positive" : (!genrec.domain<@request>) -> !id
    %seed = genrec.feature %request "seed" : (!genrec.domain<@request>) -> !s
    %items = genrec.feature %catalogue "vector" : (!genrec.domain<@items>) -> !items
    %loss = genrec.sampled_softmax %query, %positive, %items {negatives = 16 : i64, shared, temperature = 0.5 : f64, stream = 256 : i64} : (!v, !id, !items) -> !s
    %dquery, %ditems = genrec.sampled_softmax_grad %query, %positive, %items, %seed {negatives = 16 : i64, shared, temperature = 0.5 : f64, stream = 256 : i64} : (!v, !id, !items, !s) -> (!v, !items)
    genrec.output "loss" %loss : !s
    genrec.output "dquery" %dquery : !v
    genrec.output "ditems" %ditems : !items
  }
}

// -----

!v = tensor<?x8xf32, #genrec.rows<@request>>
!s = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!items = tensor<?x8xf32, #genrec.rows<@items>>

// Negatives that are there, of query and items that were rounded: the products have bf16.

// CHECK-LABEL: genrec.model @rounded
// CHECK-NOT: genrec.draw_rows %
// CHECK: genrec.linear %{{.*}}, %{{.*}} {bf16, transposed}
// CHECK: genrec.linear %{{.*}}, %{{.*}} {bf16}
// CHECK: genrec.weight_gradient %{{.*}}, %{{.*}} {bf16}
genrec.model @rounded {
  genrec.domain @request
  genrec.domain @items kind catalogue {source = "items.parquet"}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %catalogue = genrec.catalogue : !genrec.domain<@items>
    %x = genrec.feature %request "query" : (!genrec.domain<@request>) -> !v
    %query = genrec.round_factor %x : !v
    %positive = genrec.feature %request "positive" : (!genrec.domain<@request>) -> !id
    %seed = genrec.feature %request "seed" : (!genrec.domain<@request>) -> !s
    %vectors = genrec.feature %catalogue "vector" : (!genrec.domain<@items>) -> !items
    %items = genrec.round_factor %vectors : !items
    %drawn = genrec.constant dense<2> : tensor<9xi64>
    %loss = genrec.sampled_softmax %query, %positive, %items drawn %drawn {negatives = 9 : i64, shared, temperature = 0.5 : f64, stream = 256 : i64} : (!v, !id, !items, tensor<9xi64>) -> !s
    %dquery, %ditems = genrec.sampled_softmax_grad %query, %positive, %items, %seed drawn %drawn {negatives = 9 : i64, shared, temperature = 0.5 : f64, stream = 256 : i64} : (!v, !id, !items, !s, tensor<9xi64>) -> (!v, !items)
    genrec.output "loss" %loss : !s
    genrec.output "dquery" %dquery : !v
    genrec.output "ditems" %ditems : !items
  }
}

// -----

!v = tensor<?x8xf32, #genrec.rows<@request>>
!s = tensor<?xf32, #genrec.rows<@request>>
!id = tensor<?xi64, #genrec.rows<@request>>
!items = tensor<?x8xf32, #genrec.rows<@items>>

// Negatives of each row stay as they are.

// CHECK-LABEL: genrec.model @left
// CHECK-NOT: genrec.decisions
// CHECK-NOT: genrec.linear
genrec.model @left {
  genrec.domain @request
  genrec.domain @items kind catalogue {source = "items.parquet"}
  genrec.program @all {
    %request = genrec.batch : !genrec.domain<@request>
    %catalogue = genrec.catalogue : !genrec.domain<@items>
    %query = genrec.feature %request "query" : (!genrec.domain<@request>) -> !v
    %positive = genrec.feature %request "positive" : (!genrec.domain<@request>) -> !id
    %items = genrec.feature %catalogue "vector" : (!genrec.domain<@items>) -> !items
    %own = genrec.sampled_softmax %query, %positive, %items {negatives = 16 : i64, temperature = 0.5 : f64, stream = 256 : i64} : (!v, !id, !items) -> !s
    genrec.output "own" %own : !s
  }
}
