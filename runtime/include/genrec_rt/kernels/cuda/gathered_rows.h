//===- gathered_rows.h - Products with gathered rows ------------*- C++ -*-===//
//
// The functions of cpu/gathered_rows.h, by a warp (warp.h), in another order of addition.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
#define GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H

#include "genrec_rt/kernels/cuda/warp.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

/// The sum over all 32 lanes, in every lane.
__device__ inline float sumOfLanes(float x) {
  for (int by = 16; by > 0; by /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, by);
  return x;
}

} // namespace detail

/// out[j] = dot(row index[j], q) for j < n.
template <int64_t D, class Index>
__device__ inline void gatherDot(const float *base, int64_t ld, const Index *index, int64_t n,
                                 const float *q, float *out) {
  for (int64_t j = 0; j < n; ++j) {
    const float *row = base + static_cast<int64_t>(index[j]) * ld;
    float total = 0;
    for (int64_t i = lane(); i < D; i += kWarpLanes)
      total = detail::mulAdd(row[i], q[i], total);
    total = detail::sumOfLanes(total);
    if (lane() == 0)
      out[j] = total;
  }
  __syncwarp();
}

/// out[D] = sum over j < n of coefficients[j] * row index[j]; zeros for n = 0.
template <int64_t D, class Index>
__device__ inline void gatherSum(const float *base, int64_t ld, const Index *index,
                                 const float *coefficients, int64_t n, float *out) {
  for (int64_t i = lane(); i < D; i += kWarpLanes) {
    float total = 0;
    for (int64_t j = 0; j < n; ++j)
      total = detail::mulAdd(coefficients[j], base[static_cast<int64_t>(index[j]) * ld + i], total);
    out[i] = total;
  }
  __syncwarp();
}

/// row index[j] of the accumulator += coefficients[j] * q, one j after another.
template <int64_t D, class Index>
__device__ inline void scatterAddOuter(float *base, int64_t ld, const Index *index,
                                       const float *coefficients, int64_t n, const float *q) {
  for (int64_t j = 0; j < n; ++j) {
    float *row = base + static_cast<int64_t>(index[j]) * ld;
    for (int64_t i = lane(); i < D; i += kWarpLanes)
      row[i] = detail::mulAdd(coefficients[j], q[i], row[i]);
  }
  __syncwarp();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
