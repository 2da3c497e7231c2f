//===- bucket_search.h - Buckets of slots that lanes search ------*- C++ -*-===//
//
// What the key tables of a device have in common: buckets of 128 slots, each with a
// digest byte of its key. A slot is read only where its digest agrees.
//
// The 128 digests of a bucket are a line of memory, those of 32 slots a sector, the
// least that memory gives. A key has a home among the four sectors, by its hash, and
// is put there while the home has an empty slot. So two lanes that read 32 bytes find
// most keys; only what is not at home is looked for in the whole line, by eight lanes,
// a tile.
//
// A search waits for memory twice, for digests and for the slot, whatever the table
// holds. So that waiting is not what a kernel does, a warp has 32 keys, one a lane: the
// homes of all are asked for before one is compared, then the slots of all. What is
// computed of a key alone, its hash, its own lane computes.
//
// A table that is searched has
//
//   uint8_t *digests;                      // [buckets][128], aligned to 128 bytes
//   hashOf(key), firstBucket(hash), home(hash)
//   slot<Concurrent>(index)                // a Slot
//   kRowIsSlot                             // whether that has no row of its own
//   kGoesOn, nextBucket(bucket, hash)      // whether a key that finds no empty slot in its
//                                          // bucket is in another. Then an empty slot, at home
//                                          // or in the bucket, ends a search.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_BUCKET_SEARCH_H
#define GENREC_RT_CUDA_BUCKET_SEARCH_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/identity.h"

namespace genrec::rt::cuda {

constexpr int kBucketSlots = 128;
constexpr int kTileLanes = 8;
constexpr int kSlotsPerLane = kBucketSlots / kTileLanes;
constexpr int kHomeSlots = 32, kHomes = kBucketSlots / kHomeSlots;
constexpr int kHomeLanes = kHomeSlots / kSlotsPerLane;
/// Keys that are not at home for whose lines, and then slots, a tile asks at once.
constexpr int kKeysAtOnce = 2;

constexpr uint32_t kEmpty = 0;
constexpr int64_t kNoSlot = -1;
/// The table may not take another key.
constexpr int64_t kNoRoom = -2;

/// A bijection of 64-bit words, as the store of the host has it: where an id goes depends on a seed
/// that no two processes share, so that nobody can make ids that all go to one bucket.
__host__ __device__ inline uint64_t hashOf(int64_t id, uint64_t seed) {
  return splitMix64(static_cast<uint64_t>(id) ^ seed);
}
/// Digest, bucket and step come from different bits of the hash. Of two hashes the greater never
/// has the lesser digest. Neither kEmpty nor one of what key_table.h has beside it.
__host__ __device__ inline uint32_t digestOf(uint64_t hash) {
  return 2 + (static_cast<uint32_t>(hash >> 56) * 253 >> 8);
}

/// What a slot holds.
struct Slot {
  int64_t key;
  uint32_t row;
};
/// Where a key is and the number of its row.
struct Entry {
  int64_t slot = kNoSlot;
  uint32_t row = 0;
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

/// A bit for each of 16 bytes that equals `value`; placeOfMatch says of which a bit is. The bits of
/// four bytes of a word lie where the comparison leaves them, 8 apart.
__device__ inline uint32_t matchBytes(const uint4 &bytes, uint32_t value) {
  const uint32_t wanted = value * 0x01010101u;
  auto four = [&](uint32_t word) {
    const uint32_t differs = word ^ wanted;
    return ~(((differs & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | differs) & 0x80808080u;
  };
  return four(bytes.x) | four(bytes.y) >> 1 | four(bytes.z) >> 2 | four(bytes.w) >> 3;
}
/// The number of the byte that the lowest bit of matchBytes is of.
__device__ inline int placeOfMatch(uint32_t matches) {
  const int bit = __ffs(static_cast<int>(matches)) - 1;
  return (7 - bit % 8) * 4 + bit / 8;
}
/// Whether one of 16 bytes is 0.
__device__ inline bool hasZero(const uint4 &bytes) {
  auto borrows = [](uint32_t word) { return (word - 0x01010101u) & ~word; };
  return ((borrows(bytes.x) | borrows(bytes.y) | borrows(bytes.z) | borrows(bytes.w)) &
          0x80808080u) != 0;
}

namespace detail {

__device__ inline const uint4 *laneDigests(const uint8_t *digests, uint32_t bucket,
                                           const Tile &tile) {
  return reinterpret_cast<const uint4 *>(digests + int64_t(bucket) * kBucketSlots) + tile.rank;
}

/// A lane's search for its own key.
struct Search {
  int64_t key;
  uint32_t digest, bucket;
  Entry found;
  bool isOpen; ///< more is to be read before it is known whether the table has the key
};

/// What a lane does in the search for a key of some lane: it compares 16 digests and reads the
/// slots of those that agree.
struct Probe {
  int64_t key;
  int64_t begin; ///< the slot of the first of the digests
  uint4 digests;
  uint32_t matches; ///< digests that agree and whose slots are not known to have another key
  int at;           ///< the slot of one of these in its bucket, and what it holds
  Slot slot;

  /// Asks for digests: none where that key is not looked for.
  template <bool Concurrent>
  __device__ void ask(const uint8_t *digestsOfAll, int64_t first, bool isWanted) {
    begin = first;
    digests = {};
    const auto *address = reinterpret_cast<const uint4 *>(digestsOfAll + first);
    if (isWanted)
      digests = Concurrent ? loadRelaxed4(address) : loadWhole<uint4>(address);
  }
  /// Asks for the first slot of those whose digest agrees.
  template <bool Concurrent, class Table> __device__ void askSlot(const Table &table) {
    at = placeOfMatch(matches);
    slot = table.template slot<Concurrent>(begin + at);
  }
  template <bool Concurrent, class Table>
  __device__ void compare(const Table &table, uint32_t digest) {
    matches = matchBytes(digests, digest);
    if (Concurrent)
      __threadfence(); // keys were written before digests
    at = 0;
    slot = {};
    if (matches)
      askSlot<Concurrent>(table);
  }
  /// Leaves no match but that of the key. Mostly one digest of a lane agrees at most.
  template <bool Concurrent, class Table> __device__ void settle(const Table &table) {
    while (matches && slot.key != key)
      if (matches &= matches - 1)
        askSlot<Concurrent>(table);
  }
};

/// The entry that lane `source` has found.
template <class Table> __device__ inline Entry entryOf(const Probe &probe, int source) {
  const int64_t slot =
      __shfl_sync(kAllLanes, probe.begin, source) + __shfl_sync(kAllLanes, probe.at, source);
  if constexpr (Table::kRowIsSlot)
    return {slot, static_cast<uint32_t>(slot)};
  else
    return {slot, __shfl_sync(kAllLanes, probe.slot.row, source)};
}

/// Looks for the keys of all lanes at home: those of 16 lanes by two lanes each, and the others.
template <bool Concurrent, class Table>
__device__ inline void searchHomes(const Table &table, uint32_t home, Search &own) {
  constexpr int kRounds = kHomeLanes, kKeys = kWarp / kRounds;
  const uint32_t wanted = __ballot_sync(kAllLanes, own.isOpen);
  const uint32_t sector = own.bucket * kHomes + home;
  Probe probes[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int of = round * kKeys + laneOf() / kHomeLanes;
    const int64_t first = int64_t(__shfl_sync(kAllLanes, sector, of)) * kHomeSlots +
                          laneOf() % kHomeLanes * kSlotsPerLane;
    probes[round].template ask<Concurrent>(table.digests, first, wanted >> of & 1);
  }
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int of = round * kKeys + laneOf() / kHomeLanes;
    probes[round].template compare<Concurrent>(table, __shfl_sync(kAllLanes, own.digest, of));
    probes[round].key = __shfl_sync(kAllLanes, own.key, of);
  }
  const int first = laneOf() % kKeys * kHomeLanes; // of the lanes that look for this lane's key
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    probes[round].template settle<Concurrent>(table);
    const uint32_t hits = __ballot_sync(kAllLanes, probes[round].matches != 0);
    const uint32_t ends =
        Table::kGoesOn ? __ballot_sync(kAllLanes, hasZero(probes[round].digests)) : 0;
    const uint32_t hit = hits >> first & ((1u << kHomeLanes) - 1);
    const Entry found = entryOf<Table>(probes[round], first + (hit ? __ffs(hit) - 1 : 0));
    if (laneOf() / kKeys != round)
      continue;
    if (hit && own.isOpen)
      own.found = found;
    own.isOpen = own.isOpen && !hit && !(ends >> first & ((1u << kHomeLanes) - 1));
  }
}

/// Looks for the next kKeysAtOnce open keys of every tile in the whole of their buckets.
template <bool Concurrent, class Table>
__device__ inline void searchBuckets(const Table &table, const Tile &tile, uint64_t hash,
                                     Search &own) {
  constexpr uint32_t kAll = (1u << kTileLanes) - 1;
  const int firstLane = laneOf() - tile.rank;
  uint32_t open = __ballot_sync(kAllLanes, own.isOpen) >> firstLane & kAll;
  int of[kKeysAtOnce]; // a lane of the tile; none: kTileLanes
  Probe probes[kKeysAtOnce];
#pragma unroll
  for (int j = 0; j < kKeysAtOnce; ++j) {
    of[j] = __ffs(static_cast<int>(open | 1u << kTileLanes)) - 1;
    open &= open - 1;
    const uint32_t bucket = __shfl_sync(kAllLanes, own.bucket, of[j], kTileLanes);
    probes[j].template ask<Concurrent>(table.digests,
                                       int64_t(bucket) * kBucketSlots + tile.rank * kSlotsPerLane,
                                       of[j] < kTileLanes);
  }
#pragma unroll
  for (int j = 0; j < kKeysAtOnce; ++j) {
    probes[j].template compare<Concurrent>(table,
                                           __shfl_sync(kAllLanes, own.digest, of[j], kTileLanes));
    probes[j].key = __shfl_sync(kAllLanes, own.key, of[j], kTileLanes);
  }
#pragma unroll
  for (int j = 0; j < kKeysAtOnce; ++j) {
    probes[j].template settle<Concurrent>(table);
    const uint32_t hit = __ballot_sync(kAllLanes, probes[j].matches != 0) >> firstLane & kAll;
    const Entry found = entryOf<Table>(probes[j], firstLane + (hit ? __ffs(hit) - 1 : 0));
    const uint32_t ends =
        Table::kGoesOn ? __ballot_sync(kAllLanes, hasZero(probes[j].digests)) >> firstLane & kAll
                       : kAll;
    if (tile.rank != of[j])
      continue;
    if (hit)
      own.found = found;
    own.isOpen = !hit && !ends;
    if constexpr (Table::kGoesOn)
      own.bucket = table.nextBucket(own.bucket, hash);
  }
}

} // namespace detail

/// The entry of a lane's own `key`, where it `isWanted`; called by all lanes of a warp. Beside
/// inserts (`Concurrent`) an entry that is found is one, and others may be missed.
template <bool Concurrent = false, class Table>
__device__ inline Entry findEntry(const Table &table, int64_t key, bool isWanted) {
  const uint64_t hash = table.hashOf(key);
  detail::Search own = {key, digestOf(hash), table.firstBucket(hash), {}, isWanted};
  detail::searchHomes<Concurrent>(table, table.home(hash), own);
  while (__any_sync(kAllLanes, own.isOpen))
    detail::searchBuckets<Concurrent>(table, tileOf(), hash, own);
  return own.found;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_BUCKET_SEARCH_H
