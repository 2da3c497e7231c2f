//===- factors.h - Factors rounded to bfloat16, on the device -----*- C++ -*-===//
//
// What products with bf16 round (docs/mixed-precision.md), with the bits of cpu/bf16.h: to nearest,
// ties to even; numbers below the smallest normal one become 0; NaN stays NaN.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_FACTORS_H
#define GENREC_RT_KERNELS_CUDA_FACTORS_H

#include "genrec_rt/kernels/cuda/bf16.h"

namespace genrec::rt::cuda {

/// `x`, or a zero of its sign where it is below the smallest normal number.
__host__ __device__ inline float normalOrZero(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(result) : "f"(x)); // by 1
  return result;
#else
  constexpr float kLeastNormal = 0x1p-126f;
  return x < kLeastNormal && x > -kLeastNormal ? __builtin_copysignf(0.0f, x) : x;
#endif
}

/// `x` as a factor: rounded to bfloat16.
__host__ __device__ inline Bf16 bf16Factor(float x) { return fromFloat<Bf16>(normalOrZero(x)); }
/// Two of them, `low` in the low half.
__host__ __device__ inline uint32_t packFactors(float low, float high) {
  return packBf16(normalOrZero(low), normalOrZero(high));
}

/// `x`, rounded to bfloat16 where `rounds`.
__host__ __device__ inline float factor(bool rounds, float x) {
  return rounds ? toFloat(bf16Factor(x)) : x;
}
template <bool Rounds> __host__ __device__ float factor(float x) {
  if constexpr (Rounds)
    return toFloat(bf16Factor(x));
  else
    return x;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_FACTORS_H
