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
// bound. With silu it is at least 2^-22 of what a tile of kTileKeys keys adds at most, so
// that a tile's sums are rounded without a conversion (NearestIntegers); rounding stays
// below 2^-20 of the bound up to 2^15 keys, and below 2^-17 with 2^20. A bias bucket gains
// at most b_i from each of P = rows * maxLength * heads pairs: its quantum is
// max_i b_i * P * 2^-62.
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

/// The inverse of a power of two; NaN of NaN.
__device__ inline float inverseOfPower(float power) {
  return power == power ? __uint_as_float((2u * 127u << 23) - __float_as_uint(power)) : power;
}

/// The integers nearest to products below 2^22: behind the sum with 1.5 * 2^23 they stand in the
/// low bits, which takes one instruction of those that products are made with.
struct NearestIntegers {
  static constexpr uint32_t kZero = 0x4B400000u; ///< the bits of 1.5 * 2^23
  uint32_t seen = 0;

  __device__ __forceinline__ int of(float value, float scale) {
    const uint32_t bits = __float_as_uint(__fmaf_rn(value, scale, 0x1.8p23f));
    seen |= bits;
    return static_cast<int>(bits - kZero);
  }
  /// Whether all products were finite: sums of those have the exponent of 2^23.
  __device__ __forceinline__ bool finite() const { return seen >> 23 == kZero >> 23; }
};

/// Keys of a block, at most, of which a row of dQ gets a sum at once.
constexpr int kTileKeys = 128;
/// Whether what these add to dQ is below 2^kShortBits quanta.
template <class C> constexpr bool kShortQuanta = !C::Softmax;
constexpr int kShortBits = 22, kLongBits = 30;
/// The quantum of a row of dQ in a list of so many keys whose bound is 1. A tile adds
/// kTileKeys / keys of the bound at most, or all of it.
template <class C> __device__ inline float quantumOfOne(int64_t keys) {
  int bits = kShortQuanta<C> ? kShortBits : kLongBits;
  for (int64_t tiles = keys / kTileKeys; tiles > 1 && bits < kLongBits; tiles /= 2)
    ++bits;
  return __uint_as_float(static_cast<uint32_t>(127 - bits) << 23);
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
    return static_cast<Word>(__double2ll_rn(static_cast<double>(value) * inverse));
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
