//===- rowmath.h - Functions of one value in row kernels --------*- C++ -*-===//
//
// math.h and trigonometry.h for float; the C library's for double, of which models have little.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_ROWMATH_H
#define GENREC_RT_KERNELS_SHARED_ROWMATH_H

#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/kernels/shared/trigonometry.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

GENREC_HOST_DEVICE double exp(double x) { return __builtin_exp(x); }
GENREC_HOST_DEVICE double expm1(double x) { return __builtin_expm1(x); }
GENREC_HOST_DEVICE double log(double x) { return __builtin_log(x); }
GENREC_HOST_DEVICE double log1p(double x) { return __builtin_log1p(x); }
GENREC_HOST_DEVICE double sin(double x) { return __builtin_sin(x); }
GENREC_HOST_DEVICE double cos(double x) { return __builtin_cos(x); }
GENREC_HOST_DEVICE double tanh(double x) { return __builtin_tanh(x); }
GENREC_HOST_DEVICE double erf(double x) { return __builtin_erf(x); }
GENREC_HOST_DEVICE double sigmoid(double x) { return 1 / (__builtin_exp(-x) + 1); }
GENREC_HOST_DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
GENREC_HOST_DEVICE double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

GENREC_HOST_DEVICE float absolute(float x) { return __builtin_fabsf(x); }
GENREC_HOST_DEVICE double absolute(double x) { return __builtin_fabs(x); }
GENREC_HOST_DEVICE int32_t absolute(int32_t x) { return x < 0 ? -x : x; }
GENREC_HOST_DEVICE int64_t absolute(int64_t x) { return x < 0 ? -x : x; }

/// The greater and the lesser of two; NaN where either is NaN.
template <class T> GENREC_HOST_DEVICE T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T> GENREC_HOST_DEVICE T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_ROWMATH_H
