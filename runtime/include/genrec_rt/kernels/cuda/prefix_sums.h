//===- prefix_sums.h - Prefix sums of an array -------------------*- C++ -*-===//
//
// In one launch: a block per tile adds up its own numbers, then looks back at the tiles before it,
// which have shown their own sums or already those of all before them (Merrill and Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016, section 4). A tile shows state
// and sum in one word, so nothing else has to be ordered. Blocks take tiles by number, so the ones
// before are always under way.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H
#define GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// Words of memory that a call takes, zeros before it.
int64_t prefixSumWords(int64_t count);

/// Every one of `count` numbers becomes the sum of those before it; sums are below 2^32.
void addBefore(uint32_t *numbers, int64_t count, Word *states, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_PREFIX_SUMS_H
