//===- lane_reduction.h - What the lanes of a warp have, combined -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_LANE_REDUCTION_H
#define GENREC_RT_KERNELS_CUDA_LANE_REDUCTION_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// Combines the values of every `Lanes` neighbouring lanes; each of them gets the result. All lanes
/// of `mask` call it. Partners are half as far away from step to step, so a sum has one order.
template <int Lanes = kWarp, class T, class Combine>
__device__ __forceinline__ T reduceLanes(T x, const Combine &combine, uint32_t mask = kAllLanes) {
  static_assert(Lanes > 0 && Lanes <= kWarp && (Lanes & (Lanes - 1)) == 0);
  for (int away = Lanes / 2; away > 0; away /= 2)
    x = combine(x, __shfl_xor_sync(mask, x, away));
  return x;
}
template <int Lanes = kWarp, class T>
__device__ __forceinline__ T sumOfLanes(T x, uint32_t mask = kAllLanes) {
  return reduceLanes<Lanes>(x, [](T a, T b) { return a + b; }, mask);
}
template <int Lanes = kWarp> __device__ __forceinline__ float mostOfLanes(float x) {
  return reduceLanes<Lanes>(x, [](float a, float b) { return fmaxf(a, b); });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LANE_REDUCTION_H
