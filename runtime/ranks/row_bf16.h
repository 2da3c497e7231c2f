//===- row_bf16.h - Floats that travel as bf16 ------------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_ROW_BF16_H
#define GENREC_RT_RANKS_ROW_BF16_H

#include <bit>
#include <cstdint>

namespace genrec::rt {

/// The nearest bf16, ties to even; a NaN stays one.
inline uint16_t toBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  bool isNaN = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>(isNaN ? bits >> 16 | 0x40 : rounded);
}

inline float fromBf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline void toBf16(const float *from, int64_t count, uint16_t *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = toBf16(from[i]);
}

inline void fromBf16(const uint16_t *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = fromBf16(from[i]);
}

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_BF16_H
