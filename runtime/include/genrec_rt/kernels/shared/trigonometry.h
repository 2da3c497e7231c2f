//===- trigonometry.h - Sine and cosine in single precision -----*- C++ -*-===//
//
// Branch-free, as the functions of math.h are: a loop over them vectorises, and
// CUDA compiles the same body. Arguments are radians, of any size.
//
// Error, held by test/Runtime/kernels_math_test.cpp against long double over a
// dense sample of all floats: 0.501 units in the last place. sin(-0) = -0; NaN for
// NaN and infinities. No result depends on FMA or on an approximate instruction,
// so every instruction set gives the same bits.
//
// An argument from 1/2 on is multiplied by 2/pi in fixed point, with the 96 bits of
// 2/pi that its exponent makes count (Payne and Hanek 1983; Muller, "Elementary
// Functions", chapter 11). What remains, below an eighth of a turn, goes into
// Taylor series in double precision, cut where they are 2^-36 off.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_TRIGONOMETRY_H
#define GENREC_RT_KERNELS_SHARED_TRIGONOMETRY_H

#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// |x| = (quarter + 4 k) * pi/2 + rest, |rest| <= pi/4 and a little.
struct TurnReduction {
  uint32_t quarter;
  double rest;
};

GENREC_MATH TurnReduction reduceTurns(uint32_t bits) {
  // Word i holds bits [8 i - 32, 8 i) of the fraction of 2/pi. Each thread of a device would make a
  // table that is not static.
#if defined(__CUDACC__)
  static
#endif
      constexpr uint32_t kTwoOverPi[] = {
          0x00000000, 0x000000A2, 0x0000A2F9, 0x00A2F983, 0xA2F9836E, 0xF9836E4E, 0x836E4E44,
          0x6E4E4415, 0x4E441529, 0x441529FC, 0x1529FC27, 0x29FC2757, 0xFC2757D1, 0x2757D1F5,
          0x57D1F534, 0xD1F534DD, 0xF534DDC0, 0x34DDC0DB, 0xDDC0DB62, 0xC0DB6295, 0xDB629599,
          0x6295993C, 0x95993C43, 0x993C4390, 0x3C439041};
  uint32_t exponent = bits >> 23;
  bool isSmall = exponent < 126; // below 1/2
  uint32_t first = isSmall ? 0u : (exponent >> 3) - 15;
  uint32_t mantissa = ((bits & 0x007FFFFFu) | 0x00800000u) << (exponent & 7);
  // Turns in units of 2^-64, modulo one: what is above the window are whole turns.
  uint64_t high = static_cast<uint64_t>(mantissa * kTwoOverPi[first]) << 32;
  uint64_t middle = static_cast<uint64_t>(mantissa) * kTwoOverPi[first + 4];
  uint64_t low = static_cast<uint64_t>(mantissa) * kTwoOverPi[first + 8] >> 32;
  uint64_t turns = high + middle + low;
  uint64_t quarter = (turns + (uint64_t(1) << 61)) >> 62;
  auto rest = static_cast<int64_t>(turns - (quarter << 62));
  double reduced = static_cast<double>(rest) * 0x1.921FB54442D18p-62; // pi/2 * 2^-62
  double small = static_cast<double>(fromBits(static_cast<int32_t>(bits)));
  return {isSmall ? 0u : static_cast<uint32_t>(quarter), isSmall ? small : reduced};
}

// A call on a device: 40 sines of rows of 8 columns, inlined into one kernel, took nvcc 137 s.
#if defined(__CUDACC__)
#define GENREC_LONG_MATH inline __host__ __device__ __noinline__
#else
#define GENREC_LONG_MATH GENREC_MATH
#endif

/// The sine of x moved by `shift` quarters of a turn; x >= 0 by its bits.
GENREC_LONG_MATH float sineOfTurns(uint32_t bits, uint32_t shift) {
  TurnReduction turns = reduceTurns(bits);
  double r = turns.rest, r2 = r * r;
  double sine = -1.0 / 39916800;
  sine = 1.0 / 362880 + r2 * sine;
  sine = -1.0 / 5040 + r2 * sine;
  sine = 1.0 / 120 + r2 * sine;
  sine = -1.0 / 6 + r2 * sine;
  sine = r + r * r2 * sine;
  double cosine = 1.0 / 479001600;
  cosine = -1.0 / 3628800 + r2 * cosine;
  cosine = 1.0 / 40320 + r2 * cosine;
  cosine = -1.0 / 720 + r2 * cosine;
  cosine = 1.0 / 24 + r2 * cosine;
  cosine = -0.5 + r2 * cosine;
  cosine = 1.0 + r2 * cosine;
  uint32_t quarter = turns.quarter + shift;
  double y = (quarter & 1) != 0 ? cosine : sine;
  y = (quarter & 2) != 0 ? -y : y;
  // The exponent of infinities and NaNs.
  return bits >= 0x7F800000u ? __builtin_nanf("") : static_cast<float>(y);
}

} // namespace detail

GENREC_MATH float sin(float x) {
  auto bits = static_cast<uint32_t>(detail::toBits(x));
  float y = detail::sineOfTurns(bits & 0x7FFFFFFFu, 0);
  return detail::fromBits(detail::toBits(y) ^ static_cast<int32_t>(bits & 0x80000000u));
}
GENREC_MATH float cos(float x) {
  return detail::sineOfTurns(static_cast<uint32_t>(detail::toBits(x)) & 0x7FFFFFFFu, 1);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_TRIGONOMETRY_H
