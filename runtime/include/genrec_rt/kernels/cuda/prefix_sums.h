//===- prefix_sums.h - Prefix sums of an array -------------------*- C++ -*-===//
//
// In one launch, whose blocks look back at the tiles before theirs (kernels/cuda/look_back.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H
#define GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// Words of memory that a call takes: zeros before it, and zeros again behind it.
int64_t prefixSumWords(int64_t count);

/// Every one of `count` numbers becomes the sum of those before it; sums are below 2^32.
void addBefore(uint32_t *numbers, int64_t count, Word *states, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H
