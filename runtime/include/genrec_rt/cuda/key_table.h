//===- key_table.h - Ids to row numbers on a device --------------*- C++ -*-===//
//
// Open addressing over buckets of 128 slots. A bucket's 128 digests are one
// cache line, which eight lanes, a tile, compare at once; keys and row numbers
// are read only where a digest agrees. A key whose bucket is full goes on to
// another by an odd, key-dependent step over a power of two of buckets, so every
// bucket is visited.
//
// A digest byte is kEmpty, kErased, kBusy (being written) or 2 to 254. A search
// ends at the first bucket with an empty slot. Erasing leaves an empty slot where
// the bucket has another one, since then no search has ever gone past it.
//
// Tiles may insert at the same time: the slot of a new key is claimed by turning
// the lowest empty digest to kBusy, and nobody claims a slot of a bucket in which
// one is busy. So equal keys always contend for one slot.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_KEY_TABLE_H
#define GENREC_RT_CUDA_KEY_TABLE_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/identity.h"

namespace genrec::rt::cuda {

constexpr int kBucketSlots = 128;
constexpr int kTileLanes = 8;
constexpr int kSlotsPerLane = kBucketSlots / kTileLanes;

constexpr uint32_t kEmpty = 0, kErased = 1, kBusy = 0xFF;
constexpr int64_t kNoSlot = -1;
/// The table may not take another key: it has to grow first.
constexpr int64_t kNoRoom = -2;
/// Row numbers from here on are positions in a batch, of keys that have no row yet.
constexpr uint32_t kPending = 0x80000000u;

/// A bijection of 64-bit words, as the store of the host has it: where an id goes depends on a seed
/// that no two processes share, so that nobody can make ids that all go to one bucket.
__host__ __device__ inline uint64_t hashOf(int64_t id, uint64_t seed) {
  return splitMix64(static_cast<uint64_t>(id) ^ seed);
}
/// Digest, bucket and step come from different bits of the hash. Of two hashes the greater never
/// has the lesser digest.
__host__ __device__ inline uint32_t digestOf(uint64_t hash) {
  return 2 + (static_cast<uint32_t>(hash >> 56) * 253 >> 8);
}
__host__ __device__ inline int64_t stepOf(uint64_t hash) {
  return static_cast<int64_t>(hash >> 28 & 0xFFFFFFF) | 1;
}

/// The arrays of a table; copied into kernels.
struct KeyTable {
  uint8_t *digests = nullptr; ///< [buckets][128], aligned to 128 bytes
  int64_t *keys = nullptr;
  uint32_t *rows = nullptr;
  int64_t bucketMask = 0;
  uint64_t seed = 0;

  __host__ __device__ int64_t slots() const { return (bucketMask + 1) * kBucketSlots; }
};

/// Eight lanes of a warp that look for one key.
struct Tile {
  uint32_t mask;
  int rank;
};
__device__ inline Tile tileOf() {
  const int lane = laneOf();
  return {0xFFu << (lane & ~(kTileLanes - 1)), lane & (kTileLanes - 1)};
}
/// This thread's tile's number in the grid and the number of tiles.
__device__ inline int64_t tileInGrid() { return threadInGrid() / kTileLanes; }
__device__ inline int64_t tilesInGrid() { return threadsInGrid() / kTileLanes; }

/// Bit s is set where byte s of 16 equals `value`.
__device__ inline uint32_t matchBytes(const uint4 &bytes, uint32_t value) {
  const uint32_t wanted = value * 0x01010101u;
  auto four = [&](uint32_t word) {
    return (__vcmpeq4(word, wanted) & 0x01010101u) * 0x01020408u >> 24 & 0xFu;
  };
  return four(bytes.x) | four(bytes.y) << 4 | four(bytes.z) << 8 | four(bytes.w) << 12;
}

namespace detail {

__device__ inline const uint4 *laneDigests(const KeyTable &table, int64_t bucket,
                                           const Tile &tile) {
  return reinterpret_cast<const uint4 *>(table.digests + bucket * kBucketSlots) + tile.rank;
}

/// The slot of `key` in the bucket whose digests the tile holds, or kNoSlot.
template <bool Concurrent>
__device__ inline int64_t slotInBucket(const KeyTable &table, int64_t bucket, int64_t key,
                                       uint32_t digest, const uint4 &digests, const Tile &tile) {
  int at = -1;
  for (uint32_t rest = matchBytes(digests, digest); rest; rest &= rest - 1) {
    const int slot = tile.rank * kSlotsPerLane + __ffs(static_cast<int>(rest)) - 1;
    const int64_t *address = table.keys + bucket * kBucketSlots + slot;
    if (Concurrent)
      __threadfence(); // the key was written before the digest
    if ((Concurrent ? loadRelaxed(address) : *address) == key) {
      at = slot;
      break;
    }
  }
  const uint32_t hits = __ballot_sync(tile.mask, at >= 0);
  if (!hits)
    return kNoSlot;
  return bucket * kBucketSlots + __shfl_sync(tile.mask, at, __ffs(static_cast<int>(hits)) - 1);
}

} // namespace detail

/// The slot of `key`, or kNoSlot; called by all lanes of a tile. Not beside inserts.
__device__ inline int64_t findSlot(const KeyTable &table, int64_t key, const Tile &tile) {
  const uint64_t hash = hashOf(key, table.seed);
  const uint32_t digest = digestOf(hash);
  int64_t bucket = static_cast<int64_t>(hash) & table.bucketMask;
  for (int64_t tried = 0; tried <= table.bucketMask; ++tried) {
    const uint4 digests = *detail::laneDigests(table, bucket, tile);
    const int64_t slot = detail::slotInBucket<false>(table, bucket, key, digest, digests, tile);
    if (slot != kNoSlot)
      return slot;
    if (__any_sync(tile.mask, matchBytes(digests, kEmpty) != 0))
      return kNoSlot;
    bucket = (bucket + stepOf(hash)) & table.bucketMask;
  }
  return kNoSlot;
}

namespace detail {

/// One lane tries to make its lowest empty slot that of `key`, whose row becomes `row`.
/// kNoSlot where another tile was faster, kNoRoom where `used` had reached `limit`.
__device__ inline int64_t claimSlot(const KeyTable &table, int64_t bucket, int64_t key,
                                    uint32_t digest, const uint4 &digests, int rank, uint32_t row,
                                    uint32_t *used, uint32_t limit) {
  const int at = __ffs(static_cast<int>(matchBytes(digests, kEmpty))) - 1;
  const int part = at / 4, shift = at % 4 * 8;
  const uint32_t before = part == 0   ? digests.x
                          : part == 1 ? digests.y
                          : part == 2 ? digests.z
                                      : digests.w;
  const int64_t slot = bucket * kBucketSlots + rank * kSlotsPerLane + at;
  unsigned *word = reinterpret_cast<unsigned *>(table.digests + (slot & ~int64_t(3)));
  if (atomicCAS(word, before, before | kBusy << shift) != before)
    return kNoSlot;
  if (atomicAdd(used, 1u) >= limit) {
    atomicSub(used, 1u);
    atomicAnd(word, ~(kBusy << shift));
    return kNoRoom;
  }
  storeRelaxed(table.keys + slot, key);
  storeRelaxed(table.rows + slot, row);
  __threadfence(); // the digest shows the key only when it is there
  atomicAnd(word, ~(kBusy << shift) | digest << shift);
  return slot;
}

} // namespace detail

/// The slot of `key`, made with row number `row` where there is none; kNoRoom where the
/// table holds `limit` keys, erased ones counted, already (`used` counts them). Called by
/// all lanes of a tile; any tiles at once.
__device__ inline int64_t findOrClaimSlot(const KeyTable &table, int64_t key, const Tile &tile,
                                          uint32_t row, uint32_t *used, uint32_t limit) {
  const uint64_t hash = hashOf(key, table.seed);
  const uint32_t digest = digestOf(hash);
  int64_t bucket = static_cast<int64_t>(hash) & table.bucketMask;
  for (int64_t tried = 0; tried <= table.bucketMask;) {
    const uint4 digests = loadRelaxed4(detail::laneDigests(table, bucket, tile));
    const int64_t found = detail::slotInBucket<true>(table, bucket, key, digest, digests, tile);
    if (found != kNoSlot)
      return found;
    if (__any_sync(tile.mask, matchBytes(digests, kBusy) != 0))
      continue; // it may be this key that is being written
    const uint32_t lanes = __ballot_sync(tile.mask, matchBytes(digests, kEmpty) != 0);
    if (!lanes) {
      bucket = (bucket + stepOf(hash)) & table.bucketMask;
      ++tried;
      continue;
    }
    const int chosen = __ffs(static_cast<int>(lanes)) - 1;
    int64_t slot = kNoSlot;
    if (laneOf() == chosen)
      slot = detail::claimSlot(table, bucket, key, digest, digests, tile.rank, row, used, limit);
    slot = __shfl_sync(tile.mask, slot, chosen);
    if (slot != kNoSlot)
      return slot;
  }
  return kNoRoom;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_KEY_TABLE_H
