//===- offsets.h - Searching where lists begin --------------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_OFFSETS_H
#define GENREC_RT_KERNELS_CUDA_OFFSETS_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// The last of `count` ascending `offsets` that is at most `position`; the first is. Where they are
/// offsets of lists: the list that holds the position, behind the empty ones that begin there too.
__device__ inline int64_t lastAtMost(const int64_t *offsets, int64_t count, int64_t position) {
  int64_t low = 0;
  for (int64_t high = count; high - low > 1;) {
    const int64_t middle = (low + high) / 2;
    if (offsets[middle] <= position)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// The same by a whole warp, which looks at 32 of them at a time: one load for another where there
/// are few.
__device__ inline int64_t lastAtMostByWarp(const int64_t *offsets, int64_t count,
                                           int64_t position) {
  int64_t low = 0;
  for (int64_t high = count; high - low > 1;) {
    const int64_t step = (high - low + kWarp - 1) / kWarp, at = low + (laneOf() + 1) * step;
    const int64_t atMost = __popc(
        __ballot_sync(kAllLanes, at < high && offsets[at] <= position)); // of the first lanes
    high = min(high, low + (atMost + 1) * step);
    low += atMost * step;
  }
  return low;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_OFFSETS_H
