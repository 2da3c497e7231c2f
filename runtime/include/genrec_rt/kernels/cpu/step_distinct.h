//===- step_distinct.h - Products per distinct row as emitted stages call them -*- C++ -*-===//
//
// distinct.h and distinct_gradient.h with scratch from the step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_STEP_DISTINCT_H
#define GENREC_RT_KERNELS_CPU_STEP_DISTINCT_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/distinct_gradient.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// `memory` is what genrec_rt_distinct_rows left; the rest as distinct.h says.
template <int D, int N, bool Bf16 = false>
inline void distinctLinear(genrec_step *step, const void *memory, const float *values,
                           int64_t ldValues, const float *weight, const int64_t *columns, float *y,
                           int64_t ldY) {
  DistinctLookups lookups(memory);
  int64_t bytes = distinctLinearScratchBytes<D, N>(lookups, genrec_rt_pool_threads(step->pool));
  distinctLinear<D, N, Bf16>(step->pool, lookups, values, ldValues, weight, columns, y, ldY,
                             genrec_rt_thread_scratch(step, bytes));
}

/// Few parts share the threads within each, many run beside each other; the bits are the same.
template <int D, int N, bool Bf16 = false>
inline void distinctLinearGradient(genrec_step *step, const void *memory, const float *values,
                                   int64_t ldValues, const float *weight, const int64_t *columns,
                                   const float *gradient, int64_t ldGradient, float *dvalues,
                                   float *dweight) {
  DistinctLookups lookups(memory);
  const int32_t threads = genrec_rt_pool_threads(step->pool);
  auto run = [&](genrec_rt_pool *pool, int64_t part) {
    const int64_t bytes = distinctLinearGradientScratchBytes<D, N>(lookups, pool ? threads : 1);
    distinctLinearGradient<D, N, Bf16>(pool, lookups, part, values, ldValues, weight, columns,
                                       gradient, ldGradient, dvalues, dweight,
                                       genrec_rt_thread_scratch(step, bytes));
  };
  if (lookups.parts < 2 * threads)
    for (int64_t part = 0; part < lookups.parts; ++part)
      run(step->pool, part);
  else
    parallelFor(step->pool, lookups.parts, 1,
                [&](int64_t begin, int64_t, int64_t) { run(nullptr, begin); });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_DISTINCT_H
