//===- step_distinct.h - Products per distinct row as emitted stages call them -*- C++ -*-===//
//
// The calls of cpu/step_distinct.h (distinct.h). Of the lookups the host knows how many there are
// and their domain; the rest lies in `memory`, the device's.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H
#define GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H

#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

/// `memory` is what genrec_rt_distinct_rows left for `parts` lookups over `rows`; the rest as
/// distinct.h says.
template <int D, int N, bool Bf16 = false>
void distinctLinear(genrec_step *step, int64_t parts, const genrec_domain *rows, void *memory,
                    const float *values, int64_t ldValues, const float *weight,
                    const int64_t *columns, float *y, int64_t ldY) {
  const cuda::DistinctProduct product{
      {parts, rows, memory}, D, N, values, ldValues, weight, columns, Bf16};
  void *scratch = scratchOf(step, cuda::distinctProductScratchBytes(product));
  cuda::multiplyDistinct(product, y, ldY, scratch, streamOf(step));
}

template <int D, int N, bool Bf16 = false>
void distinctLinearGradient(genrec_step *step, int64_t parts, const genrec_domain *rows,
                            void *memory, const float *values, int64_t ldValues,
                            const float *weight, const int64_t *columns, const float *gradient,
                            int64_t ldGradient, float *dvalues, float *dweight) {
  const cuda::DistinctProduct product{
      {parts, rows, memory}, D, N, values, ldValues, weight, columns, Bf16};
  void *scratch = scratchOf(step, cuda::distinctGradientScratchBytes(product));
  cuda::multiplyDistinctGradient(product, {gradient, ldGradient, dvalues, dweight}, scratch,
                                 streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H
