//===- store_shape.h - How the kernels of the store are launched -*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H
#define GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H

#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

constexpr int kStoreThreads = 256;

/// Enough blocks to fill a device several times over; kernels loop over the rest.
inline LaunchShape shapeOf(int64_t items, int64_t threadsEach) {
  return shapeOfThreads(items * threadsEach, kStoreThreads);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_STORE_SHAPE_H
