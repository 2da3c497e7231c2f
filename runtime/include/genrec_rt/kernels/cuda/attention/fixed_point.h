//===- fixed_point.h - Sums that do not depend on the order of their terms -===//
//
// Gradients that many blocks add to (of queries in the tensor core kernels, of
// bias buckets everywhere) are summed as integers, multiples of a power of two
// that is small against a proven bound of the sum. Integer addition is
// associative: the result has the same bits in whatever order blocks run, with
// no floating-point atomics and no waiting of blocks for each other.
//
// With silu'(s) in [-0.1, 1.1] and Cauchy-Schwarz, for query i of a list of n rows
//
//   |dS_ij|        <= b_i = 1.1 / norm * keep * |dO_i| * max_j |v_j|            (silu)
//   sum_j |dS_ij|  <= n * b_i
//   |dS_ij|, sum_j |dS_ij| <= b_i = keep * |dO_i| * max_j |v_j| + |delta_i|     (softmax)
//
// (the norms are Euclidean, keep = 1 / (1 - p), delta_i = dO_i . out_i), so that
// |dQ_ie| <= scale * max_je |k_je| * sum_j |dS_ij|. A quantum of dQ is that bound
// times 2^-30: with 2^20 keys added up tile by tile, rounding stays below 2^-17 of the
// bound. A bias bucket gains at most b_i from each of P = rows * maxLength * heads
// pairs: its quantum is max_i b_i * P * 2^-62.
//
// A bound that is not finite makes the quantum NaN, and all sums with it; so does
// a term that is not.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_FIXED_POINT_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_FIXED_POINT_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

constexpr uint32_t kNaNBits = 0x7FC00000u;

/// A power of two of at least `bound`; NaN where the bound is infinite or NaN.
/// Bounds below 2^-90 count as 2^-90, so that quanta and their inverses are normal.
__host__ __device__ inline float powerAbove(float bound) {
  uint32_t bits;
  __builtin_memcpy(&bits, &bound, 4);
  constexpr uint32_t kInfinity = 0x7F800000u, kLeast = (127u - 90u) << 23, kMost = 0x7E800000u;
  if (bits > kMost) // also NaN, and what would be infinite as a power
    bits = kNaNBits;
  else if (bits < kLeast)
    bits = kLeast;
  else
    bits = (bits + 0x007FFFFFu) & kInfinity;
  float power;
  __builtin_memcpy(&power, &bits, 4);
  return power;
}

/// Of a row of dQ, given powerAbove of its bound.
__host__ __device__ inline float queryQuantum(float power) { return power * 0x1p-30f; }
__device__ inline float inverseQueryQuantum(float power) {
  constexpr uint32_t kExponents = (2u * 127u + 30u) << 23; // that of 2^30 / power, and of power
  return power == power ? __uint_as_float(kExponents - __float_as_uint(power)) : power;
}

/// Bits that a count of terms takes: ceil(log2(count)).
__host__ __device__ inline int bitsOfCount(int64_t count) {
  int bits = 0;
  while (bits < 62 && (int64_t(1) << bits) < count)
    ++bits;
  return bits;
}

/// 2^exponent.
__host__ __device__ inline double powerOfTwo(int exponent) {
  uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double power;
  __builtin_memcpy(&power, &bits, 8);
  return power;
}

/// Rounding allowance on bounds: products and sums in float, weights in bfloat16.
constexpr float kBoundSlack = 1.05f;

/// Of the sums of bias gradients: found from the greatest bound in a call.
struct BiasQuantum {
  double quantum, inverse;
  uint32_t *greatest; ///< bits of that bound

  __device__ BiasQuantum(uint32_t *greatest, int pairBits) : greatest(greatest) {
    const uint32_t bits = loadRelaxed(greatest);
    float bound;
    __builtin_memcpy(&bound, &bits, 4);
    const double power = static_cast<double>(powerAbove(bound));
    quantum = power * powerOfTwo(pairBits - 62);
    inverse = 1.0 / quantum;
  }

  /// How many quanta a term is.
  __device__ Word multiple(float value) const {
    if (!(fabsf(value) < INFINITY))
      atomicMax(greatest, kNaNBits);
    return static_cast<Word>(static_cast<long long>(rint(static_cast<double>(value) * inverse)));
  }
  __device__ void add(Word *sums, int bucket, float value) const {
    atomicAdd(sums + bucket, multiple(value));
  }
  __device__ float value(Word sum) const {
    return static_cast<float>(static_cast<double>(static_cast<long long>(sum)) * quantum);
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_FIXED_POINT_H
