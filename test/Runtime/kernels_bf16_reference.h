//===- kernels_bf16_reference.h - Rounding to bfloat16, naive ---*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_KERNELS_BF16_REFERENCE_H
#define GENREC_TEST_RUNTIME_KERNELS_BF16_REFERENCE_H

#include "kernels_testing.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace test {

/// `x` rounded to 8 bits, ties to even, without a look at bits. Below 2^-126: 0; NaN stays.
inline double roundedToBf16(float x) {
  if (!std::isfinite(x))
    return x;
  if (std::fabs(x) < 0x1p-126f)
    return 0;
  int exponent;
  double fraction =
      std::frexp(static_cast<double>(x), &exponent) * 256; // in [128, 256), or negative
  double below = std::floor(fraction), rest = fraction - below;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(below, 2.0) != 0))
    below += 1;
  double value = std::ldexp(below, exponent - 8);
  return std::fabs(value) > 0x1.fep127 ? std::copysign(static_cast<double>(INFINITY), value)
                                       : value;
}

} // namespace test
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_TEST_RUNTIME_KERNELS_BF16_REFERENCE_H
