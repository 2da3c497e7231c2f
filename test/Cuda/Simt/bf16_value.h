//===- bf16_value.h - Values of bfloat16 in memory ---------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_BF16_VALUE_H
#define GENREC_TEST_CUDA_SIMT_BF16_VALUE_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace simt {

inline float bf16At(const void *at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16);
}

/// Rounds to nearest, ties to even.
inline void storeBf16(void *at, float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  uint16_t half = static_cast<uint16_t>(
      std::isnan(value) ? (bits >> 16) | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  std::memcpy(at, &half, sizeof(half));
}

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_BF16_VALUE_H
