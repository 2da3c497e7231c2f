//===- unique.cu - Distinct ids of a batch --------------------------------===//

#include "genrec_rt/kernels/cuda/unique.h"

#include "look_back.h"
#include "marked.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/offsets.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256, kEach = 8;
using Marked = MarkedTile<kThreads, kEach>;

/// What a slot holds: nothing, as all bits set; the least position so far of the id that has it;
/// with this bit, the number of the id.
constexpr uint32_t kFree = 0xFFFFFFFFu, kNumbered = 0x80000000u;

LaunchShape shapeOf(int64_t items) { return shapeOfThreads(items, kThreads); }

/// The ids of a call and the hash table over them. A slot names its id by a position, so keys need
/// no memory of their own.
struct Batch {
  const int64_t *ids;
  int64_t count;
  const int64_t *offsets; ///< of segments; null: one is all of the batch
  int64_t segments;
  uint32_t *slots; ///< [2 count]
  /// [count] kFree of an id that is skipped; of a repetition the item of its tile that has its id
  /// first.
  uint32_t *slotOf;
  uint2 *notes; ///< [tiles][kItems / 32] of 32 positions each: a bit each for what Notes has
  bool skipsZero;

  __device__ bool isSkipped(int64_t id) const { return skipsZero && id == 0; }
};

/// The positions that equal ids share.
struct Segment {
  int64_t from, to;

  __device__ Segment(const Batch &batch, int64_t i) : from(0), to(batch.count) {
    if (!batch.offsets)
      return;
    const int64_t segment = lastAtMost(batch.offsets, batch.segments, i);
    from = batch.offsets[segment];
    to = batch.offsets[segment + 1];
  }
  __device__ bool has(int64_t i) const { return from <= i && i < to; }
};

/// What is known of an id once it is placed. Bits of 32 positions are words of Batch::notes.
struct Notes {
  bool mayBeFirst = false; ///< no earlier position of the id was seen
  bool isRepeated = false; ///< in its tile

  /// By whole warps, of the position of lane 0.
  __device__ void write(const Batch &batch, int64_t first) const {
    const uint2 words = {__ballot_sync(kAllLanes, mayBeFirst),
                         __ballot_sync(kAllLanes, isRepeated)};
    if (laneOf() == 0)
      batch.notes[first / kWarp] = words;
  }
  __device__ static Notes read(const Batch &batch, int64_t i) {
    const uint2 words = batch.notes[i / kWarp];
    return {(words.x >> laneOf() & 1) != 0, (words.y >> laneOf() & 1) != 0};
  }
};

/// Two slots of a position, and its count.
__global__ void __launch_bounds__(kThreads) clearSlots(Batch batch, uint32_t *counts) {
  for (int64_t i = threadInGrid(); i < batch.count; i += threadsInGrid()) {
    reinterpret_cast<uint2 *>(batch.slots)[i] = {kFree, kFree};
    if (counts)
      counts[i] = 0;
  }
}

/// Gives the id of position `i` its slot, and the slot the least position of its id.
__device__ uint32_t placeId(const Batch &batch, int64_t i, int64_t id, Notes &notes) {
  const Segment segment(batch, i);
  const auto begin = static_cast<uint32_t>(2 * segment.from),
             size = static_cast<uint32_t>(2 * (segment.to - segment.from));
  const auto position = static_cast<uint32_t>(i);
  auto at = static_cast<uint32_t>((splitMix64(static_cast<uint64_t>(id)) >> 32) * size >> 32);
  while (true) {
    uint32_t *slot = batch.slots + begin + at;
    // Most ids are there already: a load is cheaper than an exchange.
    uint32_t there = loadRelaxed(slot);
    if (there == kFree)
      there = atomicCAS(slot, kFree, position);
    notes.mayBeFirst = there > position; // kFree: nobody was there
    if (there == kFree)
      return begin + at;
    if (batch.ids[there] == id) {
      // Of an id that occurs a million times, few occurrences need an exchange.
      if (there > position)
        atomicMin(slot, position);
      return begin + at;
    }
    at = at + 1 < size ? at + 1 : 0;
  }
}

/// The ids of a tile in shared memory, and a hash table over them as that over the batch.
struct TileIds {
  static constexpr uint32_t kSlots = 2 * Marked::kItems;

  int64_t ids[Marked::kItems];
  uint32_t items[kSlots];

  /// The slot of an item, which ends with the first item that has its id.
  __device__ uint32_t place(const Batch &batch, int64_t first, uint32_t item) {
    const int64_t id = ids[item];
    auto at = static_cast<uint32_t>(splitMix64(static_cast<uint64_t>(id))) % kSlots;
    while (true) {
      uint32_t there = loadRelaxed(items + at);
      if (there == kFree)
        there = atomicCAS(items + at, kFree, item);
      if (there == kFree)
        return at;
      if (ids[there] == id && Segment(batch, first + item).has(first + there)) {
        if (there > item)
          atomicMin(items + at, item);
        return at;
      }
      at = (at + 1) % kSlots;
    }
  }
};

/// Places ids. A tile finds its own repetitions first, and only what is left goes to the table.
__global__ void __launch_bounds__(kThreads) placeIds(Batch batch, int64_t tiles) {
  __shared__ TileIds tileIds;
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
    uint32_t at[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const auto item = static_cast<uint32_t>(Marked::place(round));
      at[round] = first + item < batch.count && !batch.isSkipped(tileIds.ids[item])
                      ? tileIds.place(batch, first, item)
                      : kFree;
    }
    __syncthreads(); // the first item of every id is known
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const auto item = static_cast<uint32_t>(Marked::place(round));
      uint32_t slot = kFree;
      Notes notes;
      if (at[round] != kFree) {
        slot = tileIds.items[at[round]];
        notes.isRepeated = slot != item;
        if (!notes.isRepeated)
          slot = placeId(batch, first + item, tileIds.ids[item], notes);
      }
      if (first + item < batch.count)
        batch.slotOf[first + item] = slot;
      notes.write(batch, first + item);
    }
  }
}

/// Where the segments begin that begin in the tile from `first` on; the last tile has those behind
/// all ids.
__device__ void writeOffsets(const Batch &batch, int64_t first, bool isLast, uint32_t before,
                             uint32_t sum, const Marked::Shared &marked, int64_t *offsets) {
  const int64_t all = batch.segments + 1, end = first + Marked::kItems;
  const int64_t segmentEnd = isLast ? all : firstAtLeast(batch.offsets, all, end);
  for (int64_t s = firstAtLeast(batch.offsets, all, first) + threadIdx.x; s < segmentEnd;
       s += kThreads) {
    const int64_t at = batch.offsets[s];
    offsets[s] = before + (at < batch.count ? marked.rank(static_cast<int>(at - first)) : sum);
  }
}

/// What the items of a tile tell its repetitions, and these it.
struct TileNumbers {
  uint32_t numbers[Marked::kItems];
  uint32_t repetitions[Marked::kItems];
};

/// Numbers distinct ids by first appearance. An id is first in the tile that has its number or in
/// an earlier one, which is under way (look_back.h): its number will be in its slot.
__global__ void __launch_bounds__(kThreads)
    numberIds(Batch batch, LookBackTiles tiles, UniqueResult result, uint32_t owners,
              uint32_t *ownerOfId) {
  __shared__ Marked::Shared shared;
  __shared__ TileNumbers ofTile;
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * Marked::kItems;
    uint32_t slot[kEach], there[kEach];
    Notes notes[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int64_t i = first + Marked::place(round);
      slot[round] = i < batch.count ? batch.slotOf[i] : kFree;
      notes[round] = Notes::read(batch, i);
      ofTile.repetitions[Marked::place(round)] = 0;
    }
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      there[round] = notes[round].mayBeFirst ? loadRelaxed(batch.slots + slot[round]) : 0;
    Marked marked;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      marked.mark(round, notes[round].mayBeFirst &&
                             there[round] == static_cast<uint32_t>(first + Marked::place(round)));
    const uint32_t sum = marked.count();
    marked.show(shared);
    const uint32_t before = tiles.sumBefore(tile, sum);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const uint32_t number = before + marked.rank(round);
      if (!marked.isMarked(round))
        continue;
      there[round] = kNumbered | number;
      storeRelaxed(batch.slots + slot[round], there[round]);
      const int64_t id = batch.ids[first + Marked::place(round)];
      if (result.ids)
        result.ids[number] = id;
      if (ownerOfId)
        ownerOfId[number] = ownerOf(id, owners);
    }
    const bool isLast = tile == tiles.count - 1;
    if (isLast && threadIdx.x == 0)
      *result.total = before + sum;
    if (result.offsets)
      writeOffsets(batch, first, isLast, before, sum, shared, result.offsets);
    if (!result.inverse && !result.counts)
      continue;
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (notes[round].isRepeated)
        atomicAdd(ofTile.repetitions + slot[round], 1u);
      else if (slot[round] != kFree && !(there[round] & kNumbered))
        there[round] = loadRelaxed(batch.slots + slot[round]);
    }
    __syncthreads(); // repetitions are counted
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      if (slot[round] == kFree || notes[round].isRepeated)
        continue;
      while (!(there[round] & kNumbered))
        there[round] = loadRelaxed(batch.slots + slot[round]);
      ofTile.numbers[item] = there[round] & ~kNumbered;
      if (result.counts)
        atomicAdd(result.counts + ofTile.numbers[item], 1 + ofTile.repetitions[item]);
    }
    __syncthreads(); // numbers are there
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      if (result.inverse && first + item < batch.count)
        result.inverse[first + item] =
            slot[round] == kFree ? static_cast<uint32_t>(batch.count)
                                 : ofTile.numbers[notes[round].isRepeated ? slot[round] : item];
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    groupByOwner(const int64_t *ids, const uint32_t *order, const uint32_t *total,
                 const uint32_t *ownerOfId, uint32_t owners, uint32_t *positions, int64_t *grouped,
                 int64_t *ownerOffsets) {
  const int64_t count = *total;
  for (int64_t at = threadInGrid(); at <= count; at += threadsInGrid()) {
    // Owners that begin here: those above the one before, up to the one here.
    const uint32_t here = at < count ? ownerOfId[order[at]] : owners;
    const uint32_t before = at > 0 ? ownerOfId[order[at - 1]] + 1 : 0;
    for (uint32_t owner = before; owner <= here; ++owner)
      ownerOffsets[owner] = at;
    if (at == count)
      continue;
    positions[order[at]] = static_cast<uint32_t>(at);
    if (grouped)
      grouped[at] = ids[order[at]];
  }
}

__global__ void __launch_bounds__(kThreads)
    renumber(const uint32_t *positions, int64_t count, uint32_t *inverse) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    inverse[i] = positions[inverse[i]];
}

} // namespace

void Unique::number(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                    int64_t segments, const UniqueResult &result, bool skipsZero,
                    uint32_t ownerCount, uint32_t *ownerOfId, cudaStream_t stream) {
  if (count == 0) {
    GENREC_CUDA_CHECK(cudaMemsetAsync(result.total, 0, sizeof(uint32_t), stream));
    if (result.offsets)
      GENREC_CUDA_CHECK(
          cudaMemsetAsync(result.offsets, 0, static_cast<size_t>(segments + 1) * 8, stream));
    return;
  }
  const int64_t tileCount = blocksFor(count, Marked::kItems);
  const Batch batch{ids,
                    count,
                    segmentOffsets,
                    segments,
                    slots.ensure(2 * count, stream),
                    slotOf.ensure(count, stream),
                    notes.ensure(tileCount * (Marked::kItems / kWarp), stream),
                    skipsZero};
  const LookBackTiles tiles = makeTiles(tileCount, states, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count), clearSlots, batch, result.counts);
  GENREC_CUDA_LAUNCH(stream, shapeOf(tileCount * kThreads), placeIds, batch, tileCount);
  GENREC_CUDA_LAUNCH(stream, shapeOf(tiles.count * kThreads), numberIds, batch, tiles, result,
                     ownerCount, ownerOfId);
}

void Unique::run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
                 const UniqueResult &result, cudaStream_t stream) {
  number(ids, count, segmentOffsets, segments, result, false, 0, nullptr, stream);
}

void Unique::runWithoutZero(const int64_t *ids, int64_t count, const UniqueResult &result,
                            cudaStream_t stream) {
  UniqueResult inner = result;
  inner.offsets = nullptr;
  number(ids, count, nullptr, 1, inner, true, 0, nullptr, stream);
}

void Unique::runByOwner(const int64_t *ids, int64_t count, uint32_t ownerCount,
                        const UniqueResult &result, int64_t *ownerOffsets, cudaStream_t stream) {
  const int64_t room = std::max<int64_t>(count, 1);
  UniqueResult inner = result;
  inner.ids = distinct.ensure(room, stream);
  inner.counts = nullptr;
  inner.offsets = nullptr;
  owners.ensure(room, stream);
  order.ensure(room, stream);
  positions.ensure(room, stream);
  number(ids, count, nullptr, 1, inner, false, ownerCount, owners.data(), stream);
  stableOrder.run(owners.data(), count, ownerCount, order.data(), stream, result.total);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count + 1), groupByOwner, inner.ids, order.data(),
                     result.total, owners.data(), ownerCount, positions.data(), result.ids,
                     ownerOffsets);
  if (count > 0 && result.inverse)
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), renumber, positions.data(), count, result.inverse);
}

} // namespace genrec::rt::cuda
