//===- random.h - Counter-based random words --------------------*- C++ -*-===//
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011) keyed so that a drawn word depends on (seed, step, op, row identity,
// element) and on nothing else: not on batch, thread, rank or order of
// evaluation.
//
//   key     = splitmix64(seed + 0x9E3779B97F4A7C15 * step), low word first
//   counter = (block, op, low word of row, high word of row)
//   element e of a row is word (e / 16) % 4 of block (e / 64) * 16 + e % 16
//
// so 64 consecutive elements are the four words of 16 consecutive counters,
// and a vector of consecutive elements takes one word of consecutive counters.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_RANDOM_H
#define GENREC_RT_KERNELS_RANDOM_H

#include "genrec_rt/kernels/simd.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// What a random op draws from in one step. `op` is the id of the drawing op.
struct RandomStream {
  uint64_t seed;
  uint64_t step;
  uint32_t op;
};

/// The output function of SplitMix64 (Steele et al., OOPSLA 2014).
GENREC_HOST_DEVICE constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

struct PhiloxBlock {
  uint32_t word[4];
};

/// Philox4x32 with 10 rounds.
GENREC_HOST_DEVICE PhiloxBlock philox4x32(PhiloxBlock counter, uint32_t key0,
                                          uint32_t key1) {
  uint32_t c0 = counter.word[0], c1 = counter.word[1];
  uint32_t c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = 0xD2511F53ull * c0;
    uint64_t p1 = 0xCD9E8D57ull * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

GENREC_HOST_DEVICE uint64_t streamKey(const RandomStream &stream) {
  return splitmix64(stream.seed + 0x9E3779B97F4A7C15ull * stream.step);
}

/// The random word of one element of a row; `element` below 2^34.
GENREC_HOST_DEVICE uint32_t philoxWord(const RandomStream &stream, uint64_t row,
                                       uint64_t element) {
  uint64_t key = streamKey(stream);
  uint32_t block = static_cast<uint32_t>(element / 64 * 16 + element % 16);
  PhiloxBlock out = philox4x32(
      {{block, stream.op, static_cast<uint32_t>(row),
        static_cast<uint32_t>(row >> 32)}},
      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return out.word[element / 16 % 4];
}

/// A float in [0, 1): the top 24 bits times 2^-24, exact.
GENREC_HOST_DEVICE float uniformFromBits(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24f;
}

/// ceil(p * 2^32): keeps(bits, keepThreshold(p)) is false with probability p, to
/// 2^-32; p in [0, 1]. An element is kept when its word is at least the threshold.
/// p = 1 drops all but one word in 2^32, so callers scale by 0 there. All that
/// drops rows or scores asks this function, and with the same double.
GENREC_HOST_DEVICE constexpr uint32_t keepThreshold(double dropProbability) {
  double scaled = dropProbability * 4294967296.0;
  if (!(scaled > 0))
    return 0;
  if (scaled >= 4294967295.0)
    return 0xFFFFFFFFu;
  uint32_t whole = static_cast<uint32_t>(scaled);
  return whole + (whole < scaled);
}
GENREC_HOST_DEVICE bool keeps(uint32_t bits, uint32_t threshold) {
  return bits >= threshold;
}

/// An index in [0, n), n >= 1, by multiply and shift: floor(bits * n / 2^32).
/// The probability of an index is off by less than 2^-32.
GENREC_HOST_DEVICE uint32_t drawIndex(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>(static_cast<uint64_t>(bits) * n >> 32);
}

/// The same from 64 bits: floor(bits * n / 2^64).
GENREC_HOST_DEVICE uint64_t drawIndex64(uint64_t bits, uint64_t n) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(bits, n);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * n >> 64);
#endif
}

#if !defined(GENREC_WARP_ROWS)

// 64-bit lanes, whose low halves multiply at full speed.
typedef uint64_t VecU64 __attribute__((vector_size(kLanes * 4)));
GENREC_SIMD VecU64 splatU64(uint64_t x) { return x - VecU64{}; }

/// The words of the first N of the 64 elements [64 * group, 64 * group + 64) of a row.
template <int N = 64>
GENREC_SIMD void fillBits64(uint64_t key, uint32_t op, uint64_t row,
                            uint32_t group, uint32_t *out) {
  constexpr int kWide = kLanes / 2;
  constexpr int kParts = 16 / kWide;
  typedef uint32_t Half __attribute__((vector_size(kWide * 4)));
  typedef uint32_t HalfUnaligned
      __attribute__((vector_size(kWide * 4), aligned(4), may_alias));
  const VecU64 low = splatU64(0xFFFFFFFF);
  const VecU64 m0 = splatU64(0xD2511F53), m1 = splatU64(0xCD9E8D57);
  VecU64 c0[kParts], c1[kParts], c2[kParts], c3[kParts];
  for (int part = 0; part < kParts; ++part) {
    for (int lane = 0; lane < kWide; ++lane)
      c0[part][lane] = static_cast<uint32_t>(group * 16 + part * kWide + lane);
    c1[part] = splatU64(op);
    c2[part] = splatU64(static_cast<uint32_t>(row));
    c3[part] = splatU64(row >> 32);
  }
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const VecU64 k0 = splatU64(key0), k1 = splatU64(key1);
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      // Only low halves are words: the multiplication takes those alone, and
      // what the products leave above is dropped in the end.
      VecU64 p0 = (c0[part] & low) * m0;
      VecU64 p1 = (c2[part] & low) * m1;
      c0[part] = (p1 >> 32) ^ c1[part] ^ k0;
      c2[part] = (p0 >> 32) ^ c3[part] ^ k1;
      c1[part] = p1;
      c3[part] = p0;
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  auto put = [out](VecU64 words, int first) __attribute__((always_inline)) {
    Half half = __builtin_convertvector(words, Half);
    if (first + kWide <= N)
      *reinterpret_cast<HalfUnaligned *>(out + first) = half;
    else if (first < N)
      __builtin_memcpy(out + first, &half, static_cast<size_t>(N - first) * 4);
  };
#pragma GCC unroll 8
  for (int part = 0; part < kParts; ++part) {
    put(c0[part], part * kWide);
    put(c1[part], part * kWide + 16);
    put(c2[part], part * kWide + 32);
    put(c3[part], part * kWide + 48);
  }
}

/// The words of the elements [e0, e0 + count) of a row, as philoxWord.
inline void fillBits(const RandomStream &stream, uint64_t row, uint64_t e0,
                     int64_t count, uint32_t *out) {
  const uint64_t key = streamKey(stream);
  while (count > 0) {
    uint32_t group = static_cast<uint32_t>(e0 / 64);
    int64_t first = static_cast<int64_t>(e0 % 64);
    if (first == 0 && count >= 64) {
      fillBits64(key, stream.op, row, group, out);
      out += 64, e0 += 64, count -= 64;
      continue;
    }
    uint32_t words[64];
    fillBits64(key, stream.op, row, group, words);
    int64_t n = 64 - first < count ? 64 - first : count;
    __builtin_memcpy(out, words + first, static_cast<size_t>(n) * 4);
    out += n, e0 += static_cast<uint64_t>(n), count -= n;
  }
}

/// The words of the elements [0, N) of a row, as philoxWord.
template <int64_t N>
inline void fillBits(const RandomStream &stream, uint64_t row, uint32_t *out) {
  const uint64_t key = streamKey(stream);
  for (int64_t group = 0; group < N / 64; ++group)
    fillBits64(key, stream.op, row, static_cast<uint32_t>(group), out + 64 * group);
  if constexpr (N % 64 != 0)
    fillBits64<N % 64>(key, stream.op, row, N / 64, out + N / 64 * 64);
}

/// Uniform numbers in [0, 1) of the elements [0, N) of a row, from their words.
template <int64_t N>
inline void fillUniform(const RandomStream &stream, uint64_t row, float *out) {
  uint32_t words[N];
  fillBits<N>(stream, row, words);
  for (int64_t i = 0; i < N; ++i)
    out[i] = uniformFromBits(words[i]);
}

#endif // !GENREC_WARP_ROWS

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_RANDOM_H
