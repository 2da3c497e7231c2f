//===- unique_numbers.h - Numbers of distinct ids ---------------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_UNIQUE_NUMBERS_H
#define GENREC_RT_KERNELS_CUDA_UNIQUE_NUMBERS_H

#include "key_ranks.h"
#include "look_back.h"
#include "unique_table.h"

#include "genrec_rt/kernels/cuda/unique.h"

namespace genrec::rt::cuda::unique {

/// What a thread knows of its ids when they are numbered.
struct Placed {
  uint32_t slot[kEach];
  Notes notes;
  uint32_t least = 0, repeated = 0; ///< a bit for each round

  __device__ Placed(const Batch &batch, int64_t first) {
    const int64_t word = first / kWarp + warpOf() * kEach + laneOf();
    if (laneOf() < kEach) {
      notes.least = batch.firsts[word];
      notes.repeated = batch.repeats[word];
    }
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int64_t i = first + Marked::place(round);
      slot[round] = i < batch.count ? batch.slotOf[i] : kFree;
    }
  }
  /// Spreads the notes over the lanes, for who has waited for them.
  __device__ void readNotes() {
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      least |= (__shfl_sync(kAllLanes, notes.least, round) >> laneOf() & 1) << round;
      repeated |= (__shfl_sync(kAllLanes, notes.repeated, round) >> laneOf() & 1) << round;
    }
  }
  __device__ bool isFirst(int round) const { return least >> round & 1; }
  __device__ bool isRepeated(int round) const { return repeated >> round & 1; }
  /// Whether another position has the id first.
  __device__ bool isLater(int round) const {
    return slot[round] != kFree && !isFirst(round) && !isRepeated(round);
  }
};

/// How many first ids there are before a position, of the rank of its word.
__device__ inline uint32_t rankIn(uint2 rank, uint32_t position) {
  return rank.y + static_cast<uint32_t>(__popc(rank.x & ((1u << position % kWarp) - 1)));
}

using OwnerRanks = KeyRanks<kThreads, kEach, Unique::kMostOwners>;

/// Numbers distinct ids owner by owner, of each by first appearance. How many each owner has was
/// counted when they were placed, so a tile needs only those of the tiles before.
class ByOwner {
public:
  struct Shared {
    OwnerRanks ranks;
    uint32_t begin[Unique::kMostOwners];  ///< the number of the first id of each
    uint32_t next[Unique::kMostOwners];   ///< that of the first in the tile
    uint16_t ownerOfItem[Marked::kItems]; ///< a thread's own
  };

  ByOwner(const Owners &owners, int64_t *offsets) : owners(owners), offsets(offsets) {}

  /// Once for all tiles of a block. Lane 0 of the warp that has an owner writes, and alone reads
  /// it.
  __device__ void begin(Shared &shared) const {
    for (int owner = warpOf(); owner < static_cast<int>(owners.count); owner += kThreads / kWarp) {
      uint32_t sum = 0;
#pragma unroll 1
      for (int o = laneOf(); o < owner; o += kWarp)
        sum += owners.totals[o];
      sum = inclusiveWarpSum(sum);
      sum = __shfl_sync(kAllLanes, sum, kWarp - 1);
      if (laneOf() == 0)
        shared.begin[owner] = sum;
    }
  }

  /// Finds the owners of a thread's ids, of all that a tile has.
  __device__ void findOwners(const int64_t *ids, Shared &shared) const {
#pragma unroll 2
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      shared.ownerOfItem[item] = static_cast<uint16_t>(ownerOf(ids[item], owners.count));
    }
  }

  __device__ void number(const LookBackTiles &tiles, int64_t tile, Placed &placed,
                         const UniqueResult &result, Shared &shared,
                         uint32_t (&numbers)[kEach]) const {
    const auto count = static_cast<int>(owners.count);
    placed.readNotes();
    int owner[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      owner[round] =
          placed.isFirst(round) ? shared.ownerOfItem[Marked::place(round)] : OwnerRanks::kNone;
    shared.ranks.rank(count, [&](int round) { return owner[round]; }, numbers);
    // Both in one register, as half of a multiprocessor's threads have to have room.
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      numbers[round] |= static_cast<uint32_t>(owner[round]) << 16;
    __syncthreads(); // warps have counted
    // A warp has every eighth owner, and shows all sums before it waits for those of others.
#pragma unroll 1
    for (int o = warpOf(); o < count; o += kThreads / kWarp) {
      const uint32_t sum = shared.ranks.addWarpsTogether(o);
      if (laneOf() == 0) {
        shared.next[o] = sum;
        tiles.show(tile, sum, o);
      }
    }
#pragma unroll 1
    for (int o = warpOf(); o < count; o += kThreads / kWarp) {
      const uint32_t sum = laneOf() == 0 ? shared.next[o] : 0; // no other lane reads it
      const uint32_t before = tiles.lookBack(tile, sum, o);
      if (laneOf() == 0) {
        const uint32_t begin = shared.begin[o] + before;
        shared.next[o] = begin;
        if (tile == tiles.count - 1)
          writeEnds(o, shared.begin[o], begin + sum, result);
      }
    }
    __syncthreads(); // numbers of the tile's first ids are there
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (placed.isFirst(round)) {
        const auto o = static_cast<int>(numbers[round] >> 16);
        numbers[round] = shared.next[o] + shared.ranks.before(o) + (numbers[round] & 0xFFFFu);
      }
  }

private:
  __device__ void writeEnds(int owner, uint32_t begin, uint32_t end,
                            const UniqueResult &result) const {
    offsets[owner] = begin;
    if (owner + 1 < static_cast<int>(owners.count))
      return;
    offsets[owners.count] = end;
    *result.total = end;
  }

  Owners owners;
  int64_t *offsets; ///< [owners + 1] where the ids of each begin
};

} // namespace genrec::rt::cuda::unique

#endif // GENREC_RT_KERNELS_CUDA_UNIQUE_NUMBERS_H
