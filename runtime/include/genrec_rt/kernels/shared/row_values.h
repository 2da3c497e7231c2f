//===- row_values.h - Values of table rows stored as bfloat16 ----*- C++ -*-===//
//
// A bfloat16 is the upper half of a float: 8 bits of precision, a float's range. Widening is exact.
// Rounding is to nearest, ties to even, or stochastic: up or down with the probability of the
// distance from the other (Gupta et al., "Deep learning with limited numerical precision", ICML
// 2015, section 3.1), so that the mean of many roundings is the value. The same bits on every
// target.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_ROW_VALUES_H
#define GENREC_RT_KERNELS_SHARED_ROW_VALUES_H

#include "genrec_rt/kernels/shared/simd.h"

#include <stdint.h>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// A value of a row.
struct Bf16 {
  uint16_t bits;
};

/// The values of a row of bfloat16, as a handle of the row has them.
GENREC_HOST_DEVICE Bf16 *bf16Values(float *row) { return reinterpret_cast<Bf16 *>(row); }

GENREC_HOST_DEVICE float widened(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

/// The nearest bfloat16, ties to even; an infinity beyond the largest one. A NaN stays one.
GENREC_HOST_DEVICE Bf16 nearestBf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
  const bool isNaN = (bits & 0x7FFFFFFF) > 0x7F800000;
  return {static_cast<uint16_t>((isNaN ? bits | 0x400000 : rounded) >> 16)};
}

/// A float that is a bfloat16.
GENREC_HOST_DEVICE Bf16 narrowed(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return {static_cast<uint16_t>(bits >> 16)};
}

/// x rounded stochastically, by 16 random bits: the magnitude grows where they and the bits that go
/// add up to 2^16. The result is a bfloat16. Infinities stay; a NaN stays one.
GENREC_HOST_DEVICE float roundedBy(float x, uint16_t random) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const bool isFinite = (bits & 0x7F800000) != 0x7F800000;
  bits = isFinite ? bits + random : x != x ? bits | 0x400000 : bits;
  bits &= 0xFFFF0000;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_ROW_VALUES_H
