//===- simd.h - Vectors of the machine's native width -----------*- C++ -*-===//
//
// Thin wrappers over the GCC/clang vector extension: 16 float lanes with
// AVX-512, 8 with AVX2, 4 elsewhere. Every reduction states its order, and nothing here needs -ffast-math.
//
// Everything lives in an inline namespace named after the instruction set, so
// that objects compiled for two of them never share an inline function.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_SIMD_H
#define GENREC_RT_KERNELS_SHARED_SIMD_H

#include <stddef.h>
#include <stdint.h>

// Rows belong to lanes: cuda/lanes.h has what row kernels call.
#if defined(__CUDACC__) && !defined(GENREC_WARP_ROWS)
#define GENREC_WARP_ROWS 1
#endif

#if defined(__CUDACC__)
#define GENREC_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define GENREC_HOST_DEVICE inline __attribute__((always_inline))
#endif

// A vector type without a forced minimum width is split into halves by clang
// on the machines where it prefers 256 bits.
#if defined(__clang__) && defined(__AVX512F__)
#define GENREC_SIMD                                                            \
  inline __attribute__((always_inline, min_vector_width(512)))
#else
#define GENREC_SIMD inline __attribute__((always_inline))
#endif

#if defined(GENREC_WARP_ROWS)
#define GENREC_RT_ISA isa_warp
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) &&  \
    defined(__AVX512BW__)
#define GENREC_AVX512 1
#if defined(__AVX512BF16__)
#define GENREC_AVX512_BF16 1
#define GENREC_RT_ISA isa_avx512_bf16
#else
#define GENREC_RT_ISA isa_avx512
#endif
#elif defined(__AVX2__) && defined(__FMA__)
#define GENREC_AVX2 1
#define GENREC_RT_ISA isa_avx2
#else
#define GENREC_RT_ISA isa_generic
#endif

#if defined(__FMA__) || defined(__aarch64__)
#define GENREC_HAS_FMA 1
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

#ifdef GENREC_AVX512
/// Lanes of a float vector.
inline constexpr int kLanes = 16;
/// Vector registers that a register-blocked tile may use.
inline constexpr int kRegisters = 32;
#elif defined(GENREC_AVX2)
inline constexpr int kLanes = 8;
inline constexpr int kRegisters = 16;
#else
inline constexpr int kLanes = 4;
inline constexpr int kRegisters = 16;
#endif

#if !defined(__CUDACC__)

typedef float VecF __attribute__((vector_size(kLanes * 4)));
typedef int32_t VecI __attribute__((vector_size(kLanes * 4)));
typedef uint32_t VecU __attribute__((vector_size(kLanes * 4)));
typedef float VecFUnaligned
    __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t VecIUnaligned
    __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t VecUUnaligned
    __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

GENREC_SIMD VecF splat(float x) {
  return x - VecF{}; // exact for -0 as well, unlike x + 0
}
GENREC_SIMD VecI splatI(int32_t x) {
  return x - VecI{};
}
GENREC_SIMD VecU splatU(uint32_t x) {
  return x - VecU{};
}

/// 0, 1, 2, …
GENREC_SIMD VecI iota() {
#ifdef GENREC_AVX512
  return VecI{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(GENREC_AVX2)
  return VecI{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return VecI{0, 1, 2, 3};
#endif
}

GENREC_SIMD VecF load(const float *p) {
  return *reinterpret_cast<const VecFUnaligned *>(p);
}
GENREC_SIMD void store(float *p, VecF v) {
  *reinterpret_cast<VecFUnaligned *>(p) = v;
}
GENREC_SIMD VecU loadU(const uint32_t *p) {
  return *reinterpret_cast<const VecUUnaligned *>(p);
}
GENREC_SIMD VecI loadI(const int32_t *p) {
  return *reinterpret_cast<const VecIUnaligned *>(p);
}
GENREC_SIMD void storeU(uint32_t *p, VecU v) {
  *reinterpret_cast<VecUUnaligned *>(p) = v;
}

/// All bits of the lanes below `n` set.
GENREC_SIMD VecI tailMask(int n) { return iota() < splatI(n); }

/// Lane by lane `mask ? a : b`; lanes of the mask are all ones or zero.
GENREC_SIMD VecF select(VecI mask, VecF a, VecF b) { return mask ? a : b; }
GENREC_SIMD VecI select(VecI mask, VecI a, VecI b) { return mask ? a : b; }

#ifdef GENREC_AVX512
typedef uint16_t LaneMask;
GENREC_SIMD LaneMask laneMask(int n) {
  return static_cast<LaneMask>((1u << n) - 1);
}
/// Lanes of the mask from memory, the others 0; others are not touched.
GENREC_SIMD VecF loadMasked(const float *p, LaneMask mask) {
  return __builtin_ia32_loadups512_mask(p, VecF{}, mask);
}
GENREC_SIMD void storeMasked(float *p, VecF v, LaneMask mask) {
  __builtin_ia32_storeups512_mask(p, v, mask);
}
#elif defined(GENREC_AVX2)
typedef VecI LaneMask;
GENREC_SIMD LaneMask laneMask(int n) { return tailMask(n); }
GENREC_SIMD VecF loadMasked(const float *p, LaneMask mask) {
  return __builtin_ia32_maskloadps256(reinterpret_cast<const VecF *>(p), mask);
}
GENREC_SIMD void storeMasked(float *p, VecF v, LaneMask mask) {
  __builtin_ia32_maskstoreps256(reinterpret_cast<VecF *>(p), mask, v);
}
#else
typedef VecI LaneMask;
GENREC_SIMD LaneMask laneMask(int n) { return tailMask(n); }
GENREC_SIMD VecF loadMasked(const float *p, LaneMask mask) {
  VecF v = {};
  for (int lane = 0; lane < kLanes; ++lane)
    if (mask[lane])
      v[lane] = p[lane];
  return v;
}
GENREC_SIMD void storeMasked(float *p, VecF v, LaneMask mask) {
  for (int lane = 0; lane < kLanes; ++lane)
    if (mask[lane])
      p[lane] = v[lane];
}
#endif

/// The first `n` lanes (0 <= n <= kLanes) from memory, the others 0.
GENREC_SIMD VecF loadTail(const float *p, int n) {
  return loadMasked(p, laneMask(n));
}
GENREC_SIMD void storeTail(float *p, VecF v, int n) {
  storeMasked(p, v, laneMask(n));
}

/// One bit per lane of a mask whose lanes are all ones or zero.
GENREC_SIMD uint32_t maskBits(VecI mask) {
#if defined(GENREC_AVX512)
  return __builtin_ia32_cvtd2mask512(mask);
#elif defined(GENREC_AVX2)
  return static_cast<uint32_t>(
      __builtin_ia32_movmskps256(__builtin_bit_cast(VecF, mask)));
#else
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    bits |= (mask[lane] ? 1u : 0u) << lane;
  return bits;
#endif
}

/// a * b + c, rounded once where the machine has the instruction.
GENREC_SIMD VecF fma(VecF a, VecF b, VecF c) {
#if defined(__clang__) && defined(GENREC_HAS_FMA)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(GENREC_AVX512)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, static_cast<LaneMask>(-1), 4);
#elif defined(GENREC_AVX2)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}
GENREC_SIMD VecF max(VecF a, VecF b) { return a > b ? a : b; }
GENREC_SIMD VecF min(VecF a, VecF b) { return a < b ? a : b; }

template <class To, class From> GENREC_SIMD To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

GENREC_SIMD VecF toFloat(VecI v) { return __builtin_convertvector(v, VecF); }

/// The lower or upper half of the lanes.
#ifdef GENREC_AVX512
typedef float VecFHalf __attribute__((vector_size(32)));
GENREC_SIMD VecFHalf lowHalf(VecF v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
}
GENREC_SIMD VecFHalf highHalf(VecF v) {
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}
#endif
typedef float VecF4 __attribute__((vector_size(16)));
#if defined(GENREC_AVX512) || defined(GENREC_AVX2)
typedef float VecF8 __attribute__((vector_size(32)));
GENREC_SIMD VecF4 lowHalf8(VecF8 v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}
GENREC_SIMD VecF4 highHalf8(VecF8 v) {
  return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
#endif

/// Sum of all lanes: lane i and lane i + n/2 are added, n = kLanes, …, 2.
GENREC_SIMD float sum(VecF v) {
#if defined(GENREC_AVX512)
  VecF8 a = lowHalf(v) + highHalf(v);
  VecF4 b = lowHalf8(a) + highHalf8(a);
#elif defined(GENREC_AVX2)
  VecF4 b = lowHalf8(v) + highHalf8(v);
#else
  VecF4 b = v;
#endif
  return (b[0] + b[2]) + (b[1] + b[3]);
}

/// Lane i of the result is the sum of the lanes of v[i], in the order of a tree
/// over lane numbers: first l and l ^ 1, then pairs, quarters, halves.
GENREC_SIMD VecF sumEach(const VecF (&v)[kLanes]) {
#define GENREC_ADD_HALVES_(a, b, lo, hi)                                       \
  (__builtin_shufflevector(a, b, lo) + __builtin_shufflevector(a, b, hi))
#if defined(GENREC_AVX512)
#define GENREC_EVEN_ 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define GENREC_ODD_ 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define GENREC_EVEN2_ 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define GENREC_ODD2_ 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define GENREC_EVEN4_ 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define GENREC_ODD4_ 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define GENREC_EVEN8_ 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define GENREC_ODD8_ 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#elif defined(GENREC_AVX2)
#define GENREC_EVEN_ 0, 8, 2, 10, 4, 12, 6, 14
#define GENREC_ODD_ 1, 9, 3, 11, 5, 13, 7, 15
#define GENREC_EVEN2_ 0, 1, 8, 9, 4, 5, 12, 13
#define GENREC_ODD2_ 2, 3, 10, 11, 6, 7, 14, 15
#define GENREC_EVEN4_ 0, 1, 2, 3, 8, 9, 10, 11
#define GENREC_ODD4_ 4, 5, 6, 7, 12, 13, 14, 15
#else
#define GENREC_EVEN_ 0, 4, 2, 6
#define GENREC_ODD_ 1, 5, 3, 7
#define GENREC_EVEN2_ 0, 1, 4, 5
#define GENREC_ODD2_ 2, 3, 6, 7
#endif
  VecF s[kLanes / 2];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes / 2; ++i)
    s[i] = GENREC_ADD_HALVES_(v[2 * i], v[2 * i + 1], GENREC_EVEN_, GENREC_ODD_);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes / 4; ++i)
    s[i] = GENREC_ADD_HALVES_(s[2 * i], s[2 * i + 1], GENREC_EVEN2_, GENREC_ODD2_);
#if defined(GENREC_AVX512) || defined(GENREC_AVX2)
#pragma GCC unroll 16
  for (int i = 0; i < kLanes / 8; ++i)
    s[i] = GENREC_ADD_HALVES_(s[2 * i], s[2 * i + 1], GENREC_EVEN4_, GENREC_ODD4_);
#endif
#if defined(GENREC_AVX512)
  s[0] = GENREC_ADD_HALVES_(s[0], s[1], GENREC_EVEN8_, GENREC_ODD8_);
#endif
  return s[0];
#undef GENREC_ADD_HALVES_
#undef GENREC_EVEN_
#undef GENREC_ODD_
#undef GENREC_EVEN2_
#undef GENREC_ODD2_
#undef GENREC_EVEN4_
#undef GENREC_ODD4_
#undef GENREC_EVEN8_
#undef GENREC_ODD8_
}

/// The greatest lane; NaN lanes may be passed over.
GENREC_SIMD float maxLane(VecF v) {
#if defined(GENREC_AVX512)
  VecF8 lo = lowHalf(v), hi = highHalf(v);
  VecF8 a = lo > hi ? lo : hi;
  VecF4 bl = lowHalf8(a), bh = highHalf8(a);
  VecF4 b = bl > bh ? bl : bh;
#elif defined(GENREC_AVX2)
  VecF4 bl = lowHalf8(v), bh = highHalf8(v);
  VecF4 b = bl > bh ? bl : bh;
#else
  VecF4 b = v;
#endif
  float c = b[0] > b[2] ? b[0] : b[2];
  float d = b[1] > b[3] ? b[1] : b[3];
  return c > d ? c : d;
}

/// base[index[lane]] per lane.
GENREC_SIMD VecF gather(const float *base, VecI index) {
#if defined(GENREC_AVX512)
  return __builtin_ia32_gathersiv16sf(VecF{}, base, index,
                                      static_cast<LaneMask>(-1), 4);
#elif defined(GENREC_AVX2)
  VecF all = bitsAs<VecF>(splatI(-1));
#ifdef __clang__
  return __builtin_ia32_gatherd_ps256(VecF{}, base, index, all, 4);
#else
  return __builtin_ia32_gathersiv8sf(VecF{}, base, index, all, 4);
#endif
#else
  VecF v = {};
  for (int lane = 0; lane < kLanes; ++lane)
    v[lane] = base[index[lane]];
  return v;
#endif
}

#endif // !__CUDACC__

/// Rounds n up to a multiple of `step`.
GENREC_HOST_DEVICE constexpr int64_t roundUp(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_SIMD_H
