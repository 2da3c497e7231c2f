//===- step.h - What emitted stages and library calls take from a step -*- C++ -*-===//
//
// A stage of a model for CUDA runs on the host and queues work on the step's stream. What
// `step->buffers`, `columns` and `parameters` point at is memory of the device. Of a domain the
// host knows the capacity; its count is in the descriptor that `domain->device` points at, which
// kernels read.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_H
#define GENREC_RT_KERNELS_CUDA_STEP_H

#include "genrec_rt/abi.h"
#include "genrec_rt/cuda/check.h"
#include "genrec_rt/kernels/shared/stage.h"

#include <stddef.h>

namespace genrec::rt::kernels {

inline cudaStream_t streamOf(const genrec_step *step) {
  return static_cast<cudaStream_t>(step->stream);
}

/// Memory of the device for what is queued before the next call that takes some; aligned to 256
/// bytes.
inline void *scratchOf(genrec_step *step, int64_t bytes) {
  return genrec_rt_thread_scratch(step, bytes);
}

/// Where kernels find a constant of the unit.
template <class T, size_t N> const T *deviceAddress(const T (&constant)[N]) {
#if defined(GENREC_SIMT)
  return constant;
#else
  void *address = nullptr;
  GENREC_CUDA_CHECK(cudaGetSymbolAddress(&address, constant));
  return static_cast<const T *>(address);
#endif
}

/// -1 for all rows that the buffer of a stacked domain (stackDomains) has room for: the key of no
/// row.
inline void fillKeys(genrec_step *step, const genrec_domain *domain, int64_t *keys) {
  const auto bytes = static_cast<size_t>(domain->capacity) * sizeof(int64_t);
  GENREC_CUDA_CHECK(cudaMemsetAsync(keys, 0xFF, bytes, streamOf(step)));
}

/// With --profile, notes that op `op` begins.
inline void enter(genrec_step *step, int32_t op) {
  if (step->profile)
    genrec_rt_enter(step, op);
}

/// With --check-finite, looks for NaN and infinity in what op `op` wrote: the rows of `domain`
/// (null: one), `rowSize` floats each, `stride` apart.
inline void checkFinite(genrec_step *step, int32_t op, const float *values,
                        const genrec_domain *domain, int64_t rowSize, int64_t stride) {
  if (step->check_finite)
    genrec_rt_check_device_finite(step, op, values, domain, rowSize, stride);
}

} // namespace genrec::rt::kernels

/// What emitted code calls the namespace.
namespace kernels = genrec::rt::kernels;

#endif // GENREC_RT_KERNELS_CUDA_STEP_H
