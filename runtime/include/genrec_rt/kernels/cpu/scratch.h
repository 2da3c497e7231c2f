//===- scratch.h - Cutting scratch memory into arrays -----------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_SCRATCH_H
#define GENREC_RT_KERNELS_CPU_SCRATCH_H

#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Cuts scratch into arrays aligned to 64 bytes; from null it only counts.
class ScratchCursor {
public:
  explicit ScratchCursor(void *base) : base(static_cast<char *>(base)) {}

  template <class T> T *take(int64_t count) {
    char *at = base ? base + used : nullptr;
    used += roundUp(count * static_cast<int64_t>(sizeof(T)), 64);
    return reinterpret_cast<T *>(at);
  }
  int64_t bytes() const { return used; }

private:
  char *base;
  int64_t used = 0;
};

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_SCRATCH_H
