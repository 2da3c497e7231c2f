//===- lowest_rows.cu - The rows that a bounded table gives up ------------===//

#include "genrec_rt/cuda/lowest_rows.h"

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <bit>

namespace genrec::rt::cuda {

namespace {

constexpr int kByteValues = 256, kRankWords = 3;

/// Words in the order in which ranks are compared.
struct Rank {
  Word steps, lastStep, id;

  __device__ Word word(int number) const {
    return number == 0 ? steps : number == 1 ? lastStep : id;
  }
  __device__ bool isAtMost(const Rank &other) const {
    return steps != other.steps         ? steps < other.steps
           : lastStep != other.lastStep ? lastStep < other.lastStep
                                        : id <= other.id;
  }
};

/// The rank of the n-th lowest row as far as it is known; what is not is 0.
struct Selection {
  Rank rank;
  Word wanted;  ///< rows still to be chosen among those that have the known bytes
  Word isFound; ///< all of these are wanted
};

/// How kernels see rows.
struct RankedRows {
  RowAddresses addresses;
  int64_t sightingOffset;
  bool byFrequency;
  const uint8_t *inUse;
  int64_t numbers;

  __device__ Rank rankOf(int64_t number) const {
    const auto row = static_cast<uint32_t>(number);
    const Word *sighting = reinterpret_cast<const Word *>(addresses.row(row) + sightingOffset);
    // Signed ids in the order of unsigned words.
    return {byFrequency ? sighting[1] : 0, sighting[0],
            static_cast<Word>(*addresses.id(row)) ^ Word(1) << 63};
  }
};
static_assert(sizeof(Sighting) == 2 * sizeof(Word));

/// Counts, by the byte of word `word` at `shift`, the rows that have all bytes above it.
__global__ void __launch_bounds__(kThreads) countBytes(RankedRows rows, const Selection *selection,
                                                       int word, int shift, uint32_t *byteCounts) {
  __shared__ uint32_t mine[kByteValues];
  if (selection->isFound)
    return;
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t number = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       number < rows.numbers; number += static_cast<int64_t>(gridDim.x) * kThreads) {
    if (!rows.inUse[number])
      continue;
    const Rank rank = rows.rankOf(number), &known = selection->rank;
    // Two shifts: one by 64 bits has no meaning.
    const bool isCandidate = (word < 1 || rank.steps == known.steps) &&
                             (word < 2 || rank.lastStep == known.lastStep) &&
                             ((rank.word(word) ^ known.word(word)) >> shift >> 8) == 0;
    if (isCandidate)
      atomicAdd(mine + (rank.word(word) >> shift & 0xFF), 1u);
  }
  __syncthreads();
  if (mine[threadIdx.x])
    atomicAdd(byteCounts + threadIdx.x, mine[threadIdx.x]);
}

/// One block: the byte of the n-th lowest row.
__global__ void __launch_bounds__(kByteValues)
    pickByte(Selection *selection, int word, int shift, uint32_t *byteCounts) {
  if (selection->isFound)
    return;
  const Word wanted = selection->wanted, own = byteCounts[threadIdx.x];
  Word total;
  const Word before = exclusiveBlockSum<kByteValues>(own, total); // all have read `wanted`
  byteCounts[threadIdx.x] = 0;
  if (before >= wanted || before + own < wanted)
    return;
  selection->wanted = wanted - before;
  Rank &rank = selection->rank;
  // Where all that have these bytes are wanted, whatever follows.
  const bool isFound = wanted - before == own;
  const Word byte = Word(threadIdx.x) << shift | (isFound ? (Word(1) << shift) - 1 : 0);
  if (word == 0)
    rank.steps |= byte;
  else if (word == 1)
    rank.lastStep |= byte;
  else
    rank.id |= byte;
  if (!isFound)
    return;
  selection->isFound = 1;
  if (word < 1)
    rank.lastStep = ~Word(0);
  if (word < 2)
    rank.id = ~Word(0);
}

__global__ void __launch_bounds__(kThreads)
    flagLowest(RankedRows rows, const Selection *selection, uint8_t *flags) {
  for (int64_t number = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       number < rows.numbers; number += static_cast<int64_t>(gridDim.x) * kThreads) {
    flags[number] = rows.inUse[number] && rows.rankOf(number).isAtMost(selection->rank);
  }
}

} // namespace

void LowestRows::flag(const RowAddresses &addresses, int64_t sightingOffset, Eviction eviction,
                      const uint8_t *inUse, int64_t numbers, int64_t wanted, int64_t lastStep,
                      uint8_t *flags, cudaStream_t stream) {
  const LaunchShape shape = shapeOfThreads(numbers, kThreads);
  static_assert(sizeof(Selection) % sizeof(uint64_t) == 0);
  auto *found =
      reinterpret_cast<Selection *>(selection.ensure(sizeof(Selection) / sizeof(uint64_t), stream));
  uint32_t *counts = byteCounts.ensure(kByteValues, stream);
  const Selection start = {{0, 0, 0}, static_cast<Word>(wanted), 0};
  GENREC_CUDA_CHECK(cudaMemcpyAsync(found, &start, sizeof(start), cudaMemcpyHostToDevice, stream));
  GENREC_CUDA_CHECK(cudaMemsetAsync(counts, 0, kByteValues * sizeof(uint32_t), stream));
  const bool byFrequency = eviction == Eviction::lfu;
  const RankedRows rows{addresses, sightingOffset, byFrequency, inUse, numbers};
  // Bytes above those of the last step are 0.
  const int stepBytes = (std::bit_width(static_cast<uint64_t>(lastStep)) + 7) / 8;
  for (int word = byFrequency ? 0 : 1; word < kRankWords; ++word)
    for (int byte = (word == 2 ? 8 : stepBytes) - 1; byte >= 0; --byte) {
      GENREC_CUDA_LAUNCH(stream, shape, countBytes, rows, found, word, 8 * byte, counts);
      GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, kByteValues}), pickByte, found, word, 8 * byte,
                         counts);
    }
  GENREC_CUDA_LAUNCH(stream, shape, flagLowest, rows, found, flags);
}

} // namespace genrec::rt::cuda
