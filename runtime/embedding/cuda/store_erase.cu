//===- store_erase.cu - Erasing rows on a device --------------------------===//

#include "genrec_rt/cuda/store.h"

#include "store_shape.h"

#include "genrec_rt/footprint.h"

namespace genrec::rt::cuda {

namespace {

/// slotOf[i] = the slot of an id; firstOf[its row] is made the greatest number.
__global__ void __launch_bounds__(kStoreThreads)
    findErased(KeyTable table, const int64_t *ids, const uint8_t *valid, int64_t count,
               int64_t *slotOf, uint32_t *firstOf) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isWanted = i < count && (!valid || valid[i]);
    const Entry found = findEntry(table, isWanted ? ids[i] : 0, isWanted);
    if (i < count)
      slotOf[i] = found.slot;
    if (found.slot != kNoSlot)
      storeRelaxed(firstOf + found.row, 0xFFFFFFFFu); // by all that name the id
  }
}

/// firstOf[row] = the least position of its id.
__global__ void __launch_bounds__(kStoreThreads)
    findFirstErased(KeyTable table, const int64_t *slotOf, int64_t count, uint32_t *firstOf) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (slotOf[i] != kNoSlot)
      atomicMin(firstOf + table.row(slotOf[i]), static_cast<uint32_t>(i));
}

__global__ void __launch_bounds__(kStoreThreads)
    flagErased(KeyTable table, const int64_t *slotOf, int64_t count, const uint32_t *firstOf,
               uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = slotOf[i] != kNoSlot && firstOf[table.row(slotOf[i])] == static_cast<uint32_t>(i);
}

/// A tile per id. A sector of a bucket that searches may go past has no empty slot, before its
/// slots are erased and after.
__global__ void __launch_bounds__(kStoreThreads)
    eraseSlots(KeyTable table, const int64_t *ids, const int64_t *slotOf, int64_t count,
               const uint8_t *flags, const uint32_t *ranks, uint32_t *freedNumbers,
               StoreCounters *counters, MemberCounts members) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    if (!flags[i])
      continue;
    const int64_t slot = slotOf[i], bucket = slot / kBucketSlots;
    const uint4 digests = loadRelaxed4(detail::laneDigests(table.digests, bucket, tile));
    const bool isNear = slot % kBucketSlots / kHomeSlots == tile.rank / kHomeLanes;
    const bool hasEmpty = __any_sync(tile.mask, isNear && hasZero(digests));
    if (tile.rank != 0)
      continue;
    unsigned *word = reinterpret_cast<unsigned *>(table.digests + (slot & ~int64_t(3)));
    const int shift = static_cast<int>(slot & 3) * 8;
    // One step: a slot of a full bucket must never look empty, not even to tiles that erase beside
    // this one.
    const uint32_t after = hasEmpty ? kEmpty : kErased;
    const uint32_t before = loadRelaxed(word) >> shift & 0xFF;
    atomicXor(word, (before ^ after) << shift);
    if (hasEmpty)
      atomicSub(&counters->used, 1u);
    else
      atomicAdd(&counters->erased, 1u);
    freedNumbers[counters->freed + ranks[i]] = table.row(slot);
    members.remove(ids[i]);
  }
}

__global__ void countErased(StoreCounters *counters) { counters->freed += counters->fresh; }

} // namespace

/// Makes room for the numbers of all rows that memory has room for; keeps those in `freedNumbers`.
void EmbeddingStore::makeRoomForNumbers(cudaStream_t stream) {
  const int64_t numbers = static_cast<int64_t>(chunks.size()) * addresses.chunkRows;
  firstOf.ensure(numbers, stream);
  freedNumbers.ensureKept(numbers, stream);
}

void EmbeddingStore::eraseValid(const int64_t *ids, const uint8_t *valid, int64_t count,
                                cudaStream_t stream) {
  if (count == 0)
    return;
  ++version;
  const int64_t room = capacityBucket(count);
  placeOf.ensure(room, stream);
  flags.ensure(room, stream);
  ranks.ensure(room, stream);
  makeRoomForNumbers(stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), findErased, table, ids, valid, count,
                     placeOf.data(), firstOf.data());
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), findFirstErased, table, placeOf.data(), count,
                     firstOf.data());
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), flagErased, table, placeOf.data(), count,
                     firstOf.data(), flags.data());
  flagRanks.run(flags.data(), count, ranks.data(), &counters.data()->fresh, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, kTileLanes), eraseSlots, table, ids, placeOf.data(),
                     count, flags.data(), ranks.data(), freedNumbers.data(), counters.data(),
                     memberCountsOnDevice());
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), countErased, counters.data());
  if (lowerHalves.room() > 0)
    giveBackErased(count, stream);
}

void EmbeddingStore::erase(const StoreStream &on, const int64_t *ids, int64_t count) {
  const cudaStream_t stream = streamOf(on);
  if (cache) {
    if (count == 0)
      return;
    ++version;
    cache->erase(ids, count, placeOf.ensure(capacityBucket(count), stream), cacheCounts(), stream);
    return;
  }
  eraseValid(ids, nullptr, count, stream);
  if (waitingIds)
    waitingIds->eraseValid(ids, nullptr, count, stream);
}

} // namespace genrec::rt::cuda
