// RUN: genrec-compile %s --target=cuda --cache=none --emit=cpp -o %t.cu --dump-after-each=%t
// RUN: cat %t/*-plan-memory.mlir | FileCheck %s --check-prefix=PLAN
// RUN: cat %t/*-outline-kernels.mlir | FileCheck %s --check-prefix=OUTLINED
// RUN: FileCheck %s --check-prefix=UNIT --input-file=%t.cu
// RUN: genrec-compile %s --emit=cpp -o - | FileCheck %s --check-prefix=CPU
// RUN: genrec-compile %s --target=cuda --explain | FileCheck %s --check-prefix=JOINT
// RUN: genrec-compile %s --explain | FileCheck %s --check-prefix=EACH

// Kernels that do the same for several lists are one launch on a device, and share a body: it is passed the domains that it
// reads. What reads the results of one list, and is made for each list, too, is a launch behind them. Outputs between them wait.

#aligned = #genrec<operand_role aligned>
#ancestor = #genrec<operand_role ancestor>
#pooled = #genrec<result_role pooled>
#own = #genrec<result_role aligned>
#mean = #genrec<pool_kind mean>
!u = tensor<?xf32, #genrec.rows<@user>>
!a = tensor<?xf32, #genrec.rows<@a>>
!b = tensor<?xf32, #genrec.rows<@b>>

// They run at the same time, so that their results are live together.
// PLAN: buffers = [
// PLAN-SAME: "mean_a"{{[^>]*}}first = [[FIRST:[0-9]+]],
// PLAN-SAME: "mean_b"{{[^>]*}}first = [[FIRST]],

// Errors name each kernel, where it was.
// OUTLINED: %[[MEANS:.*]]:2 = genrec.launch_columns [@row_mean_a, @run_row_mean_a_and_1_more](
// OUTLINED-SAME: name = "row_mean_a_and_1_more", passed_domains = array<i64: 1, 0, 2, 0>, pools = @row_mean_a
// OUTLINED: genrec.launched_kernel "row_mean_a" %[[MEANS]]#0
// OUTLINED: %[[FAR:.*]]:2 = genrec.launch_columns [@row_far_a, @run_row_far_a_and_1_more](%{{.*}}, %[[MEANS]]#0, %{{.*}}, %[[MEANS]]#1)
// OUTLINED-SAME: passed_domains = array<i64: 1, 2>, shapes = @run_row_far_a_and_1_more_columns}
// OUTLINED: genrec.launched_kernel "row_far_a" %[[FAR]]#0
// OUTLINED: genrec.launched_kernel "row_mean_b" %[[MEANS]]#1
// OUTLINED: genrec.launched_kernel "row_far_b" %[[FAR]]#1

// UNIT: static __device__ void row_mean_a(const genrec_step *step, void *const *pointers, int64_t begin, int64_t end) {
// UNIT: parts = kernels::columnPointer<float>(pointers, 2);
// UNIT: leaves = kernels::columnDomain(step, pointers, 3);
// UNIT: kernels::columnDomain(step, pointers, 4)->count;
// UNIT: row_mean_a_pools = {.depth = 1,
// UNIT: run_row_mean_a_and_1_more(const genrec_step *step, __grid_constant__ const kernels::Columns<2, 10> columns) {
// UNIT-NEXT: kernels::runColumns<row_mean_a>(step, columns);
// UNIT: run_row_mean_a_and_1_more_columns[2] = {
// UNIT-NEXT: {.program = 0, .rows = 256, .pointers = 5, .domain = 0, .leaves = 1, .parts = 2},
// UNIT-NEXT: {.program = 0, .rows = 256, .pointers = 5, .domain = 0, .leaves = 2, .parts = 2}};
// UNIT-NOT: void row_mean_b(
// UNIT: static __device__ void row_far_a(
// UNIT: kernels::columnDomain(step, pointers, 3)->parent;
// UNIT: run_row_far_a_and_1_more_columns[2] = {
// UNIT-NEXT: {.program = 0, .rows = 1024, .pointers = 4, .domain = 1},
// UNIT-NEXT: {.program = 0, .rows = 1024, .pointers = 4, .domain = 2}};
// UNIT: predict_compute(genrec_step *step)
// UNIT: kernels::launchPoolColumns(step, run_row_mean_a_and_1_more_columns, run_row_mean_a_and_1_more, {{.*}}, row_mean_a_pools);
// UNIT: kernels::checkFinite(step, [[A:[0-9]+]],
// UNIT: kernels::launchColumns(step, run_row_far_a_and_1_more_columns, run_row_far_a_and_1_more, {{[^,]*}});
// UNIT: kernels::checkFinite(step, [[B:[0-9]+]],
// UNIT: {.name = "row_mean_a_and_1_more", {{.*}}.what = "(outline-kernels-cuda-lists.mlir:
// UNIT-NEXT: {.name = "row_mean_a",
// UNIT-NEXT: {.name = "row_far_a_and_1_more",
// UNIT-NEXT: {.name = "row_far_a",
// UNIT-NEXT: {.name = "output",
// UNIT-NEXT: {.name = "row_mean_b",
// UNIT-NEXT: {.name = "row_far_b",

// CPU-DAG: static void row_mean_a(
// CPU-DAG: static void row_far_b(

// JOINT: in one launch: mean_a and 1 more
// JOINT-NEXT: in one launch: far_a and 1 more
// JOINT: 6 launches;
// EACH: 8 launches;
genrec.model @lists {
  genrec.domain @user
  genrec.domain @a parent @user {column = "a"}
  genrec.domain @b parent @user {column = "b"}
  genrec.program @predict mode predict {
    %user, %a, %b = genrec.batch : !genrec.domain<@user>, !genrec.domain<@a>, !genrec.domain<@b>
    %xa = genrec.feature %a "a.x" : (!genrec.domain<@a>) -> !a
    %mean_a = genrec.row_kernel %a(%xa) attributes {name = "mean_a", operand_roles = [#aligned], pool_kinds = [#mean], result_roles = [#pooled]} : (!genrec.domain<@a>, !a) -> !u {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %far_a = genrec.row_kernel %a(%xa, %mean_a) attributes {name = "far_a", operand_roles = [#aligned, #ancestor], result_roles = [#own]} : (!genrec.domain<@a>, !a, !u) -> !a {
    ^bb0(%v: f32, %m: f32):
      %d = arith.subf %v, %m : f32
      genrec.row_yield %d : f32
    }
    genrec.output "mean_a" %mean_a : !u
    %xb = genrec.feature %b "b.x" : (!genrec.domain<@b>) -> !b
    %mean_b = genrec.row_kernel %b(%xb) attributes {name = "mean_b", operand_roles = [#aligned], pool_kinds = [#mean], result_roles = [#pooled]} : (!genrec.domain<@b>, !b) -> !u {
    ^bb0(%v: f32):
      genrec.row_yield %v : f32
    }
    %far_b = genrec.row_kernel %b(%xb, %mean_b) attributes {name = "far_b", operand_roles = [#aligned, #ancestor], result_roles = [#own]} : (!genrec.domain<@b>, !b, !u) -> !b {
    ^bb0(%v: f32, %m: f32):
      %d = arith.subf %v, %m : f32
      genrec.row_yield %d : f32
    }
    genrec.output "mean_b" %mean_b : !u
    genrec.output "far_a" %far_a : !a
    genrec.output "far_b" %far_b : !b
  }
}
