//===- unique_table.h - The hash table over a batch of ids ------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H
#define GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H

#include "marked.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/offsets.h"

#include <algorithm>
#include <bit>

namespace genrec::rt::cuda::unique {

/// Four blocks on a multiprocessor: the tiles of 1 Mi ids are under way together.
constexpr int kEach = 8;
[[maybe_unused]] constexpr int kBlocks = 4;
using Marked = MarkedTile<kThreads, kEach>;

/// What a slot holds: nothing, as all bits set; the least position so far of the id that has it,
/// and above it bits of the id's hash, its mark; or, with this bit, the number of the id.
constexpr uint32_t kFree = 0xFFFFFFFFu, kNumbered = 0x80000000u;

/// The bits of a position below `count`; those between them and kNumbered are the mark's. 1 Mi ids
/// have a mark of 10 bits: who finds another id's slot mostly sees it there. Tests see two bits.
inline uint32_t positionBits(int64_t count) {
  constexpr int kLeast = deviceSize(1, 29);
  const int bits = std::max(static_cast<int>(std::bit_width(static_cast<uint64_t>(count))), kLeast);
  return static_cast<uint32_t>((uint64_t(1) << bits) - 1);
}

/// The ids of a call and the hash table over them. A slot names its id by a position, so keys need
/// no memory of their own.
struct Batch {
  const int64_t *ids;
  int64_t count;
  const int64_t *offsets; ///< of segments; null: one is all of the batch
  int64_t segments;
  uint32_t positions; ///< positionBits
  uint32_t *slots;    ///< [2 count]
  /// [count] kFree of an id that is skipped; of a repetition the item of its tile that has its id
  /// first.
  uint32_t *slotOf;
  uint32_t *firsts;  ///< [tiles][kItems / 32] Notes of 32 positions each
  uint32_t *repeats; ///< likewise
  uint2 *ranks;      ///< [tiles][kItems / 32] firsts, and how many there are before; by appearance
  bool skipsZero;

  __device__ bool isSkipped(int64_t id) const { return skipsZero && id == 0; }
  /// What a slot holds of an id of whose hash this is the lower half.
  __device__ uint32_t marked(uint32_t hash, uint32_t position) const {
    return (hash >> 1 & ~positions) | position;
  }
  /// Whether the ids of two slots, neither of which is free, have one mark: equal ones do.
  __device__ bool haveOneMark(uint32_t a, uint32_t b) const { return ((a ^ b) & ~positions) == 0; }
};

/// Who distinct ids are counted for, while they are placed. None where nobody asks.
struct Owners {
  uint32_t count = 0;
  uint32_t *totals = nullptr; ///< [count] their distinct ids
};

/// The positions that equal ids share, and the slots at which they are looked for, one after the
/// other.
struct Segment {
  int64_t from = 0, to;

  __device__ Segment(const Batch &batch, int64_t i) : to(batch.count) {
    if (!batch.offsets)
      return;
    setTo(batch, lastAtMost(batch.offsets, batch.segments, i));
  }
  /// Of one position, by a whole warp.
  __device__ static Segment byWarp(const Batch &batch, int64_t i) {
    Segment result;
    result.to = batch.count;
    if (batch.offsets)
      result.setTo(batch, lastAtMostByWarp(batch.offsets, batch.segments, i));
    return result;
  }
  __device__ bool has(int64_t i) const { return from <= i && i < to; }
  /// Of a position that may have this one.
  __device__ Segment of(const Batch &batch, int64_t i) const {
    return has(i) ? *this : Segment(batch, i);
  }

  /// Where the search begins for an id of whose hash this is the upper half.
  __device__ uint32_t home(uint32_t hash) const {
    const auto size = static_cast<uint64_t>(2 * (to - from));
    return static_cast<uint32_t>(2 * from) + static_cast<uint32_t>(hash * size >> 32);
  }
  __device__ uint32_t next(uint32_t slot) const {
    return static_cast<uint32_t>(slot + 1 < 2 * to ? slot + 1 : 2 * from);
  }

private:
  Segment() = default;
  __device__ void setTo(const Batch &batch, int64_t segment) {
    from = batch.offsets[segment];
    to = batch.offsets[segment + 1];
  }
};

/// A bit for each of 32 positions: whether it has the least position of its id (Batch::firsts), and
/// whether it repeats an id of its tile (repeats). Who becomes the least turns its bit over, and
/// that of the position it takes the place of: both orders of the two end with the same bit.
struct Notes {
  uint32_t least = 0, repeated = 0; ///< of lane `round`: those of that round

  __device__ static void turnOver(const Batch &batch, uint32_t position) {
    atomicXor(&batch.firsts[position / kWarp], 1u << position % kWarp);
  }
  /// Called once for every round by whole warps.
  __device__ void note(int round, bool isLeast, bool isRepeated) {
    const uint32_t leasts = __ballot_sync(kAllLanes, isLeast),
                   repetitions = __ballot_sync(kAllLanes, isRepeated);
    if (laneOf() == round) {
      least = leasts;
      repeated = repetitions;
    }
  }
  __device__ void write(const Batch &batch, int64_t first) const {
    const int64_t word = first / kWarp + warpOf() * kEach + laneOf();
    if (laneOf() >= kEach)
      return;
    if (least)
      atomicXor(&batch.firsts[word], least);
    batch.repeats[word] = repeated;
  }
};

/// The ids of a tile in shared memory, and of each value that a part of a hash may have the first
/// item with it. An id whose part an earlier item of another id has is not found to repeat:
/// then it goes to the table for itself, as ids of other tiles do. Of ids by a power law that are
/// a third distinct 65.3 % go; 63.9 % are the first in their tile. Items are cleared four at a
/// time.
struct alignas(16) TileIds {
  static constexpr uint32_t kParts = 2 * Marked::kItems;

  int64_t ids[Marked::kItems];
  uint32_t items[kParts];
};

/// An element of registers whose number is not known to the compiler: loops that are long are not
/// unrolled, as a block runs them once.
template <class T> __device__ T pick(const T (&of)[kEach], int round) {
  T value = of[0];
#pragma unroll
  for (int r = 1; r < kEach; ++r)
    value = r == round ? of[r] : value;
  return value;
}
template <class T> __device__ void put(T (&to)[kEach], int round, T value) {
#pragma unroll
  for (int r = 0; r < kEach; ++r)
    to[r] = r == round ? value : to[r];
}

/// The ids of a thread on their way to slots. Steps take all rounds at once, so that accesses of
/// eight ids are under way together.
struct Placing {
  /// `first`: where the tile begins.
  __device__ Placing(const Batch &batch, int64_t first)
      : segment(Segment::byWarp(batch, first)), items(upTo(batch.count - first)) {
    const uint32_t ofSegment = upTo(segment.to - first);
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (static_cast<uint32_t>(Marked::place(round)) >= ofSegment)
        isBeyond |= 1u << round;
  }

  Segment segment;       ///< of the tile's begin, and of most tiles' positions all
  uint32_t items;        ///< of the tile
  uint32_t isBeyond = 0; ///< a bit for each round: the position is of a later segment
  uint32_t goes = 0;     ///< likewise: the id is there and no known repetition in its tile
  uint32_t hash[kEach];  ///< the upper half, for the slot; the lower is for the tile and the mark
  uint32_t own[kEach];   ///< what the slot of an id is to hold (Batch::marked)
  /// The slot of an id that goes; of others what Batch::slotOf says of them.
  uint32_t slot[kEach];
  uint32_t there[kEach]; ///< what an id found in its slot; kFree: it is the first there

  __device__ bool isGoing(int round) const { return goes >> round & 1; }

  /// Looks for an earlier item of the tile that has the id of each.
  __device__ void findRepetitions(const Batch &batch, int64_t first, TileIds &tile) {
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const auto item = static_cast<uint32_t>(Marked::place(round));
      const int64_t id = tile.ids[item];
      const uint64_t whole = splitMix64(static_cast<uint64_t>(id));
      hash[round] = static_cast<uint32_t>(whole >> 32);
      own[round] = batch.marked(static_cast<uint32_t>(whole), static_cast<uint32_t>(first) + item);
      const bool isThere = item < items && !batch.isSkipped(id);
      slot[round] = isThere ? static_cast<uint32_t>(whole) % TileIds::kParts : kFree;
      if (isThere)
        atomicMin(tile.items + slot[round], item);
    }
    __syncthreads(); // the first item of every part is known
    uint32_t repeats = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (slot[round] != kFree)
        slot[round] = tile.items[slot[round]];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const auto item = static_cast<uint32_t>(Marked::place(round));
      const bool isThere = slot[round] != kFree;
      const int64_t id = tile.ids[isThere ? slot[round] : item];
      if (isThere)
        (slot[round] != item && id == tile.ids[item] ? repeats : goes) |= 1u << round;
    }
    // Equal ids of two segments are two.
#pragma unroll 1
    for (uint32_t left = repeats & isBeyond; left; left &= left - 1) {
      const int round = __ffs(static_cast<int>(left)) - 1;
      if (!Segment(batch, first + Marked::place(round)).has(first + pick(slot, round)))
        goes |= 1u << round;
    }
  }
  /// Takes the slot at which the search of each id begins.
  __device__ void take(const Batch &batch, int64_t first) {
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (isGoing(round))
        slot[round] = segment.home(hash[round]);
#pragma unroll 1
    for (uint32_t left = goes & isBeyond; left; left &= left - 1) {
      const int round = __ffs(static_cast<int>(left)) - 1;
      put(slot, round, Segment(batch, first + Marked::place(round)).home(pick(hash, round)));
    }
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      there[round] =
          isGoing(round) ? atomicCAS(batch.slots + slot[round], kFree, own[round]) : kFree;
  }
  /// Looks on for those whose slot another id has. Most have another mark, so ids are asked for
  /// once.
  __device__ void lookOn(const Batch &batch, uint32_t first, const int64_t *ids) {
    uint32_t left = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (there[round] != kFree && !batch.haveOneMark(there[round], own[round]))
        left |= 1u << round;
    lookOn(batch, first, left, [](int, uint32_t) { return true; });
    int64_t other[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      other[round] = there[round] != kFree ? batch.ids[there[round] & batch.positions] : 0;
    __syncwarp(); // or the compiler awaits each load before the next
    left = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (there[round] != kFree && other[round] != ids[Marked::place(round)])
        left |= 1u << round;
    lookOn(batch, first, left, [&](int round, uint32_t position) {
      return batch.ids[position] == ids[Marked::place(round)];
    });
  }
  /// A bit for each round: the id is the first in its slot.
  __device__ uint32_t takers() const {
    uint32_t result = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (isGoing(round) && there[round] == kFree)
        result |= 1u << round;
    return result;
  }
  /// Gives slots the least position of their ids. Of an id that occurs a million times, few
  /// occurrences find a greater one. A bit for each round: it asked for that.
  __device__ uint32_t lower(const Batch &batch) {
    uint32_t lowers = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (there[round] != kFree && there[round] > own[round]) {
        lowers |= 1u << round;
        there[round] = atomicMin(batch.slots + slot[round], own[round]);
      }
    return lowers;
  }
  /// Behind that: who is first no more turns over.
  __device__ void turnOver(const Batch &batch, uint32_t lowers) const {
    __syncwarp(); // likewise
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (lowers >> round & 1 && there[round] > own[round])
        Notes::turnOver(batch, there[round] & batch.positions);
  }

private:
  /// Looks on from the slots of the rounds in `left` for one that is free or has the mark of the id
  /// and, at the position it names, the id, says `isOwn`.
  template <class IsOwn>
  __device__ void lookOn(const Batch &batch, uint32_t first, uint32_t left, const IsOwn &isOwn) {
#pragma unroll 1
    for (; left; left &= left - 1) {
      const int round = __ffs(static_cast<int>(left)) - 1;
      const Segment its = segment.of(batch, first + static_cast<uint32_t>(Marked::place(round)));
      const uint32_t word = pick(own, round);
      uint32_t at = pick(slot, round), found;
      do {
        at = its.next(at);
        found = atomicCAS(batch.slots + at, kFree, word);
      } while (found != kFree &&
               !(batch.haveOneMark(found, word) && isOwn(round, found & batch.positions)));
      put(slot, round, at);
      put(there, round, found);
    }
  }
  __device__ static uint32_t upTo(int64_t count) {
    return static_cast<uint32_t>(min(count, static_cast<int64_t>(Marked::kItems)));
  }
};

} // namespace genrec::rt::cuda::unique

#endif // GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H
