//===- random.h - Random words of a row, by its lanes -----------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_RANDOM_H
#define GENREC_RT_KERNELS_CUDA_RANDOM_H

#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/shared/random.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

/// Calls `each(slot, element, word)` for this lane's elements of N, with the word of the counter
/// `blockOf(element)`. Elements 16 apart are words of one counter, up to four: with 16 neighbours
/// on the lanes, a lane has all four.
template <int64_t N, int64_t L, int64_t V, class BlockOf, class Each>
__device__ inline void forWords(const RandomStream &stream, uint64_t row, const BlockOf &blockOf,
                                const Each &each) {
  constexpr int64_t kNeighbours = L * V, kPack = V < N ? V : N;
  constexpr int64_t kTogether = L > 1 && kNeighbours < 64 ? 64 / kNeighbours : 1;
  const uint64_t key = streamKey(stream);
#pragma unroll
  for (int64_t pack = 0; pack < kPacks<N, L, V>; pack += kTogether)
#pragma unroll
    for (int64_t j = 0; j < kPack; ++j) {
      const int64_t first = firstOfPack<L, V>(pack) + j;
      if (first >= N)
        continue;
      const PhiloxBlock block =
          philox4x32({{blockOf(static_cast<uint64_t>(first)), stream.op, static_cast<uint32_t>(row),
                       static_cast<uint32_t>(row >> 32)}},
                     static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
#pragma unroll
      for (int64_t next = 0; next < kTogether; ++next) {
        const int64_t element = first + next * kNeighbours;
        const int64_t word = element / 16 % 4;
        if (element < N)
          each((pack + next) * kPack + j, element,
               word == 0   ? block.word[0]
               : word == 1 ? block.word[1]
               : word == 2 ? block.word[2]
                           : block.word[3]);
      }
    }
}

} // namespace detail

/// The words of the elements [0, N) of a row, as philoxWord.
template <int64_t N, int64_t L, int64_t V, class Out>
__device__ inline void fillBits(const RandomStream &stream, uint64_t row, Out &&out) {
  auto put = [&](int64_t slot, int64_t element, uint32_t word) {
    elementOf(out, slot, element) = word;
  };
  detail::forWords<N, L, V>(stream, row, [](uint64_t e) { return blockOfWord(e); }, put);
  meetAfterWriting<L, Out>();
}

/// The 16 random bits of the elements [0, N) of a row, as philoxHalf.
template <int64_t N, int64_t L, int64_t V, class Out>
__device__ inline void fillHalves(const RandomStream &stream, uint64_t row, Out &&out) {
  auto put = [&](int64_t slot, int64_t element, uint32_t word) {
    elementOf(out, slot, element) = static_cast<uint16_t>(word >> element % 2 * 16);
  };
  detail::forWords<N, L, V>(stream, row, [](uint64_t e) { return blockOfHalf(e); }, put);
  meetAfterWriting<L, Out>();
}

/// Uniform numbers in [0, 1) of the elements [0, N) of a row, from their words.
template <int64_t N, int64_t L, int64_t V, class Out>
__device__ inline void fillUniform(const RandomStream &stream, uint64_t row, Out &&out) {
  auto put = [&](int64_t slot, int64_t element, uint32_t word) {
    elementOf(out, slot, element) = uniformFromBits(word);
  };
  detail::forWords<N, L, V>(stream, row, [](uint64_t e) { return blockOfWord(e); }, put);
  meetAfterWriting<L, Out>();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_RANDOM_H
