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
  uint32_t *slots;  ///< [2 count]
  uint32_t *slotOf; ///< [count] kFree of an id that is skipped
  bool skipsZero;
};

/// Two slots of a position, and its count.
__global__ void __launch_bounds__(kThreads) clearSlots(Batch batch, uint32_t *counts) {
  for (int64_t i = threadInGrid(); i < batch.count; i += threadsInGrid()) {
    reinterpret_cast<uint2 *>(batch.slots)[i] = {kFree, kFree};
    if (counts)
      counts[i] = 0;
  }
}

/// Gives every id its slot, and every slot the least position of its id.
__global__ void __launch_bounds__(kThreads) placeIds(Batch batch) {
  for (int64_t i = threadInGrid(); i < batch.count; i += threadsInGrid()) {
    const int64_t id = batch.ids[i];
    if (batch.skipsZero && id == 0) {
      batch.slotOf[i] = kFree;
      continue;
    }
    int64_t from = 0, to = batch.count;
    if (batch.offsets) {
      const int64_t segment = lastAtMost(batch.offsets, batch.segments, i);
      from = batch.offsets[segment];
      to = batch.offsets[segment + 1];
    }
    const auto begin = static_cast<uint32_t>(2 * from),
               size = static_cast<uint32_t>(2 * (to - from));
    const auto position = static_cast<uint32_t>(i);
    const uint64_t hash = splitMix64(static_cast<uint64_t>(id));
    auto at = static_cast<uint32_t>((hash >> 32) * size >> 32);
    while (true) {
      uint32_t *slot = batch.slots + begin + at;
      // Most ids are there already: a load is cheaper than an exchange.
      uint32_t there = loadRelaxed(slot);
      if (there == kFree)
        there = atomicCAS(slot, kFree, position);
      if (there == kFree)
        break;
      if (batch.ids[there] == id) {
        // Of an id that occurs a million times, few occurrences need an exchange.
        if (there > position)
          atomicMin(slot, position);
        break;
      }
      at = at + 1 < size ? at + 1 : 0;
    }
    batch.slotOf[i] = begin + at;
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

/// Writes the number of id i, which its slot shows once who has the id first has written it;
/// `shown` is what the slot had. Called by whole warps; `slot` is kFree where there is no id, or
/// one that is skipped.
__device__ void writeNumber(const Batch &batch, int64_t i, uint32_t slot, uint32_t shown,
                            const UniqueResult &result) {
  while (slot != kFree && !(shown & kNumbered))
    shown = loadRelaxed(batch.slots + slot);
  const uint32_t number = slot != kFree ? shown & ~kNumbered : kFree;
  if (result.counts) {
    // The lanes with one id count it together.
    const uint32_t equal = __match_any_sync(kAllLanes, number);
    if (slot != kFree && laneOf() == __ffs(static_cast<int>(equal)) - 1)
      atomicAdd(result.counts + number, static_cast<uint32_t>(__popc(equal)));
  }
  if (i < batch.count && result.inverse)
    result.inverse[i] = slot != kFree ? number : static_cast<uint32_t>(batch.count);
}

/// Numbers distinct ids by first appearance. An id is first in the tile that has its number or in
/// an earlier one, which is under way (look_back.h): its number will be in its slot.
__global__ void __launch_bounds__(kThreads)
    numberIds(Batch batch, LookBackTiles tiles, UniqueResult result, uint32_t owners,
              uint32_t *ownerOfId) {
  __shared__ Marked::Shared shared;
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * Marked::kItems;
    uint32_t slot[kEach], there[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int64_t i = first + Marked::place(round);
      slot[round] = i < batch.count ? batch.slotOf[i] : kFree;
    }
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      there[round] = slot[round] != kFree ? loadRelaxed(batch.slots + slot[round]) : kFree;
    Marked marked;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      marked.mark(round, there[round] == static_cast<uint32_t>(first + Marked::place(round)));
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
    __syncthreads(); // numbers of this tile are there; only those of earlier ones are waited for
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (slot[round] != kFree && !(there[round] & kNumbered))
        there[round] = loadRelaxed(batch.slots + slot[round]);
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      writeNumber(batch, first + Marked::place(round), slot[round], there[round], result);
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
  const Batch batch{ids,
                    count,
                    segmentOffsets,
                    segments,
                    slots.ensure(2 * count, stream),
                    slotOf.ensure(count, stream),
                    skipsZero};
  const LookBackTiles tiles = makeTiles(blocksFor(count, Marked::kItems), states, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count), clearSlots, batch, result.counts);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count), placeIds, batch);
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
