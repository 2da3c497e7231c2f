// RUN: genrec-compile %S/Inputs/kernel.mlir --emit=cpp -o - | FileCheck %s
// RUN: genrec-compile %S/Inputs/kernel.mlir --emit=object -o %t.o
// REQUIRES: genrec-compile

// Readable code: names and lines of the user's program, values used once inside expressions, a comment per
// kernel; one function per stage, then the tables of the description.

// CHECK: // Made by genrec {{.*}} -O2 --target=cpu --march=native
// CHECK: #include "genrec_rt/abi.h"
// CHECK: #include "genrec_rt/kernels/cpu/launch.h"

// CHECK: // Over @user: mul, exp of scaled, score (model.py:7, model.py:8)
// CHECK-NEXT: static void row_score(void *args, int64_t begin, int64_t end, int64_t chunk) {
// CHECK-NEXT:   const genrec_step *__restrict__ step = kernels::argument<genrec_step>(args, 0);
// CHECK-NEXT:   const float *__restrict__ amount = kernels::argument<float>(args, 1);
// CHECK-NEXT:   float *__restrict__ out_score = kernels::argument<float>(args, 2);
// CHECK-NEXT:   #pragma clang loop vectorize(assume_safety)
// CHECK-NEXT:   for (int64_t row = begin; row < end; ++row) {
// CHECK-NEXT:     float amount_value = amount[row];
// CHECK-NEXT:     out_score[row] = kernels::exp(amount_value * amount_value);
// CHECK-NEXT:   }
// CHECK-NEXT: }

// CHECK: static GENREC_STAGE void predict_compute(genrec_step *step) {
// CHECK-NEXT:   kernels::enter(step, 0);
// CHECK-NEXT:   float *amount = (float *)step->columns[0].values;
// CHECK-NEXT:   float *score = (float *)step->buffers[0];
// CHECK-NEXT:   genrec_domain *user = &step->domains[0];
// CHECK-NEXT:   kernels::launch(step, user, 4096, row_score, amount, score);
// CHECK-NEXT:   kernels::checkFinite(step, 0, score, user->count, 1, 1);
// CHECK-NEXT:   kernels::enter(step, 1);
// CHECK-NEXT:   genrec_rt_report_output(step, 0, user, score, {{.*}}nullptr);
// CHECK-NEXT: }

// CHECK: {.name = "row_score", .location = {.file = "model.py", .line = 7, .name = "scaled"}, .what = "mul, exp of scaled, score (model.py:7, model.py:8)", .stage = 2, .costs = op_0_costs, .cost_count = 1, .is_fused = 1}
// CHECK: extern "C" const genrec_model_desc *genrec_model() {
// CHECK-NEXT:   return (const genrec_model_desc *)&model;
