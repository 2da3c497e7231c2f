//===- store_shape.h - How the kernels of the store are launched -*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H
#define GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H

#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>

namespace genrec::rt::cuda {

constexpr int kStoreThreads = 256;

/// Enough blocks to fill a device several times over; kernels loop over the rest.
inline LaunchShape shapeOf(int64_t items, int64_t threadsEach) {
  constexpr int64_t kMostBlocks = 4096;
  const int64_t blocks =
      std::clamp<int64_t>(blocksFor(items * threadsEach, kStoreThreads), 1, kMostBlocks);
  return {dim3(static_cast<unsigned>(blocks)), dim3(kStoreThreads)};
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H
