//===- unique.cu - Distinct ids of a batch --------------------------------===//

#include "genrec_rt/kernels/cuda/unique.h"

#include "unique_numbers.h"

#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace genrec::rt::cuda {

using namespace unique;

namespace {

/// The results of no ids.
void clear(const UniqueResult &result, int64_t *offsets, int64_t parts, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(result.total, 0, sizeof(uint32_t), stream));
  if (offsets)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(offsets, 0, static_cast<size_t>(parts + 1) * sizeof(int64_t), stream));
}

LaunchShape shapeOf(int64_t items) { return shapeOfThreads(items, kThreads); }

/// Two slots of a position; notes of 32, which tiles have to their ends; and what is counted.
__global__ void __launch_bounds__(kThreads)
    clearSlots(Batch batch, int64_t noteWords, LookBackTiles tiles, Owners owners,
               uint32_t *counts) {
  for (int64_t i = threadInGrid(); i < noteWords * kWarp; i += threadsInGrid()) {
    if (i < noteWords)
      batch.notes[i] = {0, 0};
    if (i < owners.count)
      owners.totals[i] = 0;
    if (i >= batch.count)
      continue;
    reinterpret_cast<uint2 *>(batch.slots)[i] = {kFree, kFree};
    if (counts)
      counts[i] = 0;
  }
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
    __syncthreads(); // nobody reads the last tile's
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      tileIds.ids[item] = first + item < batch.count ? batch.ids[first + item] : 0;
    }
    for (uint32_t at = threadIdx.x; at < TileIds::kSlots; at += kThreads)
      tileIds.items[at] = kFree;
    __syncthreads(); // ids are there, and no items
    Placing placing(batch, first);
    placing.findRepetitions(batch, first, tileIds);
    const auto begin = static_cast<uint32_t>(first);
    placing.take(batch, begin, tileIds.ids);
    placing.lookOn(batch, begin, tileIds.ids);
    if (owners.count)
#pragma unroll
      for (int round = 0; round < kEach; ++round)
        if (placing.isGoing(round) && placing.there[round] == kFree)
          atomicAdd(distinct + ownerOf(tileIds.ids[Marked::place(round)], owners.count), 1u);
    placing.lower(batch, begin);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const uint32_t position = begin + static_cast<uint32_t>(Marked::place(round));
      const bool goes = placing.isGoing(round);
      Notes::write(batch, position, goes && placing.there[round] > position,
                   !goes && placing.slot[round] != kFree);
      if (position < batch.count)
        batch.slotOf[position] = placing.slot[round];
    }
  }
  __syncthreads(); // distinct ids are counted
  for (uint32_t owner = threadIdx.x; owner < owners.count; owner += kThreads)
    atomicAdd(owners.totals + owner, distinct[owner]);
}

/// What the items of a tile tell its repetitions, and these it.
struct TileNumbers {
  uint32_t numbers[Marked::kItems];
  uint32_t repetitions[Marked::kItems];
};

/// Numbers distinct ids and writes what is asked for. An id is first in the tile that has its
/// number or in an earlier one, which is under way (look_back.h): its number will be in its slot.
template <class Numbering>
__global__ void __launch_bounds__(kThreads, kBlocks)
    numberIds(Batch batch, LookBackTiles tiles, Numbering numbering, UniqueResult result) {
  __shared__ typename Numbering::Shared shared;
  __shared__ TileNumbers ofTile;
  numbering.begin(shared);
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * Marked::kItems;
    Placed placed(batch, first);
    const bool counts = Numbering::kMayCount && result.counts;
    if (counts)
#pragma unroll
      for (int round = 0; round < kEach; ++round)
        ofTile.repetitions[Marked::place(round)] = 0;
    uint32_t there[kEach];
    numbering.number(batch, tiles, tile, placed, result, shared, there);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (!placed.isFirst(round))
        continue;
      if (result.ids)
        result.ids[there[round]] = batch.ids[first + Marked::place(round)];
      there[round] |= kNumbered;
      storeRelaxed(batch.slots + placed.slot[round], there[round]);
    }
    if (!result.inverse && !counts)
      continue;
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (placed.isRepeated(round)) {
        if (counts)
          atomicAdd(ofTile.repetitions + placed.slot[round], 1u);
      } else if (placed.slot[round] != kFree && !placed.isFirst(round)) {
        there[round] = loadRelaxed(batch.slots + placed.slot[round]);
      }
    }
    if (counts)
      __syncthreads(); // repetitions are counted
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      if (placed.slot[round] == kFree || placed.isRepeated(round))
        continue;
      while (!(there[round] & kNumbered))
        there[round] = loadRelaxed(batch.slots + placed.slot[round]);
      ofTile.numbers[item] = there[round] & ~kNumbered;
      if (counts)
        atomicAdd(result.counts + ofTile.numbers[item], 1 + ofTile.repetitions[item]);
    }
    __syncthreads(); // numbers are there
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      if (result.inverse && first + item < batch.count)
        result.inverse[first + item] =
            placed.slot[round] == kFree
                ? static_cast<uint32_t>(batch.count)
                : ofTile.numbers[placed.isRepeated(round) ? placed.slot[round] : item];
    }
  }
}

} // namespace

template <class Numbering>
void Unique::number(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                    int64_t segments, const UniqueResult &result, bool skipsZero,
                    const Numbering &numbering, cudaStream_t stream) {
  const int64_t tileCount = blocksFor(count, Marked::kItems),
                noteWords = tileCount * (Marked::kItems / kWarp);
  const Batch batch{ids,
                    count,
                    segmentOffsets,
                    segments,
                    slots.ensure(2 * count, stream),
                    slotOf.ensure(count, stream),
                    notes.ensure(noteWords, stream),
                    skipsZero};
  const Owners owners = numbering.countedOwners();
  const int64_t sums = std::max<int64_t>(owners.count, 1);
  const LookBackTiles tiles{states.ensure(LookBackTiles::words(tileCount, sums), stream), tileCount,
                            sums};
  GENREC_CUDA_LAUNCH(stream, shapeOf(noteWords * kWarp), clearSlots, batch, noteWords, tiles,
                     owners, result.counts);
  GENREC_CUDA_LAUNCH(stream, shapeOf(tileCount * kThreads), placeIds, batch, tileCount, owners);
  GENREC_CUDA_LAUNCH(stream, shapeOf(tileCount * kThreads), numberIds<Numbering>, batch, tiles,
                     numbering, result);
}

void Unique::run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
                 const UniqueResult &result, cudaStream_t stream) {
  if (count > 0)
    number(ids, count, segmentOffsets, segments, result, false, ByAppearance(), stream);
  else
    clear(result, result.offsets, segments, stream);
}

void Unique::runWithoutZero(const int64_t *ids, int64_t count, const UniqueResult &result,
                            cudaStream_t stream) {
  UniqueResult inner = result;
  inner.offsets = nullptr;
  if (count > 0)
    number(ids, count, nullptr, 1, inner, true, ByAppearance(), stream);
  else
    clear(inner, nullptr, 0, stream);
}

void Unique::runByOwner(const int64_t *ids, int64_t count, uint32_t ownerCount,
                        const UniqueResult &result, int64_t *ownerOffsets, cudaStream_t stream) {
  if (ownerCount < 1 || ownerCount > kMostOwners)
    throw std::invalid_argument("ids of " + std::to_string(ownerCount) +
                                " owners: there are from 1 to " + std::to_string(kMostOwners));
  UniqueResult inner = result;
  inner.counts = nullptr;
  inner.offsets = nullptr;
  const Owners owners{ownerCount, ofOwners.ensure(ownerCount, stream)};
  if (count > 0)
    number(ids, count, nullptr, 1, inner, false, ByOwner(owners, ownerOffsets), stream);
  else
    clear(inner, ownerOffsets, ownerCount, stream);
}

} // namespace genrec::rt::cuda
