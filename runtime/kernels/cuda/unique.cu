//===- unique.cu - Distinct ids of a batch --------------------------------===//

#include "genrec_rt/kernels/cuda/unique.h"

#include "unique_numbers.h"

#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace genrec::rt::cuda {

namespace unique {
namespace {

/// The results of no ids.
void clear(const UniqueResult &result, int64_t *offsets, int64_t parts, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(result.total, 0, sizeof(uint32_t), stream));
  if (offsets)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(offsets, 0, static_cast<size_t>(parts + 1) * sizeof(int64_t), stream));
}

int64_t tilesOf(int64_t count) { return blocksFor(count, Marked::kItems); }
int64_t noteWords(int64_t count) { return tilesOf(count) * (Marked::kItems / kWarp); }

/// Threads that clear: one for each two positions of so many words of notes.
__host__ __device__ constexpr int64_t clearedItems(int64_t words) { return words * kWarp / 2; }
static_assert(clearedItems(Marked::kItems / kWarp) >= Unique::kMostOwners);

/// Slots, four at a time; notes, which tiles have to their ends; and what owners count.
__global__ void __launch_bounds__(kThreads)
    clearSlots(Batch batch, int64_t words, LookBackTiles tiles, Owners owners) {
  const int64_t pairs = batch.count / 2;
  const uint4 free = {kFree, kFree, kFree, kFree};
  for (int64_t i = threadInGrid(); i < clearedItems(words); i += threadsInGrid()) {
    if (i < words)
      batch.firsts[i] = 0;
    if (i < owners.count)
      owners.totals[i] = 0;
    if (i < pairs)
      storeWhole(batch.slots + 4 * i, free);
    else if (i == pairs && batch.count % 2)
      storeWhole(batch.slots + 4 * i, uint2{kFree, kFree});
  }
  if (owners.count)
    for (int64_t i = threadInGrid(); i < tiles.words(tiles.count, tiles.sums); i += threadsInGrid())
      tiles.states[i] = 0;
}

/// Places ids. A tile finds its own repetitions first, and only what is left goes to the table.
__global__ void __launch_bounds__(kThreads, kBlocks)
    placeIds(Batch batch, int64_t tiles, Owners owners) {
  __shared__ TileIds tileIds;
  __shared__ uint32_t distinct[Unique::kMostOwners];
  for (uint32_t owner = threadIdx.x; owner < owners.count; owner += kThreads)
    distinct[owner] = 0;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first = tile * Marked::kItems;
    int64_t ids[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int64_t i = first + Marked::place(round);
      ids[round] = i < batch.count ? batch.ids[i] : 0;
    }
    // While ids are under way.
    Placing placing(batch, first);
    __syncthreads(); // nobody reads the last tile's
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      tileIds.ids[Marked::place(round)] = ids[round];
    for (uint32_t at = threadIdx.x; at < TileIds::kParts / 4; at += kThreads)
      storeWhole(tileIds.items + 4 * at, uint4{kFree, kFree, kFree, kFree});
    __syncthreads(); // ids are there, and no items
    placing.findRepetitions(batch, first, tileIds);
    const auto begin = static_cast<uint32_t>(first);
    placing.take(batch, begin);
    placing.lookOn(batch, begin, tileIds.ids);
    if (owners.count)
#pragma unroll
      for (int round = 0; round < kEach; ++round)
        if (placing.isGoing(round) && placing.there[round] == kFree)
          atomicAdd(distinct + ownerOf(tileIds.ids[Marked::place(round)], owners.count), 1u);
    placing.lower(batch, begin);
    Notes notes;
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const uint32_t position = begin + static_cast<uint32_t>(Marked::place(round));
      const bool goes = placing.isGoing(round);
      notes.note(round, goes && placing.there[round] > position,
                 !goes && placing.slot[round] != kFree);
      if (position < batch.count)
        batch.slotOf[position] = placing.slot[round];
    }
    notes.write(batch, first);
  }
  __syncthreads(); // distinct ids are counted
  for (uint32_t owner = threadIdx.x; owner < owners.count; owner += kThreads)
    atomicAdd(owners.totals + owner, distinct[owner]);
}

/// How many first ids there are before each word of notes. A block adds up all before its part for
/// itself: an eighth of a byte per id and block, which takes less than to wait for other blocks.
[[maybe_unused]] constexpr int64_t kMostRankBlocks = std::min<int64_t>(kMostBlocks, 128);
__global__ void __launch_bounds__(kThreads, kBlocks)
    rankFirsts(Batch batch, int words, int part, UniqueResult result) {
  const int begin = static_cast<int>(blockIdx.x) * part, end = min(begin + part, words);
  uint32_t own = 0, before;
  constexpr int kDepth = 8; // loads of a thread under way together
  for (int base = static_cast<int>(threadIdx.x); base < begin / 4; base += kDepth * kThreads) {
    uint4 four[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      four[d] = base + d * kThreads < begin / 4
                    ? loadWhole<uint4>(batch.firsts + 4 * (base + d * kThreads))
                    : uint4{0, 0, 0, 0};
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      own += static_cast<uint32_t>(__popc(four[d].x) + __popc(four[d].y) + __popc(four[d].z) +
                                   __popc(four[d].w));
  }
  exclusiveBlockSum<kThreads>(own, before);
  const uint32_t firstNumber = before;
  for (int at = begin + static_cast<int>(threadIdx.x); at < begin + part; at += kThreads) {
    const uint32_t word = at < words ? batch.firsts[at] : 0;
    uint32_t sum;
    const uint32_t here =
        before + exclusiveBlockSum<kThreads>(static_cast<uint32_t>(__popc(word)), sum);
    if (at < words)
      batch.ranks[at] = {word, here};
    before += sum;
  }
  if (end == words && threadIdx.x == 0)
    *result.total = before;
  if (result.counts)
    for (uint32_t number = firstNumber + threadIdx.x; number < before; number += kThreads)
      result.counts[number] = 0;
}

/// What the items of a tile tell its repetitions, and these it.
struct TileNumbers {
  uint32_t numbers[Marked::kItems];
  uint32_t repetitions[Marked::kItems];
};

/// Writes the first ids of a tile, all of which are under way together.
__device__ void writeIds(const Batch &batch, int64_t first, const Placed &placed,
                         const uint32_t (&number)[kEach], int64_t *ids) {
  int64_t id[kEach];
#pragma unroll
  for (int round = 0; round < kEach; ++round)
    id[round] = placed.isFirst(round) ? batch.ids[first + Marked::place(round)] : 0;
  __syncwarp(); // or the compiler awaits each load before the next
#pragma unroll
  for (int round = 0; round < kEach; ++round)
    if (placed.isFirst(round))
      ids[number[round]] = id[round];
}

/// Writes what is asked for of ids whose first ones are ranked. The number of an id is the rank of
/// its first position, which its slot names.
__global__ void __launch_bounds__(kThreads, kBlocks)
    writeNumbers(Batch batch, int64_t tiles, UniqueResult result) {
  __shared__ TileNumbers ofTile;
  if (result.offsets)
    for (int64_t s = threadInGrid(); s <= batch.segments; s += threadsInGrid()) {
      const int64_t at = batch.offsets[s];
      result.offsets[s] = at < batch.count
                              ? rankIn(batch.ranks[at / kWarp], static_cast<uint32_t>(at))
                              : *result.total;
    }
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first = tile * Marked::kItems;
    Placed placed(batch, first);
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      ofTile.repetitions[Marked::place(round)] = 0;
    placed.readNotes();
    uint32_t from[kEach], number[kEach]; // the position whose rank is the number
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      from[round] = static_cast<uint32_t>(first + Marked::place(round));
      if (placed.isLater(round))
        from[round] = batch.slots[placed.slot[round]];
    }
    uint2 rank[kEach]; // of all, so that no load waits for a branch
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      rank[round] = batch.ranks[from[round] / kWarp];
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      number[round] = rankIn(rank[round], from[round]);
    if (result.ids)
      writeIds(batch, first, placed, number, result.ids);
    if (!result.inverse && !result.counts)
      continue;
    __syncthreads(); // no repetitions are counted, and nobody reads the last tile's numbers
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (placed.isRepeated(round))
        atomicAdd(ofTile.repetitions + placed.slot[round], 1u);
      ofTile.numbers[Marked::place(round)] = number[round];
    }
    __syncthreads(); // numbers and repetitions are there
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      const bool isRepeated = placed.isRepeated(round), isNone = placed.slot[round] == kFree;
      if (result.counts && !isRepeated && !isNone)
        atomicAdd(result.counts + number[round], 1 + ofTile.repetitions[item]);
      const uint32_t numbered = ofTile.numbers[isRepeated ? placed.slot[round] : item];
      if (result.inverse && first + item < batch.count)
        result.inverse[first + item] = isNone ? static_cast<uint32_t>(batch.count) : numbered;
    }
  }
}

/// Numbers distinct ids owner by owner. An id is first in the tile that has its number or in an
/// earlier one, which is under way (look_back.h): its number will be in its slot.
__global__ void __launch_bounds__(kThreads, kBlocks)
    numberByOwner(Batch batch, LookBackTiles tiles, ByOwner numbering, UniqueResult result) {
  __shared__ ByOwner::Shared shared;
  __shared__ uint32_t numbers[Marked::kItems];
  numbering.begin(shared);
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * Marked::kItems;
    Placed placed(batch, first);
    uint32_t there[kEach];
    numbering.number(batch, tiles, tile, placed, result, shared, there);
    if (result.ids)
      writeIds(batch, first, placed, there, result.ids);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (!placed.isFirst(round))
        continue;
      there[round] |= kNumbered;
      storeRelaxed(batch.slots + placed.slot[round], there[round]);
    }
    if (!result.inverse)
      continue;
    __syncthreads(); // the tile's own numbers are in slots: who waits now, waits for other blocks
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (placed.isLater(round))
        there[round] = loadRelaxed(batch.slots + placed.slot[round]);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (placed.slot[round] == kFree || placed.isRepeated(round))
        continue;
      while (!(there[round] & kNumbered))
        there[round] = loadRelaxed(batch.slots + placed.slot[round]);
      numbers[Marked::place(round)] = there[round] & ~kNumbered;
    }
    __syncthreads(); // numbers are there
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      if (first + item < batch.count)
        result.inverse[first + item] =
            placed.slot[round] == kFree
                ? static_cast<uint32_t>(batch.count)
                : numbers[placed.isRepeated(round) ? placed.slot[round] : item];
    }
  }
}

} // namespace
} // namespace unique

void Unique::reserve(int64_t count, cudaStream_t stream) {
  const int64_t words = unique::noteWords(count);
  slots.ensure(2 * count, stream);
  slotOf.ensure(count, stream);
  firsts.ensure(words, stream);
  repeats.ensure(words, stream);
  ranks.ensure(words, stream);
}

unique::Batch Unique::place(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                            int64_t segments, bool skipsZero, const unique::Owners &owners,
                            const LookBackTiles &ofOwners, cudaStream_t stream) {
  using namespace unique;
  const int64_t words = noteWords(count);
  reserve(count, stream);
  const Batch batch{ids,           count,         segmentOffsets, segments,     slots.data(),
                    slotOf.data(), firsts.data(), repeats.data(), ranks.data(), skipsZero};
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(clearedItems(words), kThreads), clearSlots, batch,
                     words, ofOwners, owners);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(tilesOf(count) * kThreads, kThreads), placeIds, batch,
                     tilesOf(count), owners);
  return batch;
}

void Unique::number(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                    int64_t segments, bool skipsZero, const UniqueResult &result,
                    cudaStream_t stream) {
  using namespace unique;
  if (count == 0)
    return clear(result, result.offsets, segments, stream);
  const Batch batch = place(ids, count, segmentOffsets, segments, skipsZero, {}, {}, stream);
  const int64_t words = noteWords(count), // below 2^26
      part = blocksFor(blocksFor(words, kMostRankBlocks), kThreads) * kThreads;
  GENREC_CUDA_LAUNCH(
      stream, (LaunchShape{dim3(static_cast<unsigned>(blocksFor(words, part))), dim3(kThreads)}),
      rankFirsts, batch, static_cast<int>(words), static_cast<int>(part), result);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(tilesOf(count) * kThreads, kThreads), writeNumbers,
                     batch, tilesOf(count), result);
}

void Unique::run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
                 const UniqueResult &result, cudaStream_t stream) {
  number(ids, count, segmentOffsets, segments, false, result, stream);
}

void Unique::runWithoutZero(const int64_t *ids, int64_t count, const UniqueResult &result,
                            cudaStream_t stream) {
  UniqueResult inner = result;
  inner.offsets = nullptr;
  number(ids, count, nullptr, 1, true, inner, stream);
}

void Unique::runByOwner(const int64_t *ids, int64_t count, uint32_t ownerCount,
                        const UniqueResult &result, int64_t *ownerOffsets, cudaStream_t stream) {
  using namespace unique;
  if (ownerCount < 1 || ownerCount > kMostOwners)
    throw std::invalid_argument("ids of " + std::to_string(ownerCount) +
                                " owners: there are from 1 to " + std::to_string(kMostOwners));
  if (count == 0)
    return clear(result, ownerOffsets, ownerCount, stream);
  const int64_t tileCount = tilesOf(count);
  const Owners owners{ownerCount, ofOwners.ensure(ownerCount, stream)};
  const LookBackTiles tiles{states.ensure(LookBackTiles::words(tileCount, ownerCount), stream),
                            tileCount, ownerCount};
  const Batch batch = place(ids, count, nullptr, 1, false, owners, tiles, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(tileCount * kThreads, kThreads), numberByOwner, batch,
                     tiles, ByOwner(owners, ownerOffsets), result);
}

} // namespace genrec::rt::cuda
