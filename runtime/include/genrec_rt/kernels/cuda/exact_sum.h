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
#include <span>

namespace genrec::rt::cuda {

/// A sum: of a float per row of `rows`, of the device, at most `capacity`; an infinity where it is
/// too large. What is infinite or NaN makes the sum so; a sum of 0 is +0.
struct ExactTerms {
  const genrec_domain *rows = nullptr;
  int64_t capacity = 0;
  const float *values = nullptr;
  const float *counts = nullptr; ///< by row: 0 leaves it out; null: all count
};

/// Sums that one launch adds up, and bytes of the limbs of one.
constexpr int kMostExactSums = 64;
constexpr int64_t kExactSumBytes = 128;

/// limbs[i] = the sum of terms[i], of kExactSumBytes, not rounded.
void addExactly(std::span<const ExactTerms> terms, void *limbs, cudaStream_t stream);

/// The limbs of a sum: of `ranks`, `distance` bytes from one to the next.
struct ExactLimbs {
  const void *limbs = nullptr;
  int32_t ranks = 1;
  int64_t distance = 0;
  float *sum = nullptr;
};

/// *limbs[i].sum = the sum of its ranks, rounded once.
void roundExactly(std::span<const ExactLimbs> limbs, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_EXACT_SUM_H
