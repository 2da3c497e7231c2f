//===- scratch.h - Cutting scratch memory into arrays -----------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_SCRATCH_H
#define GENREC_RT_KERNELS_CUDA_SCRATCH_H

#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::cuda {

/// Cuts scratch of a device into arrays aligned to 256 bytes, as what it allocates is; from null it
/// only counts.
class ScratchCursor {
public:
  explicit ScratchCursor(void *base) : base(static_cast<char *>(base)) {}

  template <class T> T *take(int64_t count) {
    char *at = base ? base + used : nullptr;
    used += kernels::roundUp(count * static_cast<int64_t>(sizeof(T)), 256);
    return reinterpret_cast<T *>(at);
  }
  int64_t bytes() const { return used; }

private:
  char *base;
  int64_t used = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SCRATCH_H
