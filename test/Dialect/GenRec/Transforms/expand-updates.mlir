// RUN: genrec-opt %s --genrec-expand-updates --cse --split-input-file | FileCheck %s
// RUN: genrec-opt %s --genrec-expand-updates --genrec-pass-statistics --genrec-count-rewrites --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: expand-lookup: 8
// COUNT: expand-parameter-update: 4
// COUNT: expand-table-update: 7
// COUNT: gradient-of-parent: 2
// COUNT: genrec-expand-updates gradients-of-parents: 2
// COUNT: genrec-expand-updates handles-shared: 8
// COUNT: genrec-expand-updates lookups: 8
// COUNT: genrec-expand-updates parameter-updates: 4
// COUNT: genrec-expand-updates table-updates: 7

// A lookup and the update of the same ids share their handles.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @table
// CHECK: genrec.domain @touched_item {{.*}}step
// CHECK: %[[IDS:.*]] = genrec.feature
// CHECK: %[[ROWS:.*]] = genrec.table_rows %[[IDS]] in @item
// CHECK-NOT: genrec.table_rows
// CHECK: %[[X:.*]] = genrec.row_kernel %{{.*}}(%[[ROWS]]) attributes {name = "lookup"
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4>):
// CHECK: %[[V:.*]] = genrec.row_load %[[ROW]] : (!genrec.row<4>) -> vector<4xf32>
// CHECK: genrec.row_yield %[[V]]
// Adagrad leaves rows without gradient as they are: no gradient is compared with 0.
// CHECK: %[[TOUCHED:.*]], %[[HANDLES:.*]] = genrec.unique_rows(%[[ROWS]]) by(%[[X]]) {all}
// CHECK: %[[SUM:.*]] = genrec.segment_sum %[[TOUCHED]](%[[X]])
// CHECK: %[[LR:.*]] = genrec.step_value "learning_rate"(1.000000e-01)
// CHECK: genrec.row_kernel %[[TOUCHED]](%[[HANDLES]], %[[SUM]], %[[LR]]) attributes {name = "update_item"
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4>, %[[G:.*]]: vector<4xf32>, %[[RATE:.*]]: f32):
// CHECK: %[[W:.*]] = genrec.row_load %[[ROW]] :
// CHECK: %[[S0:.*]] = genrec.row_load %[[ROW]] {slot = 1 : i64}
// CHECK: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK: %[[S:.*]] = arith.addf %[[S0]], %[[GG]]
// CHECK: genrec.row_store %[[S]] to %[[ROW]] {slot = 1 : i64}
// CHECK: %[[ROOT:.*]] = math.sqrt %[[S]]
// CHECK: %[[DIVISOR:.*]] = arith.addf %[[ROOT]]
// CHECK: %[[STEP:.*]] = arith.divf %[[G]], %[[DIVISOR]]
// CHECK: %[[DELTA:.*]] = arith.mulf %{{.*}}, %[[STEP]]
// CHECK: %[[NEW:.*]] = arith.subf %[[W]], %[[DELTA]]
// CHECK: genrec.row_store %[[NEW]] to %[[ROW]] :
genrec.model @table {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adagrad, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %ids in @item : (!ids) -> !x
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
  }
}

// -----

// Lookups of the same ids that are valid in different rows share handles valid in either.

!ids = tensor<?xi64, #genrec.rows<@user>>
!ok = tensor<?xi1, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @validities
// CHECK: %[[A:.*]] = genrec.feature_valid %{{.*}} "a"
// CHECK: %[[B:.*]] = genrec.feature_valid %{{.*}} "b"
// CHECK: %[[OR:.*]] = genrec.select %[[A]], %[[A]], %[[B]]
// CHECK: %[[ROWS:.*]] = genrec.table_rows %{{.*}} valid %[[OR]] in @item
// CHECK-DAG: %[[X:.*]] = genrec.row_kernel %{{.*}}(%[[ROWS]], %[[A]])
// CHECK-DAG: %[[Y:.*]] = genrec.row_kernel %{{.*}}(%[[ROWS]], %[[B]])
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4>, %[[OK:.*]]: i1):
// CHECK: %[[V:.*]] = genrec.row_load %[[ROW]]
// CHECK: arith.select %[[OK]], %[[V]], %{{.*}} : vector<4xf32>
// CHECK: genrec.unique_rows(%[[ROWS]], %[[ROWS]]) by(%[[X]], %[[Y]])
genrec.model @validities {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %other = genrec.feature %user "other" : (!genrec.domain<@user>) -> !ids
    %a = genrec.feature_valid %user "a" : (!genrec.domain<@user>) -> !ok
    %x = genrec.lookup %ids valid %a in @item : (!ids, !ok) -> !x
    %z = genrec.lookup %other in @item : (!ids) -> !x
    %b = genrec.feature_valid %user "b" : (!genrec.domain<@user>) -> !ok
    %y = genrec.lookup %ids valid %b in @item : (!ids, !ok) -> !x
    genrec.update_table @item ids(%ids, %ids) by(%x, %y) : (!ids, !ids, !x, !x) -> ()
  }
}

// -----

// The optimizers of PyTorch on parameters.

// CHECK-LABEL: genrec.model @parameters
// CHECK: %[[D:.*]], %[[H:.*]] = genrec.parameter_rows @momentum : () -> (!genrec.domain<@momentum_rows>, tensor<?x!genrec.row<3>
// CHECK: genrec.shared_rows %{{.*}} as %[[D]] : (tensor<2x3xf32>, {{.*}} -> tensor<?x3xf32
// CHECK: genrec.parameter_rows @scalar : () -> {{.*}}!genrec.row<1>
// CHECK: genrec.shared_rows %{{.*}} : (tensor<f32>, {{.*}} -> tensor<?x1xf32
// CHECK: name = "update_momentum"
// CHECK: %[[W:.*]] = genrec.row_load
// CHECK: %[[DECAY:.*]] = arith.mulf %[[W]], %{{.*}} : vector<3xf32>
// CHECK: %[[G:.*]] = arith.addf %{{.*}}, %[[DECAY]]
// CHECK: %[[BUF:.*]] = genrec.row_load %{{.*}} {slot = 1 : i64}
// CHECK: %[[KEPT:.*]] = arith.mulf %[[BUF]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[KEPT]], %[[G]]
// CHECK: genrec.row_store %[[NEXT]] to %{{.*}} {slot = 1 : i64}
// CHECK: genrec.step_value "bias_correction"(9.000000e-01)
// CHECK: genrec.step_value "bias_correction"(0.99899999999999999)
// CHECK: name = "update_scalar"
// CHECK: name = "update_decoupled"
// CHECK-COUNT-3: genrec.row_store
genrec.model @parameters {
  genrec.domain @user
  genrec.parameter @momentum : tensor<2x3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {momentum = 0.9, weight_decay = 0.5}>}
  genrec.parameter @scalar : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adam, {}>}
  genrec.parameter @decoupled : tensor<3xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adamw, {}>}
  genrec.program @train mode train {
    %a = genrec.param @momentum : tensor<2x3xf32>
    %b = genrec.param @scalar : tensor<f32>
    %c = genrec.param @decoupled : tensor<3xf32>
    genrec.update_parameter @momentum by %a : tensor<2x3xf32>
    genrec.update_parameter @scalar by %b : tensor<f32>
    genrec.update_parameter @decoupled by %c : tensor<3xf32>
  }
}

// -----

// Clipping: every gradient into [-v, v], then all by min(1, c / norm) of their common norm.
// A row's own step count corrects its moments.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @clipped
// CHECK: %[[GW:.*]] = genrec.shared_rows
// CHECK: %[[GT:.*]] = genrec.segment_sum
// CHECK: %[[V:.*]] = genrec.step_value "clip_value"(5.000000e-01)
// CHECK: %[[ON:.*]] = genrec.compare gt %[[V]]
// CHECK: %[[LOW:.*]] = genrec.neg %[[V]]
// CHECK: %[[MIN:.*]] = genrec.minimum %[[GW]], %[[V]]
// CHECK: %[[MAX:.*]] = genrec.maximum %[[MIN]], %[[LOW]]
// CHECK: %[[CW:.*]] = genrec.select %[[ON]], %[[MAX]], %[[GW]]
// CHECK: %[[CT:.*]] = genrec.select %[[ON]], %{{.*}}, %[[GT]]
// CHECK: %[[C:.*]] = genrec.step_value "clip_norm"(1.000000e+00)
// CHECK: genrec.square %[[CW]]
// CHECK: %[[SW:.*]] = genrec.reduce_rows
// CHECK: genrec.square %[[CT]]
// CHECK: %[[ST:.*]] = genrec.reduce_rows
// CHECK: %[[TOTAL:.*]] = genrec.add %[[SW]], %[[ST]]
// CHECK: genrec.sqrt %[[TOTAL]]
// CHECK: %[[RATIO:.*]] = genrec.div %[[C]]
// CHECK: %[[BOUNDED:.*]] = genrec.minimum %{{.*}}, %[[RATIO]]
// CHECK: %[[COEFFICIENT:.*]] = genrec.select %{{.*}}, %[[BOUNDED]]
// CHECK: genrec.mul %[[CW]], %[[COEFFICIENT]]
// CHECK: genrec.mul %[[CT]], %[[COEFFICIENT]]
// CHECK: name = "update_item"
// CHECK: %[[STEPS:.*]] = genrec.row_load %{{.*}} {slot = 3 : i64}
// CHECK: %[[NOW:.*]] = arith.addf %[[STEPS]]
// CHECK: genrec.row_store %[[NOW]] to %{{.*}} {slot = 3 : i64}
// CHECK: math.expm1
genrec.model @clipped attributes {clip_norm = 1.0, clip_value = 0.5} {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adam, {per_row_step = 1.0}>}
  genrec.parameter @w : tensor<4xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %w = genrec.param @w : tensor<4xf32>
    %x = genrec.broadcast_rows %w to %user : (tensor<4xf32>, !genrec.domain<@user>) -> !x
    %y = genrec.lookup %ids in @item : (!ids) -> !x
    genrec.update_parameter @w by %w : tensor<4xf32>
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
  }
}

// -----

// Gradients of pooled lookups are read from the parents' rows, not written per entry;
// those from further above are fanned out to the parents.

!ids = tensor<?xi64, #genrec.rows<@tag>>
!un = tensor<?xf32, #genrec.rows<@user>>
!en = tensor<?xf32, #genrec.rows<@event>>
!u = tensor<?x4xf32, #genrec.rows<@user>>
!e = tensor<?x4xf32, #genrec.rows<@event>>
!t = tensor<?x4xf32, #genrec.rows<@tag>>

// CHECK-LABEL: genrec.model @pooled
// CHECK: %[[GU:.*]] = genrec.concat_columns
// CHECK: %[[GE:.*]] = genrec.concat_columns
// CHECK-DAG: %[[NEAR:.*]] = genrec.table_rows
// CHECK-DAG: %[[FAR:.*]] = genrec.table_rows
// CHECK-DAG: %[[UP:.*]] = genrec.fanout %[[GU]] to %{{.*}} : {{.*}}#genrec.rows<@event>>
// CHECK: %[[TOUCHED:.*]], %{{.*}} = genrec.unique_rows(%[[NEAR]], %[[FAR]]) by(%[[GE]], %[[UP]]) {{(\{all\} )?}}:
// CHECK: genrec.segment_sum %[[TOUCHED]](%[[GE]], %[[UP]])
genrec.model @pooled {
  genrec.domain @user
  genrec.domain @event parent @user {column = "events"}
  genrec.domain @tag parent @event {column = "events.tags"}
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user, %event, %tag = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>, !genrec.domain<@tag>
    %a = genrec.feature %tag "events.tags.a" : (!genrec.domain<@tag>) -> !ids
    %b = genrec.feature %tag "events.tags.b" : (!genrec.domain<@tag>) -> !ids
    %u = genrec.feature %user "u" : (!genrec.domain<@user>) -> !un
    %e = genrec.feature %event "events.e" : (!genrec.domain<@event>) -> !en
    %gu = genrec.concat_columns %u, %u, %u, %u : (!un, !un, !un, !un) -> !u
    %ge = genrec.concat_columns %e, %e, %e, %e : (!en, !en, !en, !en) -> !e
    %near = genrec.fanout %ge to %tag : (!e, !genrec.domain<@tag>) -> !t
    %far = genrec.fanout %gu to %tag : (!u, !genrec.domain<@tag>) -> !t
    genrec.update_table @item ids(%a, %b) by(%near, %far) : (!ids, !ids, !t, !t) -> ()
  }
}

// -----

// Row-wise Adagrad: one accumulator per row, and one factor for all of it.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @rowwise
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4>, %[[G:.*]]: vector<4xf32>, %[[RATE:.*]]: f32):
// CHECK: %[[W:.*]] = genrec.row_load %[[ROW]] : (!genrec.row<4>) -> vector<4xf32>
// CHECK: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK: %[[SQUARES:.*]] = vector.reduction <add>, %[[GG]]
// CHECK: %[[QUARTER:.*]] = arith.constant 2.500000e-01
// CHECK: %[[MEAN:.*]] = arith.mulf %[[SQUARES]], %[[QUARTER]]
// CHECK: %[[S0:.*]] = genrec.row_load %[[ROW]] {slot = 1 : i64} : (!genrec.row<4>) -> vector<1xf32>
// CHECK: %[[ONE:.*]] = vector.broadcast %[[MEAN]] : f32 to vector<1xf32>
// CHECK: %[[S:.*]] = arith.addf %[[S0]], %[[ONE]]
// CHECK: genrec.row_store %[[S]] to %[[ROW]] {slot = 1 : i64}
// CHECK: %[[SUM:.*]] = vector.extract %[[S]][0]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[SUM]]
// CHECK: %[[DIVISOR:.*]] = arith.addf %[[ROOT]]
// CHECK: %[[FACTOR:.*]] = arith.divf %[[RATE]], %[[DIVISOR]]
// CHECK: %[[FACTORS:.*]] = vector.broadcast %[[FACTOR]]
// CHECK: %[[DELTA:.*]] = arith.mulf %[[FACTORS]], %[[G]]
// CHECK: %[[NEW:.*]] = arith.subf %[[W]], %[[DELTA]]
// CHECK: genrec.row_store %[[NEW]] to %[[ROW]] :
genrec.model @rowwise {
  genrec.domain @user
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %ids in @item : (!ids) -> !x
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
  }
}

// -----

// A row of bf16 is widened where it is loaded. What is stored is rounded by random numbers.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @bf16
// CHECK: genrec.table_rows {{.*}} in @item : {{.*}} -> tensor<?x!genrec.row<4, bf16>, #genrec.rows<@user>>
// CHECK: genrec.row_load %{{.*}} : (!genrec.row<4, bf16>) -> vector<4xf32>
// CHECK: genrec.row_kernel {{.*}} attributes {name = "update_item"
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4, bf16>, %[[G:.*]]: vector<4xf32>, %[[RATE:.*]]: f32):
// CHECK: %[[W:.*]] = genrec.row_load %[[ROW]] : (!genrec.row<4, bf16>) -> vector<4xf32>
// CHECK: %[[NEW:.*]] = arith.subf %[[W]]
// CHECK: %[[U:.*]] = genrec.row_bits {stream = 2147483647 : i64} : vector<4xi16>
// CHECK: %[[ROUNDED:.*]] = genrec.row_round %[[NEW]] by %[[U]] : vector<4xf32>, vector<4xi16>
// CHECK: genrec.row_store %[[ROUNDED]] to %[[ROW]] : vector<4xf32>, !genrec.row<4, bf16>
genrec.model @bf16 {
  genrec.domain @user
  genrec.table @item dim 4 {element = #genrec<row_element bf16>, rounding = #genrec<row_rounding stochastic>,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %ids in @item : (!ids) -> !x
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
  }
}

// -----

// Lookups read the upper halves of rows that may be hot; updates read and store all of them, and round where a row is not hot.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @hot
// CHECK: genrec.table_rows {{.*}} in @item : {{.*}} -> tensor<?x!genrec.row<4, bf16, hot>, #genrec.rows<@user>>
// CHECK: genrec.row_load %{{.*}} : (!genrec.row<4, bf16, hot>) -> vector<4xf32>
// CHECK: genrec.row_kernel {{.*}} attributes {name = "update_item"
// CHECK: ^bb0(%[[ROW:.*]]: !genrec.row<4, bf16, hot>, %[[G:.*]]: vector<4xf32>, %[[RATE:.*]]: f32):
// CHECK: %[[W:.*]] = genrec.row_load %[[ROW]] {whole} : (!genrec.row<4, bf16, hot>) -> vector<4xf32>
// CHECK: %[[NEW:.*]] = arith.subf %[[W]]
// CHECK: %[[U:.*]] = genrec.row_bits {stream = 2147483647 : i64} : vector<4xi16>
// CHECK: %[[ROUNDED:.*]] = genrec.row_round %[[NEW]] by %[[U]] : vector<4xf32>, vector<4xi16>
// CHECK: %[[HOT:.*]] = genrec.row_hot %[[ROW]] : !genrec.row<4, bf16, hot>
// CHECK: %[[STORED:.*]] = arith.select %[[HOT]], %[[NEW]], %[[ROUNDED]] : vector<4xf32>
// CHECK: genrec.row_store %[[STORED]] to %[[ROW]] : vector<4xf32>, !genrec.row<4, bf16, hot>
genrec.model @hot {
  genrec.domain @user
  genrec.table @item dim 4 {element = #genrec<row_element bf16>, rounding = #genrec<row_rounding stochastic>, hot_after = 3 : i64,
    init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %ids in @item : (!ids) -> !x
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
  }
}
