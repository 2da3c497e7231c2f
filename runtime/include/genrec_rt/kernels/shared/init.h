//===- init.h - Initial values of embeddings and parameters -----*- C++ -*-===//
//
// An initial value is a function of (seed, hash of the table's name, id,
// column) and nothing else. All arithmetic is in double precision, with
// products and sums rounded one by one, so every instruction set, compiler
// and device gives the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_INIT_H
#define GENREC_RT_KERNELS_SHARED_INIT_H

#include "genrec_rt/kernels/shared/random.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// zeros; constant: `mean`; uniform: [mean - scale, mean + scale); normal:
/// standard deviation `scale`; truncatedNormal: the same, conditioned on
/// [mean - 2 scale, mean + 2 scale] (by inversion, without redrawing). Xavier
/// kinds are uniform with scale = gain * sqrt(6 / (fanIn + fanOut)), and
/// normal with scale = gain * sqrt(2 / (fanIn + fanOut)).
enum class Distribution { zeros, constant, uniform, normal, truncatedNormal };

namespace detail {

/// a * b, never fused with what follows.
GENREC_HOST_DEVICE double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#elif defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  double p = a * b;
  __asm__("" : "+m"(p));
  return p;
#endif
}

GENREC_HOST_DEVICE double squareRootOf(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#elif defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#else
  return __builtin_sqrt(x);
#endif
}

/// Coefficients from the highest power to the lowest.
template <int N>
GENREC_HOST_DEVICE double polynomial(double x, const double (&c)[N]) {
  double y = c[0];
  for (int i = 1; i < N; ++i)
    y = product(y, x) + c[i];
  return y;
}

/// Natural logarithm of a normal x > 0, to 1e-12 relative.
GENREC_HOST_DEVICE double logOf(double x) {
  int64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  int64_t exponent = (bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFll) | 0x3FF0000000000000ll;
  double m;
  __builtin_memcpy(&m, &bits, 8);
  if (m > 1.4142135623730951) {
    m = product(m, 0.5);
    ++exponent;
  }
  // ln m = 2 atanh(s), by its series.
  const double series[] = {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                           1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  double s = (m - 1.0) / (m + 1.0);
  double ln = product(product(2.0, s), polynomial(product(s, s), series));
  return product(static_cast<double>(exponent), 0.6931471805599453) + ln;
}

/// The inverse of the standard normal distribution function for p in
/// (1e-10, 1 - 1e-10), to 1e-8 relative: minimax polynomials of this file's
/// own in (p - 1/2)^2 and, in the tails, in sqrt(-ln p).
GENREC_HOST_DEVICE double normalQuantile(double p) {
  const double central[] = {
      0.000187066184660996,  0.0003183032531289126, 7.138336558009108e-06,
      0.0001514172032120451, 0.001090042035304965,  0.002063208030666822,
      0.0038085883996050863, 0.00824897686933106,   0.01856525334499398,
      0.04408024300757212,   0.11648622124786856,   0.3853901239234072,
      2.8067362601570545};
  const double tail[] = {
      -3.990181374561328e-05, 6.30087025486222e-05, -1.41834802075215e-05,
      0.00010767034173605505, -0.0003963919895027356, 0.0008234596196304855,
      -0.0018264054286217014, 0.004351497773482176, -0.010465277680691469,
      0.02568633520902947, -0.06526855427834248, 2.439006194683528,
      3.9714859936949956};
  double q = p - 0.5;
  double q2 = product(q, q);
  if (q2 <= 0.180625)
    return product(q, polynomial(q2 / 0.0903125 - 1.0, central));
  double r = squareRootOf(-logOf(q < 0 ? p : 1.0 - p));
  double x = polynomial((r - 3.2) / 1.6, tail);
  return q < 0 ? -x : x;
}

} // namespace detail

/// The value that 32 random bits stand for, `mean` and `scale` as Distribution.
GENREC_HOST_DEVICE float initialFromBits(Distribution kind, float mean, float scale,
                                         uint32_t bits) {
  // The middle of the bits' interval: in (0, 1), exact in double precision.
  double u = detail::product(static_cast<double>(bits) + 0.5, 0x1p-32);
  double x = 0;
  switch (kind) {
  case Distribution::zeros:
    return 0;
  case Distribution::constant:
    return mean;
  case Distribution::uniform:
    x = detail::product(2.0, u) - 1.0;
    break;
  case Distribution::normal:
    x = detail::normalQuantile(u);
    break;
  case Distribution::truncatedNormal:
    // The distribution function at -2, and what lies between -2 and 2.
    x = detail::normalQuantile(detail::product(u, 0.9544997361036416) +
                               0.022750131948179212);
    break;
  }
  return static_cast<float>(detail::product(x, static_cast<double>(scale)) +
                            static_cast<double>(mean));
}

/// The stream of a table's (or parameter's) initial values; the row is the id
/// and the element the column.
GENREC_HOST_DEVICE RandomStream initStream(uint64_t seed, uint64_t tableHash) {
  return {splitmix64(seed ^ splitmix64(tableHash)), 0, 0x494E4954u /* INIT */};
}

GENREC_HOST_DEVICE float initialValue(Distribution kind, float mean, float scale,
                                      uint64_t seed, uint64_t tableHash,
                                      uint64_t id, uint32_t column) {
  return initialFromBits(kind, mean, scale,
                         philoxWord(initStream(seed, tableHash), id, column));
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_INIT_H
