//===- bf16.h - bfloat16 values -----------------------------------*- C++ -*-===//
//
// A type of two bytes that host and device agree on; arithmetic is in float.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_BF16_H
#define GENREC_RT_KERNELS_CUDA_BF16_H

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// The upper half of a float.
struct Bf16 {
  uint16_t bits;
};

__host__ __device__ inline float toFloat(Bf16 x) {
  uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
__host__ __device__ inline float toFloat(float x) { return x; }

/// Two floats as bfloat16, `low` in the low half; rounded to nearest, ties to even.
__host__ __device__ inline uint32_t packBf16(float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  auto round = [](float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
      return 0x7FFFu; // NaN, as the device has it
    return (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
  };
  return round(low) | round(high) << 16;
#endif
}

template <class Element> __host__ __device__ Element fromFloat(float x) {
  if constexpr (sizeof(Element) == 2)
    return Element{static_cast<uint16_t>(packBf16(x, 0.0f) & 0xFFFFu)};
  else
    return x;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_BF16_H
