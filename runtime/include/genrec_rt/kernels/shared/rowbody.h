//===- rowbody.h - What bodies of row kernels call --------------*- C++ -*-===//
//
// Functions of scalars, the same on every target. cpu/rowbody.h and cuda/rowbody.h have
// those of a whole row.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_ROWBODY_H
#define GENREC_RT_KERNELS_SHARED_ROWBODY_H

#include "genrec_rt/kernels/shared/rowmath.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Floats that the sums of a result take in a chunk's sums: whole cache lines.
GENREC_HOST_DEVICE int64_t sumFloats(int64_t count) {
  return (count + 15) / 16 * 16;
}

//===----------------------------------------------------------------------===//
// Indices, divisors, buckets
//===----------------------------------------------------------------------===//

/// What the sum of `count` rows is divided by: 1 for an empty list.
template <class T> GENREC_HOST_DEVICE T meanDivisor(int64_t count) {
  return static_cast<T>(count > 0 ? count : 1);
}

/// The nearest index in [0, count).
GENREC_HOST_DEVICE int64_t clampIndex(int64_t index, int64_t count) {
  index = index < count ? index : count - 1;
  return index > 0 ? index : 0;
}

/// Element `index`; 0 for -1.
template <class T>
GENREC_HOST_DEVICE T elementAt(const T *base, int64_t index) {
  return index < 0 ? T() : base[index];
}

/// The number of ascending `edges` that are <= x; 0 for NaN.
template <class T>
GENREC_HOST_DEVICE int64_t bucketOf(T x, const double *edges, int64_t count) {
  double value = static_cast<double>(x);
  int64_t first = 0;
  while (count > 0) {
    int64_t half = count / 2;
    bool isBelow = edges[first + half] <= value;
    first = isBelow ? first + half + 1 : first;
    count = isBelow ? count - half - 1 : half;
  }
  return first;
}

/// x % Divisor as C has it. In vectors the quotient is a product with the reciprocal: off by
/// less than 2^12, then a second time by at most one. (That of 1 may round to 2^63.)
template <int64_t Divisor> GENREC_HOST_DEVICE int64_t remainder(int64_t x) {
  static_assert(Divisor > 0);
#if defined(GENREC_AVX512)
  if constexpr (Divisor > 1 && Divisor <= int64_t(1) << 48) {
    constexpr double kReciprocal = 1.0 / static_cast<double>(Divisor);
    auto times = [](int64_t quotient) {
      return static_cast<int64_t>(static_cast<uint64_t>(quotient) * static_cast<uint64_t>(Divisor));
    };
    auto minus = [](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    };
    int64_t near = minus(x, times(static_cast<int64_t>(static_cast<double>(x) * kReciprocal)));
    int64_t rest =
        minus(near, times(static_cast<int64_t>(static_cast<double>(near) * kReciprocal)));
    // Between -Divisor and Divisor, both included; the sign is to be that of x.
    rest = rest >= Divisor ? rest - Divisor : rest <= -Divisor ? rest + Divisor : rest;
    rest = x >= 0 && rest < 0 ? rest + Divisor : rest;
    return x < 0 && rest > 0 ? rest - Divisor : rest;
  }
#endif
  return x % Divisor;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_ROWBODY_H
