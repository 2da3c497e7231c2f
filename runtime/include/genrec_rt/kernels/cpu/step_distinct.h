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

/// `memory` is what genrec_rt_distinct_rows left for groups of inGroup[g] lookups; the values of
/// the distinct rows of group g are values[g], [., the g-th D]. The rest as distinct.h says.
template <int N, bool Bf16, int... D>
inline void distinctLinear(genrec_step *step, const void *memory, const int64_t *inGroup,
                           const float *const *values, const int64_t *ldValues, const float *weight,
                           const int64_t *columns, float *y, int64_t ldY) {
  const DistinctLookups all(memory);
  const int32_t threads = genrec_rt_pool_threads(step->pool);
  int64_t group = 0, first = 0;
  auto multiply = [&]<int Width>() {
    const DistinctLookups own = all.from(first, inGroup[group]);
    const int64_t bytes = distinctLinearScratchBytes<Width, N>(own, threads);
    distinctLinear<Width, N, Bf16>(step->pool, own, values[group], ldValues[group], weight,
                                   columns + first, y, ldY, /*adds=*/group > 0,
                                   genrec_rt_thread_scratch(step, bytes));
    first += inGroup[group++];
  };
  (multiply.template operator()<D>(), ...);
}

/// Few lookups share the threads within each, many run beside each other; the bits are the same.
template <int N, bool Bf16, int... D>
inline void distinctLinearGradient(genrec_step *step, const void *memory, const int64_t *inGroup,
                                   const float *const *values, const int64_t *ldValues,
                                   const float *weight, const int64_t *columns,
                                   const float *gradient, int64_t ldGradient, float *const *dvalues,
                                   float *dweight) {
  const DistinctLookups all(memory);
  const int32_t threads = genrec_rt_pool_threads(step->pool);
  int64_t group = 0, first = 0;
  auto run = [&]<int Width>() {
    const DistinctLookups own = all.from(first, inGroup[group]);
    auto multiply = [&](genrec_rt_pool *pool, int64_t part) {
      const int64_t bytes = distinctLinearGradientScratchBytes<Width, N>(own, pool ? threads : 1);
      distinctLinearGradient<Width, N, Bf16>(
          pool, own, part, values[group], ldValues[group], weight, columns + first, gradient,
          ldGradient, dvalues[group], dweight, genrec_rt_thread_scratch(step, bytes));
    };
    if (own.parts < 2 * threads)
      for (int64_t part = 0; part < own.parts; ++part)
        multiply(step->pool, part);
    else
      parallelFor(step->pool, own.parts, 1,
                  [&](int64_t begin, int64_t, int64_t) { multiply(nullptr, begin); });
    dweight += own.parts * Width * N;
    first += inGroup[group++];
  };
  (run.template operator()<D>(), ...);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_DISTINCT_H
