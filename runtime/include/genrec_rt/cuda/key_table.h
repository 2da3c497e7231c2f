//===- key_table.h - Ids to row numbers on a device --------------*- C++ -*-===//
//
// The table of a store that grows: open addressing over the buckets of bucket_search.h.
// A key and its row number lie side by side, so that one load gets both. A key whose
// bucket is full goes on to another by an odd, key-dependent step over a power of two of
// buckets, so every bucket is visited.
//
// A digest byte is kEmpty, kErased, kBusy (being written) or 2 to 254. A search ends
// where a key's home, or else its bucket, has an empty slot. Erasing leaves an empty
// slot where that sector has another one, since then no search has ever gone past it.
//
// Tiles may insert at the same time: the slot of a new key is claimed by turning the
// first empty digest to kBusy, in an order of the bucket's sectors that begins with the
// key's home, and nobody claims a slot of a bucket in which one is busy. So equal keys
// always contend for one slot.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_KEY_TABLE_H
#define GENREC_RT_CUDA_KEY_TABLE_H

#include "genrec_rt/cuda/bucket_search.h"

namespace genrec::rt::cuda {

constexpr uint32_t kErased = 1, kBusy = 0xFF;
/// Row numbers from here on are positions in a batch, of keys that have no row yet.
constexpr uint32_t kPending = 0x80000000u;

/// A key and its row number, which is a word so that all of it is read and written in words.
struct alignas(16) KeySlot {
  int64_t key;
  Word row;
};

/// The arrays of a table; copied into kernels.
struct KeyTable {
  static constexpr bool kGoesOn = true, kRowIsSlot = false;

  uint8_t *digests = nullptr; ///< [buckets][128], aligned to 128 bytes
  KeySlot *keys = nullptr;
  uint32_t bucketMask = 0;
  uint64_t seed = 0;

  __host__ __device__ int64_t slots() const { return (int64_t(bucketMask) + 1) * kBucketSlots; }
  __host__ __device__ uint64_t hashOf(int64_t key) const { return cuda::hashOf(key, seed); }
  __host__ __device__ uint32_t firstBucket(uint64_t hash) const {
    return static_cast<uint32_t>(hash) & bucketMask;
  }
  __host__ __device__ uint32_t nextBucket(uint32_t bucket, uint64_t hash) const {
    return (bucket + (static_cast<uint32_t>(hash >> 28 & 0xFFFFFFF) | 1)) & bucketMask;
  }
  /// From bits that buckets and digests have not; of the step, the highest.
  __host__ __device__ static uint32_t home(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 54) % kHomes;
  }
  template <bool Concurrent> __device__ Slot slot(int64_t at) const {
    if constexpr (Concurrent)
      return {loadRelaxed(&keys[at].key), static_cast<uint32_t>(loadRelaxed(&keys[at].row))};
    const auto words = loadWhole<ulonglong2>(keys + at);
    return {static_cast<int64_t>(words.x), static_cast<uint32_t>(words.y)};
  }
  __device__ uint32_t row(int64_t at) const { return static_cast<uint32_t>(keys[at].row); }
};

namespace detail {

/// The entry of `key` in the bucket whose digests the tile holds, if it has one; beside inserts.
__device__ inline Entry entryInBucket(const KeyTable &table, uint32_t bucket, int64_t key,
                                      uint32_t digest, const uint4 &digests, const Tile &tile) {
  __threadfence(); // keys were written before digests
  int at = -1;
  uint32_t row = 0;
  for (uint32_t rest = matchBytes(digests, digest); rest; rest &= rest - 1) {
    const int place = tile.rank * kSlotsPerLane + placeOfMatch(rest);
    const Slot slot = table.slot<true>(int64_t(bucket) * kBucketSlots + place);
    if (slot.key == key) {
      at = place;
      row = slot.row;
      break;
    }
  }
  const uint32_t hits = __ballot_sync(tile.mask, at >= 0);
  if (!hits)
    return {};
  const int source = __ffs(static_cast<int>(hits)) - 1;
  return {int64_t(bucket) * kBucketSlots + __shfl_sync(tile.mask, at, source),
          __shfl_sync(tile.mask, row, source)};
}

/// The first of a tile's `lanes`, given as lanes of the warp, from those of a home on.
__device__ inline int firstFromHome(uint32_t lanes, uint32_t home) {
  const int begin = laneOf() & ~(kTileLanes - 1), from = static_cast<int>(home) * kHomeLanes;
  const uint32_t own = lanes >> begin;
  const uint32_t turned = own >> from | own << (kTileLanes - from);
  return begin + (__ffs(static_cast<int>(turned)) - 1 + from) % kTileLanes;
}

/// One lane tries to make its first empty slot that of `key`, whose row becomes `row`.
/// kNoSlot where another tile was faster, kNoRoom where `used` had reached `limit`.
__device__ inline int64_t claimSlot(const KeyTable &table, uint32_t bucket, int64_t key,
                                    uint32_t digest, const uint4 &digests, int rank, uint32_t row,
                                    uint32_t *used, uint32_t limit) {
  const int at = placeOfMatch(matchBytes(digests, kEmpty));
  const int part = at / 4, shift = at % 4 * 8;
  const uint32_t before = part == 0   ? digests.x
                          : part == 1 ? digests.y
                          : part == 2 ? digests.z
                                      : digests.w;
  const int64_t slot = int64_t(bucket) * kBucketSlots + rank * kSlotsPerLane + at;
  unsigned *word = reinterpret_cast<unsigned *>(table.digests + (slot & ~int64_t(3)));
  if (atomicCAS(word, before, before | kBusy << shift) != before)
    return kNoSlot;
  if (atomicAdd(used, 1u) >= limit) {
    atomicSub(used, 1u);
    atomicAnd(word, ~(kBusy << shift));
    return kNoRoom;
  }
  storeRelaxed(&table.keys[slot].key, key);
  storeRelaxed(&table.keys[slot].row, Word(row));
  __threadfence(); // the digest shows the key only when it is there
  atomicAnd(word, ~(kBusy << shift) | digest << shift);
  return slot;
}

} // namespace detail

/// The entry of `key`, made with row number `row` where there is none; its slot is kNoRoom where
/// the table holds `limit` keys, erased ones counted, already (`used` counts them). Called by all
/// lanes of a tile; any tiles at once.
__device__ inline Entry findOrClaim(const KeyTable &table, int64_t key, const Tile &tile,
                                    uint32_t row, uint32_t *used, uint32_t limit) {
  const uint64_t hash = table.hashOf(key);
  const uint32_t digest = digestOf(hash);
  uint32_t bucket = table.firstBucket(hash);
  for (int64_t tried = 0; tried <= table.bucketMask;) {
    const uint4 digests = loadRelaxed4(detail::laneDigests(table.digests, bucket, tile));
    const Entry found = detail::entryInBucket(table, bucket, key, digest, digests, tile);
    if (found.slot != kNoSlot)
      return found;
    if (__any_sync(tile.mask, matchBytes(digests, kBusy) != 0))
      continue; // it may be this key that is being written
    const uint32_t lanes = __ballot_sync(tile.mask, hasZero(digests));
    if (!lanes) {
      bucket = table.nextBucket(bucket, hash);
      ++tried;
      continue;
    }
    const int chosen = detail::firstFromHome(lanes, table.home(hash));
    int64_t slot = kNoSlot;
    // Nobody claims a slot of a full table, only to give it back: keys would wait for each other.
    if (laneOf() == chosen)
      slot = loadRelaxed(used) >= limit ? kNoRoom
                                        : detail::claimSlot(table, bucket, key, digest, digests,
                                                            tile.rank, row, used, limit);
    slot = __shfl_sync(tile.mask, slot, chosen);
    if (slot != kNoSlot)
      return {slot, row};
  }
  return {kNoRoom, 0};
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_KEY_TABLE_H
