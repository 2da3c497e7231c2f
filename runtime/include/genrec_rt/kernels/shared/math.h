//===- math.h - Branch-free single precision functions ----------*- C++ -*-===//
//
// One body per function serves `float` (a loop over it vectorises, since it
// has no branch and no call), `VecF`, and CUDA device code. No result depends
// on an approximate instruction, so one instruction set gives one result on
// every maker's processors; without FMA the last bit may differ.
//
// Error bounds, held by test/Runtime/kernels_math_test.cpp over a dense sample
// of all floats. In units in the last place of the exact result, with FMA:
//
//   exp 1.1   log 0.9   log1p 1.5   expm1 1.5   tanh 2.1   erf 1.2   sqrt 0.5
//   rsqrt 1.5   softplus 2.2   sigmoid 2.7 and silu 3.5 (for x >= -87; 0 below)
//   tanhGrad 5.0
//
// (without FMA at most 0.7 more), and in absolute terms: gelu 1.3e-7 * |x|,
// geluGrad 2e-7, siluGrad and sigmoidGrad 3e-7.
//
// Special values: NaN gives NaN; exp(-inf) = 0, exp(inf) = inf; log(0) = -inf,
// log of a negative is NaN, log(inf) = inf; denormal arguments and results are
// exact to the bound (unless the thread flushes them). silu(-inf) and
// gelu(-inf) are NaN, as 0 * inf is, and as in PyTorch.
//
// The polynomials are minimax fits made for this file (relative error of each
// below 2^-27 on its interval); the reductions are the textbook ones (Muller,
// "Elementary Functions", chapters 9 and 11).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_MATH_H
#define GENREC_RT_KERNELS_SHARED_MATH_H

#include "genrec_rt/kernels/shared/simd.h"

#if defined(__CUDACC__)
#define GENREC_MATH __host__ __device__ __forceinline__
#else
#define GENREC_MATH GENREC_SIMD
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

//===----------------------------------------------------------------------===//
// What the bodies need of a scalar and of a vector
//===----------------------------------------------------------------------===//

template <class F> struct MathTraits;

template <> struct MathTraits<float> {
  using Int = int32_t;
};

GENREC_MATH float pick(bool mask, float a, float b) { return mask ? a : b; }
GENREC_MATH int32_t toBits(float x) {
  int32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
GENREC_MATH float fromBits(int32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
GENREC_MATH int32_t shiftLeft(int32_t x, int n) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << n);
}
GENREC_MATH int32_t addBits(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}
GENREC_MATH float intToFloat(int32_t x) { return static_cast<float>(x); }
GENREC_MATH float mulAdd(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(GENREC_HAS_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
GENREC_MATH float squareRoot(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#elif defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#elif defined(__SSE__) && !defined(__CUDACC__)
  // The plain builtin may call the C library to set errno.
  return __builtin_ia32_sqrtps(VecF4{x, 0, 0, 0})[0];
#else
  return __builtin_sqrtf(x);
#endif
}

#if !defined(__CUDACC__)
template <> struct MathTraits<VecF> {
  using Int = VecI;
};
GENREC_MATH VecF pick(VecI mask, VecF a, VecF b) { return mask ? a : b; }
GENREC_MATH VecI toBits(VecF x) { return bitsAs<VecI>(x); }
GENREC_MATH VecF fromBits(VecI bits) { return bitsAs<VecF>(bits); }
GENREC_MATH VecI shiftLeft(VecI x, int n) {
  return bitsAs<VecI>(bitsAs<VecU>(x) << n);
}
GENREC_MATH VecI addBits(VecI a, VecI b) {
  return bitsAs<VecI>(bitsAs<VecU>(a) + bitsAs<VecU>(b));
}
GENREC_MATH VecF intToFloat(VecI x) { return toFloat(x); }
GENREC_MATH VecF mulAdd(VecF a, VecF b, VecF c) { return fma(a, b, c); }
GENREC_MATH VecF squareRoot(VecF x) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#elif defined(GENREC_AVX512)
  return __builtin_ia32_sqrtps512_mask(x, VecF{}, static_cast<LaneMask>(-1), 4);
#elif defined(GENREC_AVX2)
  return __builtin_ia32_sqrtps256(x);
#else
  VecF v;
  for (int lane = 0; lane < kLanes; ++lane)
    v[lane] = squareRoot(x[lane]);
  return v;
#endif
}
#endif

template <class F> GENREC_MATH F constant(float x) { return x - F{}; }

template <class F> GENREC_MATH F horner(F, float last) {
  return constant<F>(last);
}
/// c0 + x * (c1 + x * (c2 + …)).
template <class F, class... Rest>
GENREC_MATH F horner(F x, float first, Rest... rest) {
  return mulAdd(x, horner(x, rest...), constant<F>(first));
}

template <class F> GENREC_MATH F absolute(F x) {
  return fromBits(toBits(x) & 0x7FFFFFFF);
}
template <class F> GENREC_MATH F withSignOf(F magnitude, F sign) {
  return fromBits(toBits(magnitude) | (toBits(sign) & ~0x7FFFFFFF));
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// x = n ln 2 + r with |r| <= ln 2 / 2; `n` as an integer and as a float.
template <class F> struct ExpReduction {
  typename MathTraits<F>::Int n;
  F nFloat, r;
};
template <class F> GENREC_MATH ExpReduction<F> reduceExp(F x) {
  // Adding 1.5 * 2^23 rounds to an integer, which is left in the low bits.
  const F magic = constant<F>(12582912.0f);
  F t = mulAdd(x, constant<F>(1.44269504f), magic);
  F n = t - magic;
  F r = mulAdd(n, constant<F>(-0.693359375f), x);
  r = mulAdd(n, constant<F>(2.12194440e-4f), r);
  return {addBits(toBits(t), -0x4B400000 - typename MathTraits<F>::Int{}), n,
          r};
}

/// e^r - 1 for a reduced argument, to 0.6 ulp of e^r.
template <class F> GENREC_MATH F expPolynomial(F r) {
  F p = horner(r, 0.5f, 0.1666651219f, 0.04166618735f, 0.008369598538f,
               0.001395171741f);
  return mulAdd(r * r, p, r);
}

/// 2^n for n in [-126, 127].
template <class F> GENREC_MATH F powerOfTwo(typename MathTraits<F>::Int n) {
  return fromBits(shiftLeft(n + 127, 23));
}

template <class F> GENREC_MATH F expBody(F x) {
  F bounded = pick(x > 89.0f, constant<F>(89.0f), x);
  bounded = pick(bounded < -104.0f, constant<F>(-104.0f), bounded);
  ExpReduction<F> e = reduceExp(bounded);
  // Two factors, so that results reach down to the denormals and up to inf.
  typename MathTraits<F>::Int half = e.n >> 1;
  F y = expPolynomial(e.r) + 1.0f;
  return y * powerOfTwo<F>(half) * powerOfTwo<F>(e.n - half);
}

/// e^x for x <= 0, except that it stays at e^-87 (1.6e-38) below -87.
template <class F> GENREC_MATH F expNegative(F x) {
  F bounded = pick(x < -87.0f, constant<F>(-87.0f), x);
  ExpReduction<F> e = reduceExp(bounded);
  return (expPolynomial(e.r) + 1.0f) * powerOfTwo<F>(e.n);
}

/// 1 / x, correctly rounded, for x in [1, 2]. On a device without the branches of a division to
/// numbers below the smallest normal one, which keep elements from being worked on side by side:
/// one step from the approximation rounds correctly (Markstein, "IA-64 and Elementary Functions").
template <class F> GENREC_MATH F reciprocalOfOneToTwo(F x) { return 1.0f / x; }
#if defined(__CUDA_ARCH__)
template <> GENREC_MATH float reciprocalOfOneToTwo(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return __fmaf_rn(y, __fmaf_rn(-x, y, 1.0f), y);
}
#endif

/// sigmoid(x) and sigmoid(-x) = 1 - sigmoid(x), both to full precision.
template <class F> struct SigmoidPair {
  F plus, minus;
};
template <class F> GENREC_MATH SigmoidPair<F> sigmoidPair(F x) {
  F a = absolute(x);
  F e = pick(a > 87.0f, constant<F>(0.0f), expNegative(-a));
  F r = reciprocalOfOneToTwo(e + 1.0f);
  F s = e * r;
  return {pick(x < 0.0f, s, r), pick(x < 0.0f, r, s)};
}

template <class F> GENREC_MATH F logBody(F x) {
  auto small = x < 0x1p-126f;
  F scaled = pick(small, x * 0x1p23f, x);
  // Splits x into 2^n * m with m in [sqrt(1/2), sqrt(2)).
  auto bits = addBits(toBits(scaled),
                      (0x3F800000 - 0x3F3504F3) - typename MathTraits<F>::Int{});
  F n = intToFloat((bits >> 23) - 127);
  n = n - pick(small, constant<F>(23.0f), constant<F>(0.0f));
  F m = fromBits(addBits(bits & 0x007FFFFF,
                         0x3F3504F3 - typename MathTraits<F>::Int{}));
  F f = m - 1.0f;
  F p = horner(f, 0.3333333135f, -0.2500082254f, 0.2000122666f, -0.1662335694f,
               0.1420176178f, -0.1316019446f, 0.1276154965f, -0.0763442963f);
  F f2 = f * f;
  F low = mulAdd(f * f2, p, n * -2.12194440e-4f);
  low = mulAdd(f2, constant<F>(-0.5f), low);
  F y = mulAdd(n, constant<F>(0.693359375f), f + low);
  y = pick(x == 0.0f, constant<F>(-__builtin_inff()), y);
  y = pick(x < 0.0f, constant<F>(__builtin_nanf("")), y);
  // NaN and inf stay what they are.
  return pick(x < __builtin_inff(), y, pick(x < 0.0f, y, x));
}

template <class F> GENREC_MATH F log1pBody(F x) {
  F u = x + 1.0f;
  // What rounding 1 + x lost, as a fraction of u.
  F lost = pick(x > 1.0f, (x - u) + 1.0f, x - (u - 1.0f));
  F y = logBody(u) + lost / u;
  y = pick(absolute(x) < 0x1p-24f, x, y);
  y = pick(x == -1.0f, constant<F>(-__builtin_inff()), y);
  return pick(x == __builtin_inff(), x, y);
}

template <class F> GENREC_MATH F expm1Body(F x) {
  F bounded = pick(x > 89.0f, constant<F>(89.0f), x);
  bounded = pick(bounded < -18.0f, constant<F>(-18.0f), bounded);
  ExpReduction<F> e = reduceExp(bounded);
  F p = horner(e.r, 0.5f, 0.1666666567f, 0.04166634753f, 0.00833339151f,
               0.001394165331f, 0.0001984595729f);
  p = mulAdd(e.r * e.r, p, e.r);
  // 2^n p + (2^n - 1), in halves so that n = 128 does not overflow early.
  F halfScale = powerOfTwo<F>(e.n - 1);
  F y = mulAdd(halfScale, p, halfScale - 0.5f) * 2.0f;
  return pick(absolute(x) < 0x1p-25f, x, y);
}

template <class F> GENREC_MATH F tanhBody(F x) {
  F a = absolute(x);
  F e = expNegative(a * -2.0f);
  F big = (1.0f - e) / (e + 1.0f);
  F x2 = x * x;
  F p = horner(x2, -0.3333328068f, 0.1333144158f, -0.05373971537f,
               0.02063908987f, -0.005704990588f);
  F small = mulAdd(x * x2, p, x);
  return pick(a < 0.625f, small, pick(a >= 0.625f, withSignOf(big, x), x));
}

template <class F> GENREC_MATH F erfBody(F x) {
  F a = absolute(x);
  F t = pick(a > 3.95f, constant<F>(3.95f), a);
  F q = horner(t, 1.128637075f, 0.635198057f, 0.106159046f, -0.02369456552f,
               0.003610342043f, -0.00031485816f, 1.043311943e-05f);
  F big = 1.0f - expNegative(-(t * q));
  // erf(x) / x - 1
  F p = horner(x * x, 0.1283791671f, -0.376126349f, 0.1128371507f,
               -0.02686051093f, 0.005203862675f, -0.0008175673429f,
               8.513232023e-05f);
  return pick(a < 0.9f, mulAdd(x, p, x), pick(a >= 0.9f, withSignOf(big, x), x));
}

/// The standard normal distribution function.
template <class F> GENREC_MATH F normalCdf(F x) {
  return mulAdd(erfBody(x * 0.70710678f), constant<F>(0.5f), constant<F>(0.5f));
}

template <class F> GENREC_MATH F softplusBody(F x) {
  F positive = pick(x < 0.0f, constant<F>(0.0f), x);
  return positive + log1pBody(expBody(-absolute(x)));
}

template <class F> GENREC_MATH F siluGradBody(F x) {
  SigmoidPair<F> s = sigmoidPair(x);
  return s.plus * mulAdd(x, s.minus, constant<F>(1.0f));
}

template <class F> GENREC_MATH F geluGradBody(F x) {
  F density = expBody(x * x * -0.5f) * 0.39894228f;
  return mulAdd(x, density, normalCdf(x));
}

} // namespace detail

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

#define GENREC_MATH_FUNCTION_(type)                                            \
  GENREC_MATH type exp(type x) { return detail::expBody(x); }                  \
  GENREC_MATH type log(type x) { return detail::logBody(x); }                  \
  GENREC_MATH type log1p(type x) { return detail::log1pBody(x); }              \
  GENREC_MATH type expm1(type x) { return detail::expm1Body(x); }              \
  GENREC_MATH type tanh(type x) { return detail::tanhBody(x); }                \
  GENREC_MATH type erf(type x) { return detail::erfBody(x); }                  \
  GENREC_MATH type sigmoid(type x) { return detail::sigmoidPair(x).plus; }     \
  /** x * sigmoid(x). */                                                       \
  GENREC_MATH type silu(type x) { return x * detail::sigmoidPair(x).plus; }    \
  /** log(1 + exp(x)). */                                                      \
  GENREC_MATH type softplus(type x) { return detail::softplusBody(x); }        \
  /** x times the standard normal distribution function (the exact GELU). */   \
  GENREC_MATH type gelu(type x) { return x * detail::normalCdf(x); }           \
  GENREC_MATH type sqrt(type x) { return detail::squareRoot(x); }              \
  /** 1 / sqrt(x); inf at 0. */                                                \
  GENREC_MATH type rsqrt(type x) { return 1.0f / detail::squareRoot(x); }      \
  /** Derivatives at x. */                                                     \
  GENREC_MATH type siluGrad(type x) { return detail::siluGradBody(x); }        \
  GENREC_MATH type geluGrad(type x) { return detail::geluGradBody(x); }        \
  GENREC_MATH type sigmoidGrad(type x) {                                       \
    auto s = detail::sigmoidPair(x);                                           \
    return s.plus * s.minus;                                                   \
  }                                                                            \
  GENREC_MATH type tanhGrad(type x) {                                          \
    auto s = detail::sigmoidPair(x * 2.0f);                                    \
    return s.plus * s.minus * 4.0f;                                            \
  }                                                                            \
  GENREC_MATH type softplusGrad(type x) { return detail::sigmoidPair(x).plus; }

GENREC_MATH_FUNCTION_(float)
#if !defined(__CUDACC__)
GENREC_MATH_FUNCTION_(VecF)
#endif
#undef GENREC_MATH_FUNCTION_

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_MATH_H
