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
// Where 16 bits are enough, a counter is enough for 8 elements:
//
//   element e of a row is half e % 2 (0: the low one) of word (e / 16) % 4 of
//   block (e / 64) * 8 + e % 16 / 2
//
// so that 16 consecutive elements are one word of 8 consecutive counters as it
// lies in memory.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_RANDOM_H
#define GENREC_RT_KERNELS_SHARED_RANDOM_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// What a random op draws from in one step. `op` is the id of the drawing op.
struct RandomStream {
  uint64_t seed;
  uint64_t step;
  uint32_t op;
};

/// The stream that op `stream` draws from in this step.
GENREC_HOST_DEVICE RandomStream randomStream(const genrec_step *step, uint32_t stream) {
  return {step->seed, step->step, stream};
}

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

/// The block of an element's word.
GENREC_HOST_DEVICE uint32_t blockOfWord(uint64_t element) {
  return static_cast<uint32_t>(element / 64 * 16 + element % 16);
}

/// The random word of one element of a row; `element` below 2^34.
GENREC_HOST_DEVICE uint32_t philoxWord(const RandomStream &stream, uint64_t row,
                                       uint64_t element) {
  uint64_t key = streamKey(stream);
  PhiloxBlock out = philox4x32(
      {{blockOfWord(element), stream.op, static_cast<uint32_t>(row),
        static_cast<uint32_t>(row >> 32)}},
      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return out.word[element / 16 % 4];
}

/// The block of an element's half.
GENREC_HOST_DEVICE uint32_t blockOfHalf(uint64_t element) {
  return static_cast<uint32_t>(element / 64 * 8 + element % 16 / 2);
}

/// The 16 random bits of one element of a row; `element` below 2^34.
GENREC_HOST_DEVICE uint16_t philoxHalf(const RandomStream &stream, uint64_t row,
                                       uint64_t element) {
  uint64_t key = streamKey(stream);
  PhiloxBlock out = philox4x32(
      {{blockOfHalf(element), stream.op, static_cast<uint32_t>(row),
        static_cast<uint32_t>(row >> 32)}},
      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return static_cast<uint16_t>(out.word[element / 16 % 4] >> element % 2 * 16);
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

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_RANDOM_H
