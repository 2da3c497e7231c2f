//===- simt_device.h - Stand-ins for device intrinsics -----------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_DEVICE_H
#define GENREC_TEST_CUDA_SIMT_DEVICE_H

#define SIMT_PLACE simt::Place place = simt::Place::current()
/// What performs an access that has been checked already.
#define SIMT_CHECKED __attribute__((no_sanitize("thread", "array-bounds")))

//===----------------------------------------------------------------------===//
// Barriers, warps
//===----------------------------------------------------------------------===//

inline void __syncthreads(SIMT_PLACE) { simt::blockBarrier(place); }
inline int __syncthreads_count(int vote, SIMT_PLACE) { return simt::blockVote(vote != 0, place); }
inline int __syncthreads_or(int vote, SIMT_PLACE) { return simt::blockVote(vote != 0, place) != 0; }
inline int __syncthreads_and(int vote, SIMT_PLACE) {
  return simt::blockVote(vote == 0, place) == 0;
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, SIMT_PLACE) {
  simt::warpExchange(simt::WarpOp::sync, mask, 0, 0, place);
}
inline unsigned __activemask(SIMT_PLACE) { return simt::activeMask(place); }
inline unsigned __ballot_sync(unsigned mask, int vote, SIMT_PLACE) {
  return static_cast<unsigned>(simt::warpExchange(simt::WarpOp::ballot, mask, vote != 0, 0, place));
}
inline int __any_sync(unsigned mask, int vote, SIMT_PLACE) {
  return simt::warpExchange(simt::WarpOp::ballot, mask, vote != 0, 0, place) != 0;
}
inline int __all_sync(unsigned mask, int vote, SIMT_PLACE) {
  return simt::warpExchange(simt::WarpOp::ballot, mask, vote != 0, 0, place) == mask;
}

namespace simt {

template <class T> uint64_t toWord(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T> T fromWord(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
template <class T> T shuffle(uint32_t mask, T value, int source, const Place &place) {
  return fromWord<T>(warpExchange(WarpOp::shuffle, mask, toWord(value), source, place));
}

} // namespace simt

template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32, SIMT_PLACE) {
  int first = simt::laneIndex() & ~(width - 1);
  return simt::shuffle(mask, value, first + (lane & (width - 1)), place);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, SIMT_PLACE) {
  int lane = simt::laneIndex(), other = lane ^ with;
  return simt::shuffle(mask, value, other > (lane | (width - 1)) ? lane : other, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_PLACE) {
  int lane = simt::laneIndex(), other = lane - static_cast<int>(by);
  return simt::shuffle(mask, value, other < (lane & ~(width - 1)) ? lane : other, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_PLACE) {
  int lane = simt::laneIndex(), other = lane + static_cast<int>(by);
  return simt::shuffle(mask, value, other > (lane | (width - 1)) ? lane : other, place);
}
template <class T> unsigned __match_any_sync(unsigned mask, T value, SIMT_PLACE) {
  return static_cast<unsigned>(
      simt::warpExchange(simt::WarpOp::matchAny, mask, simt::toWord(value), 0, place));
}
template <class T> unsigned __match_all_sync(unsigned mask, T value, int *all, SIMT_PLACE) {
  auto result = static_cast<unsigned>(
      simt::warpExchange(simt::WarpOp::matchAll, mask, simt::toWord(value), 0, place));
  *all = result != 0;
  return result;
}

#define SIMT_REDUCE(name, type, op)                                                                \
  inline type __reduce_##name##_sync(unsigned mask, type value, SIMT_PLACE) {                      \
    return static_cast<type>(                                                                      \
        simt::warpExchange(simt::WarpOp::op, mask, static_cast<unsigned>(value), 0, place));       \
  }
SIMT_REDUCE(add, unsigned, add)
SIMT_REDUCE(add, int, add)
SIMT_REDUCE(min, unsigned, least)
SIMT_REDUCE(max, unsigned, most)
SIMT_REDUCE(min, int, leastSigned)
SIMT_REDUCE(max, int, mostSigned)
SIMT_REDUCE(and, unsigned, bitAnd)
SIMT_REDUCE(or, unsigned, bitOr)
SIMT_REDUCE(xor, unsigned, bitXor)
#undef SIMT_REDUCE

inline void __threadfence() { simt::fence(); }
inline void __threadfence_block() { simt::fence(); }
inline void __threadfence_system() { simt::fence(); }
inline void __nanosleep(unsigned) { simt::giveWay(); }
inline void __trap() { simt::fail("trap"); }

//===----------------------------------------------------------------------===//
// Atomics: between the check and the access nothing else runs
//===----------------------------------------------------------------------===//

#define SIMT_ATOMIC(name, next)                                                                    \
  template <class T, class U> SIMT_CHECKED T name(T *at, U operand) {                              \
    simt::beforeUpdate(at, sizeof(T));                                                             \
    T old = *at, v = static_cast<T>(operand);                                                      \
    *at = static_cast<T>(next);                                                                    \
    return old;                                                                                    \
  }
SIMT_ATOMIC(atomicAdd, old + v)
SIMT_ATOMIC(atomicSub, old - v)
SIMT_ATOMIC(atomicExch, v)
SIMT_ATOMIC(atomicMin, v < old ? v : old)
SIMT_ATOMIC(atomicMax, v > old ? v : old)
SIMT_ATOMIC(atomicAnd, old &v)
SIMT_ATOMIC(atomicOr, old | v)
SIMT_ATOMIC(atomicXor, old ^ v)
#undef SIMT_ATOMIC
template <class T, class U, class V> SIMT_CHECKED T atomicCAS(T *at, U expected, V desired) {
  simt::beforeUpdate(at, sizeof(T));
  T old = *at;
  if (old == static_cast<T>(expected))
    *at = static_cast<T>(desired);
  return old;
}

namespace simt {
template <class T> T atomicLoad(const T *at, Order order) {
  return fromWord<T>(atomicLoadWord(at, sizeof(T), order));
}
template <class T> void atomicStore(T *at, T value, Order order) {
  atomicStoreWord(at, sizeof(T), toWord(value), order);
}
} // namespace simt

template <class T> T __ldg(const T *at) { return *at; }
template <class T> T __ldcg(const T *at) { return *at; }
template <class T> T __ldcs(const T *at) { return *at; }
template <class T> void __stcs(T *at, T value) { *at = value; }
template <class T> void __stcg(T *at, T value) { *at = value; }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace simt {
/// A result with an error of `units` in the last place, up or down by its bits.
inline float approximate(float exact, float units) {
  if (!std::isfinite(exact) || exact == 0)
    return exact;
  uint32_t bits = __builtin_bit_cast(uint32_t, exact);
  float error = exact * (units * 0x1p-23f);
  return bits * 0x9E3779B9u >> 31 ? exact + error : exact - error;
}
} // namespace simt

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
/// To nearest; what does not fit becomes the nearest that does, and NaN the least.
inline long long __double2ll_rn(double x) {
  constexpr double kBeyond = 9223372036854775808.0;
  if (!(x >= -kBeyond)) // and NaN
    return -__LONG_LONG_MAX__ - 1;
  return x >= kBeyond ? __LONG_LONG_MAX__ : static_cast<long long>(__builtin_rint(x));
}
/// Likewise, but NaN becomes 0.
inline int __float2int_rn(float x) {
  constexpr float kBeyond = 2147483648.0f;
  if (!(x >= -kBeyond))
    return x < 0 ? -__INT_MAX__ - 1 : 0;
  return x >= kBeyond ? __INT_MAX__ : static_cast<int>(__builtin_rintf(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }

/// Every byte on its own: 0xFF where equal, or where a < b, else 0.
template <class Compare> unsigned simtBytes(unsigned a, unsigned b, Compare compare) {
  unsigned result = 0;
  for (int i = 0; i < 32; i += 8)
    result |= compare(a >> i & 0xFF, b >> i & 0xFF) ? 0xFFu << i : 0;
  return result;
}
inline unsigned __vcmpeq4(unsigned a, unsigned b) {
  return simtBytes(a, b, [](unsigned x, unsigned y) { return x == y; });
}
inline unsigned __vcmpltu4(unsigned a, unsigned b) {
  return simtBytes(a, b, [](unsigned x, unsigned y) { return x < y; });
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (select >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return result;
}

namespace simt {
/// An integer as a float, rounded to zero.
template <class T> float truncated(T x) {
  const float nearest = static_cast<float>(x);
  const auto whole = static_cast<__int128>(nearest);
  return (x < 0 ? whole < x : whole > x) ? std::nextafter(nearest, 0.0f) : nearest;
}
} // namespace simt
inline float __int2float_rz(int x) { return simt::truncated(x); }
inline float __ll2float_rz(long long x) { return simt::truncated(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return simt::approximate(a / b, 2); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
// Approximations have the greatest errors that the CUDA C++ Programming Guide states.
inline float __expf(float x) {
  return simt::approximate(std::exp(x), 2 + std::floor(std::fabs(1.173f * x)));
}
inline float __logf(float x) {
  float exact = std::log(x);
  return x >= 0.5f && x <= 2.0f ? exact + (std::signbit(exact) ? 0x1p-22f : -0x1p-22f)
                                : simt::approximate(exact, 3);
}
inline float rsqrtf(float x) { return simt::approximate(1.0f / std::sqrt(x), 2); }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

#endif // GENREC_TEST_CUDA_SIMT_DEVICE_H
