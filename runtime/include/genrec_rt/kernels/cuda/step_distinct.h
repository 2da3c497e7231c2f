//===- step_distinct.h - Products per distinct row as emitted stages call them -*- C++ -*-===//
//
// The calls of cpu/step_distinct.h (distinct.h). Of the lookups the host knows how many there are
// in each group and their domain; the rest lies in `memory`, the device's.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H
#define GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H

#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/cuda/step.h"

#include <array>

namespace genrec::rt::kernels {

namespace detail {

/// Groups of inGroup[g] lookups, of rows of D floats.
template <int... D>
std::array<cuda::DistinctGroup, sizeof...(D)>
distinctGroups(const int64_t *inGroup, const float *const *values, const int64_t *ldValues) {
  return {cuda::DistinctGroup{*inGroup++, D, *values++, *ldValues++}...};
}

} // namespace detail

/// `memory` is what genrec_rt_distinct_rows left for groups of inGroup[g] lookups over `rows`; the
/// values of the distinct rows of group g are values[g], [., the g-th D]. The rest as distinct.h
/// says.
template <int N, bool Bf16, int... D>
void distinctLinear(genrec_step *step, const genrec_domain *rows, void *memory,
                    const int64_t *inGroup, const float *const *values, const int64_t *ldValues,
                    const float *weight, const int64_t *columns, float *y, int64_t ldY) {
  const auto groups = detail::distinctGroups<D...>(inGroup, values, ldValues);
  const cuda::DistinctProduct product{
      {cuda::countLookups(groups), rows, memory}, groups, N, weight, columns, Bf16};
  void *scratch = scratchOf(step, cuda::distinctProductScratchBytes(product));
  cuda::multiplyDistinct(product, y, ldY, scratch, streamOf(step));
}

template <int N, bool Bf16, int... D>
void distinctLinearGradient(genrec_step *step, const genrec_domain *rows, void *memory,
                            const int64_t *inGroup, const float *const *values,
                            const int64_t *ldValues, const float *weight, const int64_t *columns,
                            const float *gradient, int64_t ldGradient, float *const *dvalues,
                            float *dweight) {
  const auto groups = detail::distinctGroups<D...>(inGroup, values, ldValues);
  const cuda::DistinctProduct product{
      {cuda::countLookups(groups), rows, memory}, groups, N, weight, columns, Bf16};
  void *scratch = scratchOf(step, cuda::distinctGradientScratchBytes(product));
  cuda::multiplyDistinctGradient(product, {gradient, ldGradient, dvalues, dweight}, scratch,
                                 streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_STEP_DISTINCT_H
