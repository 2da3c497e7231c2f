// RUN: genrec-opt %s --pass-pipeline='builtin.module(genrec.model(genrec-expand-updates,genrec-assign-stages,genrec-form-row-kernels))' -o %t.mlir
// RUN: genrec-opt %t.mlir --pass-pipeline='builtin.module(genrec-attach-target{target=cuda},genrec.model(genrec-plan-memory),genrec-outline-kernels)' | FileCheck %s
// RUN: genrec-compile %t.mlir --target=cuda --emit=cpp -o - | FileCheck %s --check-prefix=UNIT
// RUN: genrec-compile %t.mlir --emit=cpp -o - | FileCheck %s --check-prefix=CPU
// RUN: genrec-compile %t.mlir --target=cuda --explain | FileCheck %s --check-prefixes=EXPLAIN,JOINT
// RUN: genrec-compile %t.mlir --explain | FileCheck %s --check-prefixes=EXPLAIN,EACH

// On a device all parameters are updated in one launch, behind the rows of tables. Those of one width and optimizer share
// a body, on the CPU, too, where each is a launch. Rows of more than 1,024 columns have a block.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x64xf32, #genrec.rows<@user>>

// CHECK: genrec.launch @row_touched_item_update_item
// CHECK: genrec.launch_columns [@row_weight_rows_update_weight, @row_scale_rows_update_scale, @row_wide_rows_update_wide, @run_update_parameters]
// CHECK-SAME: columns = array<i64: 0, 3, 0, -1, 0, 3, 1, -1, 1, 5, 2, -1, 2, 3, 3, -1>
// CHECK-SAME: name = "update_parameters"
// CHECK-NOT: genrec.launch @
// CHECK: emitc.func @row_touched_item_update_item
// CHECK: emitc.func @row_weight_rows_update_weight(
// CHECK-NOT: emitc.func @row_bias_rows
// CHECK: emitc.func @row_scale_rows_update_scale(
// CHECK: emitc.func @row_wide_rows_update_wide(
// CHECK: emitc.func @run_update_parameters{{.*}}specifiers = ["extern \22C\22", "__global__", "__launch_bounds__(256)"]
// CHECK: call_opaque "kernels::runColumns"{{.*}}#emitc.opaque<"row_weight_rows_update_weight">, #emitc.opaque<"row_scale_rows_update_scale">, #emitc.opaque<"row_wide_rows_update_wide">

// UNIT: for (int64_t row = begin + kernels::rowOfBlock<4>(); row < end; row += kernels::blockStep<4>())
// UNIT: for (int64_t row = begin + kernels::rowOfBlock<1>(); row < end; row += kernels::blockStep<1>())
// UNIT: for (int64_t row = begin + kernels::rowOfBlock<256>(); row < end; row += kernels::blockStep<256>())
// A row of a parameter is two pointers: its values and its states.
// UNIT: run_update_parameters(const genrec_step *step, __grid_constant__ const kernels::Columns<4, 18> columns) {
// UNIT: run_update_parameters_columns[4] = {
// UNIT-NEXT: .program = 0, .rows = 256, .pointers = 4,
// UNIT-NEXT: .program = 0, .rows = 256, .pointers = 4,
// UNIT-NEXT: .program = 1, .rows = 1024, .pointers = 6,
// UNIT-NEXT: .program = 2, .rows = 4, .pointers = 4,
// UNIT: train_compute(genrec_step *step)
// UNIT: kernels::launch(step, {{.*}}row_touched_item_update_item
// UNIT: kernels::launchColumns(step, run_update_parameters_columns, run_update_parameters,
// UNIT-NOT: kernels::launch(
// Of the domains of updated rows the runtime knows which parameter has them.
// UNIT: {.name = "weight_rows", .kind = GENREC_DOMAIN_STEP, .parent = -1, .capacity = capacity_weight_rows, .parameter = 1}
// UNIT-NEXT: {.name = "touched_item", .kind = GENREC_DOMAIN_STEP, .parent = -1, .capacity = capacity_touched_item}
// UNIT-NEXT: {.name = "bias_rows", .kind = GENREC_DOMAIN_STEP, .parent = -1, .capacity = capacity_bias_rows, .parameter = 2}

// CPU: static void row_weight_rows_update_weight(
// CPU-NOT: static void row_bias_rows
// CPU: kernels::launch(step, weight_rows, {{.*}}, row_weight_rows_update_weight,
// CPU: kernels::launch(step, bias_rows, {{.*}}, row_weight_rows_update_weight,
// Reports call each by its own name.
// CPU: {.name = "row_weight_rows_update_weight"
// CPU-NEXT: {.name = "row_bias_rows_update_bias"

// EXPLAIN: row_wide_rows_update_wide
// JOINT: 5 launches;
// EACH: 8 launches;
genrec.model @updates {
  genrec.domain @user
  genrec.table @item dim 64 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @weight : tensor<3x64xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @bias : tensor<64xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @scale : tensor<f32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<adam, {lr = 0.1}>}
  genrec.parameter @wide : tensor<2x5000xf32> {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %ids = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.lookup %ids in @item : (!ids) -> !x
    %weight = genrec.param @weight : tensor<3x64xf32>
    %bias = genrec.param @bias : tensor<64xf32>
    %scale = genrec.param @scale : tensor<f32>
    %wide = genrec.param @wide : tensor<2x5000xf32>
    genrec.update_parameter @weight by %weight : tensor<3x64xf32>
    genrec.update_table @item ids(%ids) by(%x) : (!ids, !x) -> ()
    genrec.update_parameter @bias by %bias : tensor<64xf32>
    genrec.update_parameter @scale by %scale : tensor<f32>
    genrec.update_parameter @wide by %wide : tensor<2x5000xf32>
  }
}
