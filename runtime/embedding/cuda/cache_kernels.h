//===- cache_kernels.h - The kernels of a cache's key table ------*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_CACHE_KERNELS_H
#define GENREC_RT_EMBEDDING_CUDA_CACHE_KERNELS_H

#include "genrec_rt/cuda/cache_keys.h"

namespace genrec::rt::cuda {

constexpr int kCacheThreads = 256;

/// Marks the rows that the table has; missing[i]: it has not got that id.
__global__ void __launch_bounds__(kCacheThreads)
    touchIds(CacheTable table, const int64_t *ids, const uint8_t *valid, int64_t count,
             int64_t *slotOf, uint8_t *missing) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isValid = i < count && (!valid || valid[i]);
    const int64_t slot = findEntry(table, isValid ? ids[i] : 0, isValid).slot;
    if (i >= count)
      continue;
    if (slot != kNoSlot)
      storeRelaxed(table.marks + slot, static_cast<uint8_t>(table.call)); // by all that name the id
    slotOf[i] = slot;
    missing[i] = isValid && slot == kNoSlot;
  }
}

/// The positions of missing ids, ascending, and their buckets.
__global__ void __launch_bounds__(kCacheThreads)
    listMissing(CacheShape shape, const int64_t *ids, int64_t count, const uint8_t *missing,
                const uint32_t *ranks, uint32_t *positions, uint32_t *buckets) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (missing[i]) {
      positions[ranks[i]] = static_cast<uint32_t>(i);
      buckets[ranks[i]] = static_cast<uint32_t>(shape.bucketOf(CacheTable::hashOf(ids[i])));
    }
}

/// Missing ids by bucket, those of a bucket by position.
struct MissingIds {
  const int64_t *ids;
  const uint32_t *positions, *buckets, *order;
  int64_t count;

  __device__ uint32_t bucket(int64_t at) const { return buckets[order[at]]; }
  __device__ uint32_t position(int64_t at) const { return positions[order[at]]; }
};

/// A warp places the missing ids of one bucket, which begin at `begin`, 32 at a time. Only as many
/// as a bucket has rows are placed one by one; repeated ids and those that find no room are not.
/// Returns how many rows the bucket has more.
__device__ inline uint32_t placeInBucket(const CacheTable &table, const MissingIds &missing,
                                         int64_t begin, const Placement &placement,
                                         uint32_t *refused) {
  const uint32_t bucket = missing.bucket(begin);
  uint32_t added = 0;
  bool isFull = false;
  for (int64_t base = begin;; base += kWarp) {
    const int64_t at = base + laneOf();
    const bool isOwn = at < missing.count && missing.bucket(at) == bucket;
    const uint32_t present = __ballot_sync(kAllLanes, isOwn);
    if (!present)
      return added;
    const uint32_t position = isOwn ? missing.position(at) : 0;
    const int64_t id = isOwn ? missing.ids[position] : 0;
    int64_t slot = kNoSlot;
    if (isOwn && base != begin)
      slot = findSlotAlone(table, bucket, id); // an earlier round may have placed it
    uint32_t open = __ballot_sync(kAllLanes, isOwn && slot == kNoSlot);
    while (open && !isFull) {
      const int leader = __ffs(static_cast<int>(open)) - 1;
      const int64_t key = __shfl_sync(kAllLanes, id, leader);
      const Placed placed = placeKey(table, bucket, key);
      isFull = placed.slot == kNoRoom;
      if (isFull)
        break;
      if (laneOf() == leader) {
        placement.placed[position] = 1;
        placement.leaving[position] = placed.isEvicting;
      }
      added += !placed.isEvicting;
      const bool isSame = (open >> laneOf() & 1) && id == key;
      if (isSame)
        slot = placed.slot;
      open &= ~__ballot_sync(kAllLanes, isSame);
    }
    if (isOwn)
      placement.slotOf[position] = slot == kNoSlot ? kNoRoom : slot;
    if (laneOf() == 0 && open)
      atomicAdd(refused, static_cast<uint32_t>(__popc(open)));
  }
}

__global__ void __launch_bounds__(kCacheThreads)
    placeMissing(CacheTable table, MissingIds missing, const uint32_t *count, Placement placement,
                 CacheCounts counts) {
  missing.count = *count;
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  uint32_t added = 0;
  for (int64_t base = warp * kWarp; base < missing.count; base += warps * kWarp) {
    const int64_t at = base + laneOf();
    const bool isFirst =
        at < missing.count && (at == 0 || missing.bucket(at) != missing.bucket(at - 1));
    uint32_t firsts = __ballot_sync(kAllLanes, isFirst);
    for (; firsts; firsts &= firsts - 1)
      added += placeInBucket(table, missing, base + __ffs(static_cast<int>(firsts)) - 1, placement,
                             counts.refused);
  }
  if (counts.rows && added > 0 && laneOf() == 0)
    atomicAdd(counts.rows, added);
}

__global__ void __launch_bounds__(kCacheThreads)
    countOccurrences(CacheTable table, const int64_t *slotOf, int64_t count) {
  // Whole warps, so that the lanes with one row count it together.
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t slot = base + laneOf() < count ? slotOf[base + laneOf()] : kNoSlot;
    const uint32_t equal = __match_any_sync(kAllLanes, slot);
    if (slot >= 0 && laneOf() == __ffs(static_cast<int>(equal)) - 1)
      atomicAdd(table.counts + slot, Word(__popc(equal)));
  }
}

/// After all occurrences are counted: equal slots write equal scores.
__global__ void __launch_bounds__(kCacheThreads)
    writeScores(CacheTable table, const int64_t *slotOf, int64_t count) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (slotOf[i] >= 0)
      storeRelaxed(table.scores + slotOf[i],
                   static_cast<uint8_t>(frequencyScore(table.counts[slotOf[i]])));
}

__global__ void __launch_bounds__(kCacheThreads)
    findSlots(CacheTable table, const int64_t *ids, int64_t count, int64_t *slotOf) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const int64_t slot = findEntry(table, i < count ? ids[i] : 0, i < count).slot;
    if (i < count)
      slotOf[i] = slot;
  }
}

/// After all slots are found. Of several of an id the first that comes drops the slot.
__global__ void __launch_bounds__(kCacheThreads)
    dropSlots(CacheTable table, const int64_t *slotOf, int64_t count, uint32_t *rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    if (slotOf[i] == kNoSlot)
      continue;
    unsigned *word = reinterpret_cast<unsigned *>(table.digests + (slotOf[i] & ~int64_t(3)));
    const uint32_t own = 0xFFu << (slotOf[i] & 3) * 8;
    if ((atomicAnd(word, ~own) & own) && rows)
      atomicSub(rows, 1u);
  }
}

__global__ void __launch_bounds__(kCacheThreads) renumberMarks(CacheTable table) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t bucket = warp; bucket < table.shape.buckets(); bucket += warps)
    numberMarksAnew(table, bucket);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_CACHE_KERNELS_H
