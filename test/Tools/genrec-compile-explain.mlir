// RUN: genrec-compile %s --explain --batch=10 --longest=4 | FileCheck %s
// RUN: genrec-compile %s --explain --batch=20 --longest=4 | FileCheck %s --check-prefix=DOUBLE

// What became of a model: tables, kernels with what they were made of, calls, memory.

// CHECK:      model example
// CHECK-NEXT: tables
// CHECK-NEXT:   item: dim 8, sgd, 32 bytes per row
// CHECK-NEXT:   1 logical, 1 physical
// CHECK:      program evaluate
// CHECK:        library calls: table_rows 1, linear 1; matrix products 16 FLOPs per row
// CHECK:        at most {{[0-9.]+}} MB alive together for 10 root rows with lists of 4
// DOUBLE:       for 20 root rows with lists of 4
genrec.model @example {
  genrec.domain @request
  genrec.domain @history parent @request {column = "history"}
  genrec.table @item dim 8 {init = #genrec.init<normal, 0.1 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @weight : tensor<8x1xf32> {init = #genrec.init<normal, 0.1 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @main {
    %request, %history = genrec.batch : !genrec.domain<@request>, !genrec.domain<@history>
    %id = genrec.feature %history "history.item" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %x = genrec.lookup %id in @item : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
    %user = genrec.pool sum %x to %request : (tensor<?x8xf32, #genrec.rows<@history>>, !genrec.domain<@request>) -> tensor<?x8xf32, #genrec.rows<@request>>
    %w = genrec.param @weight : tensor<8x1xf32>
    %y = genrec.linear %user, %w : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x1xf32>) -> tensor<?x1xf32, #genrec.rows<@request>>
    %logit = genrec.row_reduce sum %y : (tensor<?x1xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    %label = genrec.feature %request "label" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
    %loss = genrec.bce_with_logits %logit, %label : (tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    genrec.loss "click" %loss : tensor<?xf32, #genrec.rows<@request>>
  }
}
