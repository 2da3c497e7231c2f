//===- cache_table.h - The key table of a cache on a device ------*- C++ -*-===//
//
// cache_shape.h has the rule. Buckets are those of bucket_search.h; of its 128 slots a
// bucket uses as many as it may have rows. An id is in its bucket or nowhere.
//
// The row of a slot is the slot: memory for all rows is there from the start, so no row
// number is kept or read.
//
// What leaves is found in bytes. A slot has a mark, the number of the call that
// touched it last, and a score; both are bytes:
//
//   - recency: mark and score are one byte. Calls count up to 255; then every bucket's
//     marks are numbered anew from 1 in their order, of which there are at most 128,
//     and calls count on from 129. So the order is exact for ever.
//   - frequency: the score is a float of five bits of exponent and three of mantissa, exact
//     up to 15. Occurrences are counted in 64 bits beside it, which are read only
//     where the least score is above that and several slots have it.
//
// Of equal scores the least digest leaves, which is a hash's upper byte, and hashes
// are compared only among equal digests.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_CACHE_TABLE_H
#define GENREC_RT_CUDA_CACHE_TABLE_H

#include "genrec_rt/cuda/bucket_search.h"
#include "genrec_rt/cuda/cache_shape.h"

namespace genrec::rt::cuda {

constexpr uint32_t kLastCall = 255;
/// Calls count on from here after marks were numbered anew.
constexpr uint32_t kFirstCallAnew = kBucketSlots + 1;

/// A cache has no seed: which rows it has follows from the calls alone. Ids made to meet in one
/// bucket cost it no time, since a search reads one bucket.
constexpr uint64_t kCacheSeed = 0;

/// Copied into kernels.
struct CacheTable {
  static constexpr bool kGoesOn = false, kRowIsSlot = true;

  uint8_t *digests = nullptr; ///< [buckets][128], aligned to 128 bytes
  int64_t *keys = nullptr;    ///< by slot
  uint8_t *marks = nullptr;   ///< by slot; 0 where no call has touched it
  uint8_t *scores = nullptr;  ///< by slot; recency: the marks
  Word *counts = nullptr;     ///< by slot; frequency only
  CacheShape shape;
  uint32_t call = 0; ///< the mark of the current call

  __host__ __device__ int64_t slots() const { return shape.buckets() * kBucketSlots; }
  __host__ __device__ static uint64_t hashOf(int64_t key) { return cuda::hashOf(key, kCacheSeed); }
  __host__ __device__ uint32_t firstBucket(uint64_t hash) const {
    return static_cast<uint32_t>(shape.bucketOf(hash));
  }
  /// From bits that buckets and digests have not.
  __host__ __device__ static uint32_t home(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 22) % kHomes;
  }
  template <bool Concurrent> __device__ Slot slot(int64_t at) const {
    static_assert(!Concurrent, "a warp places keys in a bucket that it has to itself");
    return {keys[at], static_cast<uint32_t>(at)};
  }
};

/// Several counts have a score from here on.
constexpr uint32_t kFirstSharedScore = 16;

/// The score of a count: eight steps between powers of two.
__host__ __device__ inline uint32_t frequencyScore(Word count) {
  if (count < 16)
    return static_cast<uint32_t>(count);
  uint32_t exponent = 0;
  for (Word rest = count; rest >= 16; rest >>= 1)
    ++exponent;
  const uint32_t score = exponent * 8 + static_cast<uint32_t>(count >> exponent);
  return score < 255 ? score : 255;
}

//===----------------------------------------------------------------------===//
// A warp that has a bucket to itself: a lane has four slots
//===----------------------------------------------------------------------===//

constexpr int kSlotsPerWarpLane = kBucketSlots / kWarp;

/// The slot of `key` in a bucket, or kNoSlot; every lane looks for a key of its own.
__device__ inline int64_t findSlotAlone(const CacheTable &table, int64_t bucket, int64_t key) {
  const uint32_t digest = digestOf(CacheTable::hashOf(key));
  const uint4 *digests = reinterpret_cast<const uint4 *>(table.digests + bucket * kBucketSlots);
  for (int part = 0; part < kBucketSlots / 16; ++part)
    for (uint32_t rest = matchBytes(digests[part], digest); rest; rest &= rest - 1) {
      const int64_t slot = bucket * kBucketSlots + part * 16 + placeOfMatch(rest);
      if (table.keys[slot] == key)
        return slot;
    }
  return kNoSlot;
}

namespace detail {

/// What decides between slots whose bytes agree.
struct WideScore {
  Word count, hash;
  int64_t slot;

  __device__ bool isBelow(const WideScore &other) const {
    return count != other.count ? count < other.count : hash < other.hash;
  }
};

/// The slot with the least wide score of those a warp's lanes have marked, a bit for each of a
/// lane's four.
__device__ inline int64_t leastWide(const CacheTable &table, int64_t first, uint32_t marked) {
  WideScore least = {~Word(0), ~Word(0), kNoSlot};
  for (int i = 0; i < kSlotsPerWarpLane; ++i) {
    if (!(marked >> i & 1))
      continue;
    const int64_t slot = first + i;
    const WideScore own = {table.counts ? table.counts[slot] : 0,
                           CacheTable::hashOf(table.keys[slot]), slot};
    if (least.slot == kNoSlot || own.isBelow(least))
      least = own;
  }
  for (int with = kWarp / 2; with > 0; with /= 2) {
    const WideScore other = {__shfl_xor_sync(kAllLanes, least.count, with),
                             __shfl_xor_sync(kAllLanes, least.hash, with),
                             __shfl_xor_sync(kAllLanes, least.slot, with)};
    if (other.slot != kNoSlot && (least.slot == kNoSlot || other.isBelow(least)))
      least = other;
  }
  return least.slot;
}

/// The slot of the row that leaves a full bucket next; kNoSlot where this call has touched all.
__device__ inline int64_t leavingSlot(const CacheTable &table, int64_t bucket) {
  const int64_t first = bucket * kBucketSlots + laneOf() * kSlotsPerWarpLane;
  const uint32_t digests = *reinterpret_cast<const uint32_t *>(table.digests + first);
  const uint32_t scores = *reinterpret_cast<const uint32_t *>(table.scores + first);
  const uint32_t marks = *reinterpret_cast<const uint32_t *>(table.marks + first);
  constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t own[kSlotsPerWarpLane], least = kNone;
#pragma unroll
  for (int i = 0; i < kSlotsPerWarpLane; ++i) {
    const uint32_t digest = digests >> 8 * i & 0xFF, score = scores >> 8 * i & 0xFF;
    // Counts that share a score are compared before hashes.
    const bool isExact = !table.counts || score < kFirstSharedScore;
    own[i] = digest == kEmpty || (marks >> 8 * i & 0xFF) == table.call
                 ? kNone
                 : score << 8 | (isExact ? digest : 0);
    least = min(least, own[i]);
  }
  least = __reduce_min_sync(kAllLanes, least);
  if (least == kNone)
    return kNoSlot;
  uint32_t marked = 0;
#pragma unroll
  for (int i = 0; i < kSlotsPerWarpLane; ++i)
    marked |= own[i] == least ? 1u << i : 0;
  const uint32_t lanes = __ballot_sync(kAllLanes, marked != 0);
  const uint32_t several = __ballot_sync(kAllLanes, (marked & (marked - 1)) != 0);
  if (several || (lanes & (lanes - 1)))
    return leastWide(table, first, marked);
  const int source = __ffs(static_cast<int>(lanes)) - 1;
  return __shfl_sync(kAllLanes, first + __ffs(static_cast<int>(marked)) - 1, source);
}

/// The lowest slot that is free at `home`, else in the bucket; or kNoSlot.
__device__ inline int64_t freeSlot(const CacheTable &table, int64_t bucket, uint32_t home) {
  const int64_t base = bucket * kBucketSlots, rows = table.shape.bucketRows(bucket);
  const uint32_t own = static_cast<uint32_t>(laneOf() * kSlotsPerWarpLane);
  const uint32_t away = own / kHomeSlots == home ? 0 : kBucketSlots;
  const uint32_t digests = *reinterpret_cast<const uint32_t *>(table.digests + base + own);
  constexpr uint32_t kNone = 2 * kBucketSlots;
  uint32_t least = kNone;
#pragma unroll
  for (int i = kSlotsPerWarpLane - 1; i >= 0; --i)
    if ((digests >> 8 * i & 0xFF) == kEmpty && own + i < rows)
      least = away + own + static_cast<uint32_t>(i);
  least = __reduce_min_sync(kAllLanes, least);
  return least < kNone ? base + least % kBucketSlots : kNoSlot;
}

} // namespace detail

/// A slot made that of a new key.
struct Placed {
  int64_t slot; ///< kNoRoom: this call has touched every row of the bucket
  bool isEvicting;
};

/// Places a key that its bucket does not have; called by a warp that has the bucket to itself.
__device__ inline Placed placeKey(const CacheTable &table, int64_t bucket, int64_t key) {
  const uint64_t hash = CacheTable::hashOf(key);
  int64_t slot = detail::freeSlot(table, bucket, CacheTable::home(hash));
  const bool isEvicting = slot == kNoSlot;
  if (isEvicting)
    slot = detail::leavingSlot(table, bucket);
  if (slot == kNoSlot)
    return {kNoRoom, false};
  __syncwarp(); // all lanes have read the bytes
  if (laneOf() == 0) {
    table.digests[slot] = static_cast<uint8_t>(digestOf(hash));
    table.keys[slot] = key;
    table.marks[slot] = static_cast<uint8_t>(table.call);
    if (table.counts) {
      table.counts[slot] = 0;
      table.scores[slot] = 0;
    }
  }
  __syncwarp();
  return {slot, isEvicting};
}

/// Numbers the marks of a bucket anew from 1, in their order; called by a warp.
__device__ inline void numberMarksAnew(const CacheTable &table, int64_t bucket) {
  const int64_t first = bucket * kBucketSlots + laneOf() * kSlotsPerWarpLane;
  const uint32_t digests = *reinterpret_cast<const uint32_t *>(table.digests + first);
  const uint32_t marks = *reinterpret_cast<const uint32_t *>(table.marks + first);
  uint32_t present[8] = {}; // a bit per mark
#pragma unroll
  for (int i = 0; i < kSlotsPerWarpLane; ++i) {
    const uint32_t mark = marks >> 8 * i & 0xFF;
    if ((digests >> 8 * i & 0xFF) != kEmpty)
#pragma unroll
      for (uint32_t word = 0; word < 8; ++word)
        present[word] |= mark / 32 == word ? 1u << mark % 32 : 0;
  }
#pragma unroll
  for (uint32_t &word : present)
    word = __reduce_or_sync(kAllLanes, word);
  uint32_t anew = 0;
#pragma unroll
  for (int i = 0; i < kSlotsPerWarpLane; ++i) {
    const uint32_t mark = marks >> 8 * i & 0xFF;
    int below = 0;
#pragma unroll
    for (uint32_t word = 0; word < 8; ++word)
      below += word < mark / 32    ? __popc(present[word])
               : word == mark / 32 ? __popc(present[word] & ((1u << mark % 32) - 1))
                                   : 0;
    anew |= static_cast<uint32_t>(below + 1) << 8 * i;
  }
  *reinterpret_cast<uint32_t *>(table.marks + first) = anew;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_CACHE_TABLE_H
