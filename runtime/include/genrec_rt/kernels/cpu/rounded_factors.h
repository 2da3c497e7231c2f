//===- rounded_factors.h - Factors rounded by row kernels ---------*- C++ -*-===//
//
// An element at a time, with the bits of bf16.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ROUNDED_FACTORS_H
#define GENREC_RT_KERNELS_CPU_ROUNDED_FACTORS_H

#include "genrec_rt/kernels/shared/row_values.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// `x` as a factor: the nearest bfloat16, ties to even; a zero of its sign below the smallest
/// normal number. NaN stays NaN.
GENREC_SIMD Bf16 roundedFactor(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const bool isBelow = (bits & 0x7FFFFFFF) < 0x00800000;
  const uint32_t rounded = isBelow ? bits >> 16 & 0x8000 : nearestBf16(x).bits;
  return {static_cast<uint16_t>(rounded)};
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ROUNDED_FACTORS_H
