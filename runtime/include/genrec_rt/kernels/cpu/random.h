//===- random.h - Random words of a row, in vectors -------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_RANDOM_H
#define GENREC_RT_KERNELS_CPU_RANDOM_H

#include "genrec_rt/kernels/shared/random.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

// 64-bit lanes, whose low halves multiply at full speed.
typedef uint64_t VecU64 __attribute__((vector_size(kLanes * 4)));
GENREC_SIMD VecU64 splatU64(uint64_t x) { return x - VecU64{}; }

/// The words of the counters [Counters * group, Counters * group + Counters) of a row: the first of
/// each, then the second, and so on; N of them are written. Counters: 8 or 16.
template <int Counters, int N>
GENREC_SIMD void fillWords(uint64_t key, uint32_t op, uint64_t row,
                           uint32_t group, uint32_t *out) {
  constexpr int kWide = kLanes / 2;
  constexpr int kParts = Counters / kWide;
  typedef uint32_t Half __attribute__((vector_size(kWide * 4)));
  typedef uint32_t HalfUnaligned
      __attribute__((vector_size(kWide * 4), aligned(4), may_alias));
  const VecU64 low = splatU64(0xFFFFFFFF);
  const VecU64 m0 = splatU64(0xD2511F53), m1 = splatU64(0xCD9E8D57);
  VecU64 c0[kParts], c1[kParts], c2[kParts], c3[kParts];
  for (int part = 0; part < kParts; ++part) {
    for (int lane = 0; lane < kWide; ++lane)
      c0[part][lane] = static_cast<uint32_t>(group * Counters + part * kWide + lane);
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
    put(c1[part], part * kWide + Counters);
    put(c2[part], part * kWide + 2 * Counters);
    put(c3[part], part * kWide + 3 * Counters);
  }
}

/// The words of the first N of the 64 elements [64 * group, 64 * group + 64) of a row.
template <int N = 64>
GENREC_SIMD void fillBits64(uint64_t key, uint32_t op, uint64_t row,
                            uint32_t group, uint32_t *out) {
  fillWords<16, N>(key, op, row, group, out);
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

/// The 16 random bits of the elements [0, N) of a row, as philoxHalf.
template <int64_t N>
inline void fillHalves(const RandomStream &stream, uint64_t row, uint16_t *out) {
  const uint64_t key = streamKey(stream);
  uint32_t words[32];
  for (int64_t first = 0; first < N; first += 64) {
    // 64 halves are the words in memory.
    fillWords<8, 32>(key, stream.op, row, static_cast<uint32_t>(first / 64), words);
    __builtin_memcpy(out + first, words, static_cast<size_t>(N - first < 64 ? N - first : 64) * 2);
  }
}

/// Uniform numbers in [0, 1) of the elements [0, N) of a row, from their words.
template <int64_t N>
inline void fillUniform(const RandomStream &stream, uint64_t row, float *out) {
  uint32_t words[N];
  fillBits<N>(stream, row, words);
  for (int64_t i = 0; i < N; ++i)
    out[i] = uniformFromBits(words[i]);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_RANDOM_H
