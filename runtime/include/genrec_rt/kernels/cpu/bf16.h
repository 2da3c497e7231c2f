//===- bf16.h - Factors rounded to bfloat16 ---------------------*- C++ -*-===//
//
// A bfloat16 is the upper half of a float: 8 bits of precision, a float's range. What products
// with bf16 round (docs/mixed-precision.md): to nearest, ties to even; numbers below the smallest
// normal one become 0, as the instructions of AVX512-BF16 have it; NaN stays NaN. So a factor has
// the same bits on every instruction set. Sums are float: with AVX512-BF16 of pairs of products
// (`addPairs`), elsewhere of one product after another. Their results differ within
//
//   |sum - exact| <= terms * (2^-24 * sum of |products| + 2^-126)
//
// on each: products of two bfloat16 are exact in float, but instructions flush sums below 2^-126.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_BF16_H
#define GENREC_RT_KERNELS_CPU_BF16_H

#include "genrec_rt/kernels/shared/simd.h"

#if defined(GENREC_AVX512_BF16) && !defined(__clang__)
#include <immintrin.h>
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Whether the machine multiplies pairs of bfloat16.
#ifdef GENREC_AVX512_BF16
inline constexpr bool kHasBf16Pairs = true;
#else
inline constexpr bool kHasBf16Pairs = false;
#endif

namespace detail {

/// The bits of `x` rounded to bfloat16, in the upper halves; lower halves are 0.
GENREC_SIMD VecU bf16Bits(VecF x) {
  VecU bits = bitsAs<VecU>(x);
  const VecU magnitude = bits & splatU(0x7fffffff);
  const VecU odd = (bits >> 16) & splatU(1);
  VecU rounded = bits + splatU(0x7fff) + odd;
  rounded = magnitude > splatU(0x7f800000) ? bits | splatU(0x00400000) : rounded; // NaN
  rounded = magnitude < splatU(0x00800000) ? bits & splatU(0x80000000) : rounded;
  return rounded & splatU(0xffff0000);
}

#ifdef GENREC_AVX512_BF16
typedef uint16_t VecHalves __attribute__((vector_size(kLanes * 2)));

/// `x` rounded to bfloat16.
GENREC_SIMD VecHalves toBf16(VecF x) {
#ifdef __clang__
  typedef __bf16 VecBf16 __attribute__((vector_size(kLanes * 2)));
  return bitsAs<VecHalves>(
      __builtin_ia32_cvtneps2bf16_512_mask(x, VecBf16{}, static_cast<LaneMask>(-1)));
#else
  return bitsAs<VecHalves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x)));
#endif
}

/// acc + the products of both halves of a and b, per lane.
GENREC_SIMD VecF addPairs(VecF acc, VecU a, VecU b) {
#ifdef __clang__
  typedef __bf16 VecBf16 __attribute__((vector_size(kLanes * 4)));
  return __builtin_ia32_dpbf16ps_512(acc, bitsAs<VecBf16>(a), bitsAs<VecBf16>(b));
#else
  return bitsAs<VecF>(
      _mm512_dpbf16_ps(bitsAs<__m512>(acc), bitsAs<__m512bh>(a), bitsAs<__m512bh>(b)));
#endif
}

/// Lane by lane, `low` and `high` rounded to bfloat16, as a pair.
GENREC_SIMD VecU pairBf16(VecF low, VecF high) {
  return __builtin_convertvector(toBf16(low), VecU) |
         (__builtin_convertvector(toBf16(high), VecU) << 16);
}
#endif

} // namespace detail

/// `x` rounded to bfloat16.
GENREC_SIMD VecF roundBf16(VecF x) {
#ifdef GENREC_AVX512_BF16
  return bitsAs<VecF>(__builtin_convertvector(detail::toBf16(x), VecU) << 16);
#else
  return bitsAs<VecF>(detail::bf16Bits(x));
#endif
}

/// `x` rounded to bfloat16 where Rounds.
template <bool Rounds> GENREC_SIMD VecF factor(VecF x) {
  if constexpr (Rounds)
    return roundBf16(x);
  else
    return x;
}

/// The same for one number.
template <bool Rounds> GENREC_SIMD float factor(float x) {
  if constexpr (Rounds)
    return roundBf16(splat(x))[0];
  else
    return x;
}

/// Rounds `count` floats to bfloat16.
inline void roundBf16(const float *from, int64_t count, float *to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, roundBf16(load(from + i)));
  if (i < count)
    storeTail(to + i, roundBf16(loadTail(from + i, static_cast<int>(count - i))),
              static_cast<int>(count - i));
}

/// Rounds `rows` rows of `width` floats to bfloat16.
inline void roundBf16Rows(const float *from, int64_t ld, int64_t rows, int64_t width, float *to,
                          int64_t ldTo) {
  for (int64_t row = 0; row < rows; ++row)
    roundBf16(from + row * ld, width, to + row * ldTo);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_BF16_H
