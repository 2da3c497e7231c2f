//===- library_scratch.h - What products through cuBLASLt share -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H
#define GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H

#include "genrec_rt/cuda/check.h"

#include <cstdint>

namespace genrec::rt::cuda {

inline int currentDevice() {
  int device = 0;
  GENREC_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

/// The largest power of two, up to 16, that divides an address.
inline uint32_t alignmentOf(const void *pointer) {
  uint32_t alignment = 16;
  while (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    alignment /= 2;
  return alignment;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H
