//===- row_values.h - Values of table rows stored as bfloat16 ----*- C++ -*-===//
//
// A bfloat16 is the upper half of a float: 8 bits of precision, a float's range. Widening is exact.
// Rounding is to nearest, ties to even, or stochastic: up or down with the probability of the
// distance from the other (Gupta et al., "Deep learning with limited numerical precision", ICML
// 2015, section 3.1), so that the mean of many roundings is the value. The same bits on every
// target.
//
// A row of a table with hot rows is [value][address of its lower halves][states]. Of a hot row they
// are there, and its value is a float, of which the row has the upper half: an update joins and
// splits both (Kalamkar et al., "Optimizing deep learning recommender systems' training on CPU
// cluster architectures", SC 2020, section VI: split SGD), and what only reads a value reads the
// upper half, which is the float rounded towards 0.
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
/// For code that reads rows of either.
GENREC_HOST_DEVICE float widened(float x) { return x; }

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

/// The lower halves of a row whose address lies `offset` floats behind its begin. Of a row that is
/// not hot that is null: then the halves that the row has, so that loops go without branches.
GENREC_HOST_DEVICE uint16_t *lowerHalves(float *row, int64_t offset) {
  uint16_t *lower;
  __builtin_memcpy(&lower, row + offset, sizeof lower);
  return lower ? lower : reinterpret_cast<uint16_t *>(row);
}

GENREC_HOST_DEVICE bool isHot(const float *row, const uint16_t *lower) {
  return lower != reinterpret_cast<const uint16_t *>(row);
}

/// The float whose upper half is `upper`, with its lower half where the row is hot.
GENREC_HOST_DEVICE float joined(Bf16 upper, uint16_t lower, bool hot) {
  const uint32_t bits = static_cast<uint32_t>(upper.bits) << 16 | (hot ? lower : 0U);
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

/// What a row stores of x: of a hot row the upper half, else the nearest bfloat16. A NaN stays one.
GENREC_HOST_DEVICE Bf16 upperHalf(float x, bool hot) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const bool isNaN = (bits & 0x7FFFFFFF) > 0x7F800000;
  const uint32_t nearest = bits + 0x7FFF + (bits >> 16 & 1);
  const uint32_t stored = isNaN ? bits | 0x400000 : hot ? bits : nearest;
  return {static_cast<uint16_t>(stored >> 16)};
}

/// What is stored of x as a lower half, as `lowerHalves` has it: where the row is not hot that is
/// the place of what `upperHalf` says.
GENREC_HOST_DEVICE uint16_t lowerHalf(float x, bool hot) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return hot ? static_cast<uint16_t>(bits) : upperHalf(x, false).bits;
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
