//===- block_scan.h - Prefix sums within a block -----------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_BLOCK_SCAN_H
#define GENREC_RT_KERNELS_CUDA_BLOCK_SCAN_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// The sum of `value` over the lanes up to this one.
template <class T> __device__ T inclusiveWarpSum(T value) {
  for (int by = 1; by < kWarp; by *= 2) {
    const T other = __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(by));
    if (laneOf() >= by)
      value += other;
  }
  return value;
}

/// The sum of `value` over the threads before this one of a block of Threads, and in
/// `total` over all. Called by the whole block.
template <int Threads, class T> __device__ T exclusiveBlockSum(T value, T &total) {
  static_assert(Threads % kWarp == 0 && Threads <= 1024);
  constexpr int kWarps = Threads / kWarp;
  __shared__ T sums[kWarps];
  const T inclusive = inclusiveWarpSum(value);
  if (laneOf() == kWarp - 1)
    sums[warpOf()] = inclusive;
  __syncthreads();
  T before = 0;
  total = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    before += warp < warpOf() ? sums[warp] : T(0);
    total += sums[warp];
  }
  __syncthreads(); // the next call writes the sums
  return before + inclusive - value;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_BLOCK_SCAN_H
