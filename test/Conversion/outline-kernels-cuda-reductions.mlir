// RUN: genrec-compile %s --target=cuda --cache=none --emit=cpp -o %t.cu --dump-after-each=%t
// RUN: cat %t/*-plan-memory.mlir | FileCheck %s --check-prefix=PLAN
// RUN: FileCheck %s --check-prefix=UNIT --input-file=%t.cu
// RUN: genrec-compile %s --emit=cpp -o - | FileCheck %s --check-prefix=CPU
// RUN: genrec-compile %s --target=cuda --explain | FileCheck %s --check-prefix=JOINT
// RUN: genrec-compile %s --explain | FileCheck %s --check-prefix=EACH

// The sums of squares of a clipped norm are one launch on a device. Parameters of one width share a body, on the CPU, too. A
// row of more than 8,192 columns has a launch of its own, before the others.

!x = tensor<?x4xf32, #genrec.rows<@user>>
!u = tensor<?xf32, #genrec.rows<@user>>

// They run at the same time: their results are live together, and so are gradients until all updates are done.
// PLAN: "weight_gradient"{{[^>]*}}last = [[UPDATED:[0-9]+]]>{{.*}}"weight_gradient"{{[^>]*}}last = [[UPDATED]]>
// PLAN-SAME: "narrow_rows_row_reduce"{{[^>]*}}first = [[FIRST:[0-9]+]], last = [[LAST:[0-9]+]]>, {{.*}}"wide_rows_row_reduce"{{[^>]*}}first = [[FIRST]], last = [[LAST]]>
// PLAN-SAME: "other_rows_row_reduce"{{[^>]*}}first = [[FIRST]], last = [[LAST]]>

// UNIT-DAG: static __device__ void row_narrow_rows_row_reduce(
// UNIT-DAG: static __device__ void row_wide_rows_row_reduce(
// UNIT-NOT: void row_other_rows_row_reduce(
// UNIT: run_reduce_parameters(const genrec_step *step, __grid_constant__ const kernels::Columns<3, 6> columns) {
// UNIT-NEXT: kernels::runColumns<row_narrow_rows_row_reduce, row_wide_rows_row_reduce>(step, columns);
// UNIT: run_reduce_parameters_columns[3] = {
// UNIT-NEXT: .program = 0, .rows = 256, .pointers = 2,
// UNIT-NEXT: .program = 1, .rows = 4, .pointers = 2,
// UNIT-NEXT: .program = 0, .rows = 256, .pointers = 2,
// UNIT: train_compute(genrec_step *step)
// UNIT: kernels::launch(step, {{.*}}row_giant_rows_row_reduce
// 1,500 floats of the wide row.
// UNIT: kernels::launchColumns(step, run_reduce_parameters_columns, run_reduce_parameters, {{.*}}, 6000);
// UNIT: genrec_rt_exact_sums(step, 4,
// UNIT: {.name = "reduce_parameters"

// CPU: static void row_narrow_rows_row_reduce(
// CPU-NOT: static void row_other_rows_row_reduce(
// CPU: kernels::launch(step, narrow_rows, {{.*}}, row_narrow_rows_row_reduce,
// CPU: kernels::launch(step, other_rows, {{.*}}, row_narrow_rows_row_reduce,

// JOINT: 16 launches;
// EACH: 20 launches;
genrec.model @clipped attributes {clip_norm = 1.0 : f64} {
  genrec.domain @user
  genrec.parameter @narrow : tensor<4x16xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @wide : tensor<4x1500xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @giant : tensor<4x9000xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.parameter @other : tensor<4x16xf32> {init = #genrec.init<normal, 0.1>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @main {
    %user = genrec.batch : !genrec.domain<@user>
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !x
    %narrow = genrec.param @narrow : tensor<4x16xf32>
    %wide = genrec.param @wide : tensor<4x1500xf32>
    %giant = genrec.param @giant : tensor<4x9000xf32>
    %other = genrec.param @other : tensor<4x16xf32>
    %a = genrec.linear %x, %narrow : (!x, tensor<4x16xf32>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %b = genrec.linear %x, %wide : (!x, tensor<4x1500xf32>) -> tensor<?x1500xf32, #genrec.rows<@user>>
    %c = genrec.linear %x, %giant : (!x, tensor<4x9000xf32>) -> tensor<?x9000xf32, #genrec.rows<@user>>
    %d = genrec.linear %x, %other : (!x, tensor<4x16xf32>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %m = genrec.mul %a, %d : (tensor<?x16xf32, #genrec.rows<@user>>, tensor<?x16xf32, #genrec.rows<@user>>) -> tensor<?x16xf32, #genrec.rows<@user>>
    %r = genrec.row_reduce sum %m : (tensor<?x16xf32, #genrec.rows<@user>>) -> !u
    %s = genrec.row_reduce sum %b : (tensor<?x1500xf32, #genrec.rows<@user>>) -> !u
    %t = genrec.row_reduce sum %c : (tensor<?x9000xf32, #genrec.rows<@user>>) -> !u
    %rs = genrec.add %r, %s : (!u, !u) -> !u
    %logit = genrec.add %rs, %t : (!u, !u) -> !u
    %label = genrec.feature %user "label" : (!genrec.domain<@user>) -> !u
    %loss = genrec.bce_with_logits %logit, %label : (!u, !u) -> !u
    genrec.loss "click" %loss : !u
  }
}
