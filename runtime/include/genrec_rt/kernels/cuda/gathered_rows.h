//===- gathered_rows.h - Products with gathered rows ------------*- C++ -*-===//
//
// The functions of cpu/gathered_rows.h, by the lanes of a row (lanes.h), in another order of
// addition. Indices, coefficients and vectors that all lanes read lie in memory.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
#define GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H

#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// out[j] = dot(row index[j], q) for j < n; `out` is shared. Of lanes that fill several warps,
/// each warp takes every so many rows.
template <int64_t D, int64_t L, int64_t V, class Index>
__device__ inline void gatherDot(const float *base, int64_t ld, const Index *index, int64_t n,
                                 const float *q, float *out) {
  constexpr int64_t kGroup = kLanesOfWarp<L>, kGroups = L / kGroup;
  // A lane of one row has all of it.
  constexpr int64_t kPack = L == 1 ? D : V;
  for (int64_t j = lane<L>() / kGroup; j < n; j += kGroups) {
    const float *row = base + static_cast<int64_t>(index[j]) * ld;
    float total = 0;
    forElements<D, kGroup, kPack>(
        [&](int64_t, int64_t i) { total = detail::mulAdd(row[i], q[i], total); });
#pragma unroll
    for (int64_t by = kGroup / 2; by > 0; by /= 2)
      total += __shfl_xor_sync(laneMask<kGroup>(), total, static_cast<int>(by));
    if (isFirstLane<kGroup>())
      out[j] = total;
  }
  meet<L>();
}

/// out[D] = sum over j < n of coefficients[j] * row index[j]; zeros for n = 0.
template <int64_t D, int64_t L, int64_t V, class Index, class Out>
__device__ inline void gatherSum(const float *base, int64_t ld, const Index *index,
                                 const float *coefficients, int64_t n, Out &&out) {
  forElements<D, L, V>([&](int64_t slot, int64_t element) { elementOf(out, slot, element) = 0; });
  for (int64_t j = 0; j < n; ++j) {
    const float *row = base + static_cast<int64_t>(index[j]) * ld;
    const float coefficient = coefficients[j];
    forElements<D, L, V>([&](int64_t slot, int64_t element) {
      float &total = elementOf(out, slot, element);
      total = detail::mulAdd(coefficient, row[element], total);
    });
  }
  meetAfterWriting<L, Out>();
}

/// row index[j] of the accumulator += coefficients[j] * q, one j after another.
template <int64_t D, int64_t L, int64_t V, class Index>
__device__ inline void scatterAddOuter(float *base, int64_t ld, const Index *index,
                                       const float *coefficients, int64_t n, const float *q) {
  for (int64_t j = 0; j < n; ++j) {
    float *row = base + static_cast<int64_t>(index[j]) * ld;
    const float coefficient = coefficients[j];
    forElements<D, L, V>([&](int64_t, int64_t element) {
      row[element] = detail::mulAdd(coefficient, q[element], row[element]);
    });
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
