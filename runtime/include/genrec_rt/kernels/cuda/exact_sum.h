//===- exact_sum.h - Sums of floats without rounding ------------*- C++ -*-===//
//
// What ranks/exact_sum.h says of a sum, on the device: a fixed-point number that holds every finite
// float, rounded once at the end, so that its bits do not depend on what is added when.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_EXACT_SUM_H
#define GENREC_RT_KERNELS_CUDA_EXACT_SUM_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

constexpr int64_t kExactSumScratchBytes = 128;

/// *sum = the sum of a float per row of `rows`, of the device, at most `capacity`; an infinity
/// where it is too large. What is infinite or NaN makes the sum so; a sum of 0 is +0.
void addExactly(const genrec_domain *rows, int64_t capacity, const float *values, float *sum,
                void *scratch, cudaStream_t stream);

/// The same in two steps, for ranks that have rows of their own: `limbs`, kExactSumScratchBytes,
/// become the sum of this rank's values, without rows whose `counts` is 0 (null: all count); of
/// several ranks, one behind another, the sum is rounded, and the first ones are written to.
void addLimbsExactly(const genrec_domain *rows, int64_t capacity, const float *values,
                     const float *counts, void *limbs, cudaStream_t stream);
void roundExactly(void *limbs, int32_t ranks, float *sum, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_EXACT_SUM_H
