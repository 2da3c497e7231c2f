//===- gated_cross.h - the kernel of own.gated_cross ------------*- C++ -*-===//
//
// Compiled with each model that has the op; nothing else of the plugin is in a binary.
//
//===----------------------------------------------------------------------===//

#ifndef OWN_GATED_CROSS_H
#define OWN_GATED_CROSS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/rowmath.h"
#include "genrec_rt/parallel.h"

namespace own {
inline namespace GENREC_RT_ISA {

/// y = x0 ∘ (x · weight + bias) ∘ σ(x · gate) + x for `rows` rows of D floats, those of x0 and x
/// `ldX0` and `ldX` floats apart, those of y densely. Each element is one chain of operations in a
/// fixed order, so that bits do not depend on the number of threads.
template <int D>
inline void gatedCross(genrec_step *step, int64_t rows, const float *x0, int64_t ldX0,
                       const float *x, int64_t ldX, const float *weight, const float *bias,
                       const float *gate, float *y) {
  constexpr int64_t kGrain = 64;
  genrec::rt::parallelFor(step->pool, rows, kGrain, [=](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row) {
      float u[D], z[D] = {};
      for (int j = 0; j < D; ++j)
        u[j] = bias[j];
      for (int i = 0; i < D; ++i) {
        float value = x[row * ldX + i];
        for (int j = 0; j < D; ++j) {
          u[j] += value * weight[i * D + j];
          z[j] += value * gate[i * D + j];
        }
      }
      for (int j = 0; j < D; ++j)
        y[row * D + j] =
            x0[row * ldX0 + j] * u[j] / (1.0f + genrec::rt::kernels::exp(-z[j])) + x[row * ldX + j];
    }
  });
}

} // namespace GENREC_RT_ISA
} // namespace own

#endif // OWN_GATED_CROSS_H
