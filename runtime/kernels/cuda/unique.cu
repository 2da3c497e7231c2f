//===- unique.cu - Distinct ids of a batch --------------------------------===//

#include "genrec_rt/kernels/cuda/unique.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/offsets.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256;
/// A slot nobody has: all bits set, as cudaMemset leaves them. No id is so.
constexpr int64_t kFree = -1;

LaunchShape shapeOf(int64_t items) {
  return shapeOfThreads(items, kThreads);
}

/// Gives every id its slot, and every slot the least position of its id.
__global__ void __launch_bounds__(kThreads)
    placeIds(const int64_t *ids, int64_t count, const int64_t *offsets, int64_t segments,
             int64_t *keys, uint32_t *firsts, uint32_t *slotOf) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const int64_t segment = lastAtMost(offsets, segments, i);
    const uint32_t begin = static_cast<uint32_t>(2 * offsets[segment]);
    const uint32_t size = static_cast<uint32_t>(2 * (offsets[segment + 1] - offsets[segment]));
    const int64_t id = ids[i];
    const uint64_t hash = splitMix64(static_cast<uint64_t>(id));
    uint32_t at = static_cast<uint32_t>((hash >> 32) * size >> 32);
    while (true) {
      Word *key = reinterpret_cast<Word *>(keys + begin + at);
      // Most ids are there already: a load is cheaper than an exchange.
      int64_t there = static_cast<int64_t>(loadRelaxed(key));
      if (there == kFree)
        there =
            static_cast<int64_t>(atomicCAS(key, static_cast<Word>(kFree), static_cast<Word>(id)));
      if (there == kFree || there == id)
        break;
      at = at + 1 < size ? at + 1 : 0;
    }
    // Of an id that occurs a million times, few occurrences need an exchange.
    uint32_t *first = firsts + begin + at;
    if (loadRelaxed(first) > static_cast<uint32_t>(i))
      atomicMin(first, static_cast<uint32_t>(i));
    slotOf[i] = begin + at;
  }
}

__global__ void __launch_bounds__(kThreads)
    flagFirsts(const uint32_t *firsts, const uint32_t *slotOf, int64_t count, uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = firsts[slotOf[i]] == static_cast<uint32_t>(i);
}

__global__ void __launch_bounds__(kThreads)
    writeUnique(const int64_t *ids, int64_t count, const uint32_t *firsts, const uint32_t *slotOf,
                const uint8_t *flags, const uint32_t *ranks, UniqueResult result) {
  // Whole warps, so that the lanes with one id count it together.
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const uint32_t number = i < count ? ranks[firsts[slotOf[i]]] : 0xFFFFFFFFu;
    if (result.counts) {
      const uint32_t equal = __match_any_sync(kAllLanes, number);
      if (i < count && laneOf() == __ffs(static_cast<int>(equal)) - 1)
        atomicAdd(result.counts + number, static_cast<uint32_t>(__popc(equal)));
    }
    if (i >= count)
      continue;
    if (flags[i] && result.ids)
      result.ids[number] = ids[i];
    if (result.inverse)
      result.inverse[i] = number;
  }
}

__global__ void __launch_bounds__(kThreads)
    writeOffsets(const uint32_t *ranks, int64_t count, const int64_t *segmentOffsets,
                 int64_t segments, UniqueResult result) {
  for (int64_t s = threadInGrid(); s <= segments; s += threadsInGrid())
    result.offsets[s] = segmentOffsets[s] < count ? ranks[segmentOffsets[s]] : *result.total;
}

/// The owner of every distinct id; what is behind them comes behind all owners.
__global__ void __launch_bounds__(kThreads)
    findOwners(const int64_t *ids, int64_t count, const uint32_t *total, uint32_t owners,
               uint32_t *ownerOfId) {
  for (int64_t u = threadInGrid(); u < count; u += threadsInGrid())
    ownerOfId[u] = u < *total ? ownerOf(ids[u], owners) : owners;
}

__global__ void __launch_bounds__(kThreads)
    groupByOwner(const int64_t *ids, const uint32_t *order, int64_t count, const uint32_t *total,
                 const uint32_t *ownerOfId, uint32_t owners, uint32_t *positions, int64_t *grouped,
                 int64_t *ownerOffsets) {
  for (int64_t at = threadInGrid(); at <= count; at += threadsInGrid()) {
    // Owners that begin here: those above the one before, up to the one here.
    const uint32_t here = at < count ? ownerOfId[order[at]] : owners;
    const uint32_t before = at > 0 ? ownerOfId[order[at - 1]] + 1 : 0;
    for (uint32_t owner = before; owner <= here; ++owner)
      ownerOffsets[owner] = at;
    if (at >= count || at >= *total)
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

/// The one segment of a whole batch.
__global__ void writeWhole(int64_t count, int64_t *offsets) {
  offsets[0] = 0;
  offsets[1] = count;
}

} // namespace

void Unique::run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
                 const UniqueResult &result, cudaStream_t stream) {
  const int64_t slots = std::max<int64_t>(2 * count, 1);
  keys.ensure(slots, stream);
  firsts.ensure(slots, stream);
  slotOf.ensure(std::max<int64_t>(count, 1), stream);
  flags.ensure(std::max<int64_t>(count, 1), stream);
  ranks.ensure(std::max<int64_t>(count, 1), stream);
  if (count > 0) {
    GENREC_CUDA_CHECK(cudaMemsetAsync(keys.data(), 0xFF, static_cast<size_t>(slots) * 8, stream));
    GENREC_CUDA_CHECK(cudaMemsetAsync(firsts.data(), 0xFF, static_cast<size_t>(slots) * 4, stream));
    if (result.counts)
      GENREC_CUDA_CHECK(cudaMemsetAsync(result.counts, 0, static_cast<size_t>(count) * 4, stream));
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), placeIds, ids, count, segmentOffsets, segments,
                       keys.data(), firsts.data(), slotOf.data());
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), flagFirsts, firsts.data(), slotOf.data(), count,
                       flags.data());
  }
  flagRanks.run(flags.data(), count, ranks.data(), result.total, stream);
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), writeUnique, ids, count, firsts.data(),
                       slotOf.data(), flags.data(), ranks.data(), result);
  if (result.offsets)
    GENREC_CUDA_LAUNCH(stream, shapeOf(segments + 1), writeOffsets, ranks.data(), count,
                       segmentOffsets, segments, result);
}

void Unique::runByOwner(const int64_t *ids, int64_t count, uint32_t ownerCount,
                        const UniqueResult &result, int64_t *ownerOffsets, cudaStream_t stream) {
  const int64_t room = std::max<int64_t>(count, 1);
  wholeBatch.ensure(2, stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), writeWhole, count, wholeBatch.data());
  UniqueResult inner = result;
  inner.ids = distinct.ensure(room, stream);
  inner.counts = nullptr;
  inner.offsets = nullptr;
  run(ids, count, wholeBatch.data(), 1, inner, stream);
  owners.ensure(room, stream);
  order.ensure(room, stream);
  positions.ensure(room, stream);
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), findOwners, inner.ids, count, result.total,
                       ownerCount, owners.data());
  stableOrder.run(owners.data(), count, int64_t(ownerCount) + 1, order.data(), stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count + 1), groupByOwner, inner.ids, order.data(), count,
                     result.total, owners.data(), ownerCount, positions.data(), result.ids,
                     ownerOffsets);
  if (count > 0 && result.inverse)
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), renumber, positions.data(), count, result.inverse);
}

} // namespace genrec::rt::cuda
