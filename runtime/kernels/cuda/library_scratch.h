//===- library_scratch.h - What products through cuBLASLt share -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H
#define GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H

#include "genrec_rt/cuda/check.h"

#include <cstdint>

namespace genrec::rt::cuda {

inline int64_t roundedTo(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

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

/// Parts of a piece of scratch; a null pointer only counts.
class Parts {
public:
  explicit Parts(void *memory) : base(static_cast<char *>(memory)) {}
  template <class T> T *take(int64_t count) {
    char *at = base ? base + bytes : nullptr;
    bytes += roundedTo(count * static_cast<int64_t>(sizeof(T)), 256);
    return reinterpret_cast<T *>(at);
  }
  int64_t bytes = 0;

private:
  char *base;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIBRARY_SCRATCH_H
