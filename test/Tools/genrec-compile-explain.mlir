// RUN: env GENREC_MACHINE=none genrec-compile %s --explain --batch=10 --longest=4 --worker-threads=1 | FileCheck %s
// RUN: genrec-compile %s --explain --batch=100000 --longest=7,history=4 --rows=history=300000 --ids=item=1000000 --dataset=request=5000000,history=20000000 --worker-threads=1 | FileCheck %s --check-prefix=LARGE
// RUN: not genrec-compile %s --explain --rows=histry=4 2>&1 | FileCheck %s --check-prefix=DOMAIN
// RUN: not genrec-compile %s --explain --ids=items=4 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not genrec-compile %s --explain --longest=request=4 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not genrec-compile %s --explain --ids=4 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not genrec-compile %s --explain --batch=0 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: env GENREC_MACHINE=%S/Inputs/machine.json genrec-compile %s --explain --batch=10 --longest=4 | FileCheck %s --check-prefix=TIMES
// RUN: genrec-compile %s --explain=json --batch=10 --longest=4 | FileCheck %s --check-prefix=JSON
// RUN: env GENREC_MACHINE=%S/Inputs/machine.json genrec-compile %s --explain=html --batch=10 --longest=4 -o %t.html
// RUN: FileCheck %s --check-prefix=HTML --input-file=%t.html
// RUN: %python -c "import sys, xml.etree.ElementTree as tree; page = open(sys.argv[1]).read(); [tree.fromstring('<svg' + part.split('</svg>')[0] + '</svg>') for part in page.split('<svg')[1:]]" %t.html
// RUN: not genrec-compile %s --explain=pdf 2>&1 | FileCheck %s --check-prefix=PDF

// What became of a model: tables, kernels with what they were made of, calls; and the memory of a run, part by part.

// CHECK:      model example
// CHECK-NEXT: tables
// CHECK-NEXT:   item: dim 8, sgd, 32 bytes per row
// CHECK-NEXT:   1 logical tables in 1 stores
// CHECK-NEXT: columns
// CHECK-NEXT:   history.item: of @history, i64, ids of table 'item'; read by train, evaluate
// CHECK-NEXT:   label: of @request, f32; read by train, evaluate
// CHECK:      program train
// The pool reads 40 handles of 8 bytes, 40 rows of 32, 10 lists of 8 and writes 10 rows of 32.
// CHECK:        costs of a step at least
// CHECK:        row_history_pool {{ *}}40 {{ *}}50 {{ *}}8
// CHECK:        linear {{ *}}10 {{.*}} 16
// CHECK:        10 launches; {{.*}} times are predicted after genrec-compile --calibrate
// CHECK:        memory of a run with 10 root rows, lists of at most 4
// CHECK-NEXT:     parameters 0.0 MB
// CHECK-NEXT:     optimizer state 0.0 MB
// CHECK-NEXT:     table 'item' 0.0 MB 0 distinct ids (told by --ids item=n) of 64 bytes
// CHECK-NEXT:     arena, copy and dispatch 0.0 MB
// CHECK-NEXT:     arena, compute stage 0.0 MB
// CHECK-NEXT:     batches in flight 0.0 MB 2 columns
// CHECK-NEXT:     scratch 0.0 MB
// CHECK-NEXT:     reader 0.0 MB decoded data not counted (told by --dataset): 20 bytes per row of 'request', 8 bytes per row of 'history'
// CHECK-NEXT:     code and stacks 7.0 MB
// CHECK-NEXT:     together 7.0 MB beside what the process holds at its start
// CHECK:      program evaluate
// CHECK:        library calls: table_rows 1, linear 1; matrix products 16 FLOPs per row

// 64 MB of rows; 2^21 slots of 16 bytes and 8 per id: 41.6 MB. Per batch in flight, 300,000 events take room for 327,680 (8
// bytes of id, 8 of parent, 8 of identity), 100,000 requests for 106,496 (4 of label, 8 of position, 8 of identity, 8 of offset).
// LARGE:      program train
// LARGE:        memory of a run with 100000 root rows, lists of at most 7 (history 300000 rows, history 4)
// LARGE:          table 'item' 105.6 MB 1000000 distinct ids of 64 bytes, and 41.6 MB of keys
// LARGE:          batches in flight 21.7 MB
// LARGE:          reader 300.0 MB all decoded data
// LARGE:          together

// DOMAIN: genrec-compile: error: --rows names domain 'histry', which the model lacks; it has 'request', 'history'
// TABLE: genrec-compile: error: --ids names table 'items', which the model lacks; it has 'item'
// LIST: genrec-compile: error: --longest names list 'request', which the model lacks; it has 'history'
// FORM: genrec-compile: error: --ids takes table=n, n a number of at least 0, but got '4'; a file of counted ids is read with --world only
// BATCH: genrec-compile: error: --batch must be at least 1, but is 0

// TIMES:        linear {{.*}} launch
// TIMES:        at least {{[0-9.]+}} ms on 2 threads of a test's machine
// PDF:          genrec-compile: error: --explain must be text, json or html, but is 'pdf'

// JSON:         "graphs_before"
// JSON:         "op": "bce_with_logits"
// JSON:         "programs"
// JSON:         "bytes": 720
// JSON:         "gathered_bytes": 1280
// JSON:         "name": "row_history_pool"

// HTML:         <title>example</title>
// HTML:         <h2>domains</h2>
// HTML-SAME:    {{$}}
// HTML:         <svg
// HTML:         history
// HTML:         <h2>graph before (main)</h2>
// HTML:         bce_with_logits
// HTML:         <h2>program train</h2>
// HTML:         at least ms
// HTML-NOT:     http://{{[^w]}}
// HTML:         addEventListener('input'
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
