//===- unique_table.h - The hash table over a batch of ids ------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H
#define GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H

#include "marked.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cuda/offsets.h"

namespace genrec::rt::cuda::unique {

/// Four blocks on a multiprocessor: the tiles of 1 Mi ids are under way together.
constexpr int kThreads = 256, kEach = 8;
[[maybe_unused]] constexpr int kBlocks = 4;
using Marked = MarkedTile<kThreads, kEach>;

/// What a slot holds: nothing, as all bits set; the least position so far of the id that has it;
/// with this bit, the number of the id.
constexpr uint32_t kFree = 0xFFFFFFFFu, kNumbered = 0x80000000u;

/// The ids of a call and the hash table over them. A slot names its id by a position, so keys need
/// no memory of their own.
struct Batch {
  const int64_t *ids;
  int64_t count;
  const int64_t *offsets; ///< of segments; null: one is all of the batch
  int64_t segments;
  uint32_t *slots; ///< [2 count]
  /// [count] kFree of an id that is skipped; of a repetition the item of its tile that has its id
  /// first.
  uint32_t *slotOf;
  uint2 *notes; ///< [tiles][kItems / 32] of 32 positions each: Notes
  bool skipsZero;

  __device__ bool isSkipped(int64_t id) const { return skipsZero && id == 0; }
};

/// Who distinct ids are counted for, while they are placed. None where nobody asks.
struct Owners {
  uint32_t count = 0;
  uint32_t *totals = nullptr; ///< [count] their distinct ids
};

/// The positions that equal ids share.
struct Segment {
  int64_t from, to;

  __device__ Segment(const Batch &batch, int64_t i) : from(0), to(batch.count) {
    if (!batch.offsets)
      return;
    const int64_t segment = lastAtMost(batch.offsets, batch.segments, i);
    from = batch.offsets[segment];
    to = batch.offsets[segment + 1];
  }
  __device__ bool has(int64_t i) const { return from <= i && i < to; }
  /// Of a position that may have this one.
  __device__ Segment of(const Batch &batch, int64_t i) const {
    return has(i) ? *this : Segment(batch, i);
  }
};

/// A bit for each of 32 positions: whether it has the least position of its id (x), and whether it
/// repeats an id of its tile (y). Who becomes the least turns its bit over, and that of the
/// position it takes the place of: both orders of the two end with the same bit.
struct Notes {
  __device__ static uint32_t bitOf(uint32_t position) { return 1u << position % kWarp; }

  __device__ static void turnOver(const Batch &batch, uint32_t position) {
    atomicXor(&batch.notes[position / kWarp].x, bitOf(position));
  }
  /// By whole warps, of the position of lane 0.
  __device__ static void write(const Batch &batch, int64_t first, bool isLeast, bool isRepeated) {
    const uint32_t least = __ballot_sync(kAllLanes, isLeast),
                   repeated = __ballot_sync(kAllLanes, isRepeated);
    if (laneOf() != 0)
      return;
    if (least)
      atomicXor(&batch.notes[first / kWarp].x, least);
    batch.notes[first / kWarp].y = repeated;
  }
};

/// The slots at which an id is looked for, one after the other.
struct Search {
  uint32_t begin, size, at;

  __device__ Search(const Segment &segment, int64_t id) {
    begin = static_cast<uint32_t>(2 * segment.from);
    size = static_cast<uint32_t>(2 * (segment.to - segment.from));
    at = static_cast<uint32_t>((splitMix64(static_cast<uint64_t>(id)) >> 32) * size >> 32);
  }
  __device__ uint32_t slot() const { return begin + at; }
  __device__ void next() { at = at + 1 < size ? at + 1 : 0; }
};

/// The ids of a tile in shared memory, and a hash table over them as that over the batch.
struct TileIds {
  static constexpr uint32_t kSlots = 2 * Marked::kItems;

  int64_t ids[Marked::kItems];
  uint32_t items[kSlots];

  /// The slot of an item, which ends with the first item that has its id; `segment`: that of the
  /// tile's begin.
  __device__ uint32_t place(const Batch &batch, int64_t first, uint32_t item,
                            const Segment &segment) {
    const int64_t id = ids[item];
    auto at = static_cast<uint32_t>(splitMix64(static_cast<uint64_t>(id))) % kSlots;
    while (true) {
      uint32_t there = loadRelaxed(items + at);
      if (there == kFree)
        there = atomicCAS(items + at, kFree, item);
      if (there == kFree)
        return at;
      if (ids[there] == id && segment.of(batch, first + item).has(first + there)) {
        if (there > item)
          atomicMin(items + at, item);
        return at;
      }
      at = (at + 1) % kSlots;
    }
  }
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
  __device__ Placing(const Batch &batch, int64_t first) : segment(batch, first) {}

  Segment segment;   ///< of the tile's begin, and of most tiles' positions all
  uint32_t goes = 0; ///< a bit for each round: the id is no repetition in its tile
  /// The slot of an id that goes; of others what Batch::slotOf says of them.
  uint32_t slot[kEach];
  uint32_t there[kEach]; ///< the position that an id found in its slot; kFree: its own is the first

  __device__ bool isGoing(int round) const { return goes >> round & 1; }

  /// Looks for the first item of the tile that has the id of each.
  __device__ void findRepetitions(const Batch &batch, int64_t first, TileIds &tile) {
#pragma unroll 1
    for (int round = 0; round < kEach; ++round) {
      const auto item = static_cast<uint32_t>(Marked::place(round));
      put(slot, round,
          first + item < batch.count && !batch.isSkipped(tile.ids[item])
              ? tile.place(batch, first, item, segment)
              : kFree);
    }
    __syncthreads(); // the first item of every id is known
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (slot[round] != kFree)
        slot[round] = tile.items[slot[round]];
      if (slot[round] == static_cast<uint32_t>(Marked::place(round)))
        goes |= 1u << round;
    }
  }
  /// Takes the slot at which the search of each id begins.
  __device__ void take(const Batch &batch, uint32_t first, const int64_t *ids) {
#pragma unroll 1
    for (uint32_t left = goes; left; left &= left - 1) {
      const int round = __ffs(static_cast<int>(left)) - 1, item = Marked::place(round);
      put(slot, round, Search(segment.of(batch, first + item), ids[item]).slot());
    }
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      there[round] = isGoing(round) ? atomicCAS(batch.slots + slot[round], kFree,
                                                first + static_cast<uint32_t>(Marked::place(round)))
                                    : kFree;
  }
  /// Looks on for those whose slot another id has.
  __device__ void lookOn(const Batch &batch, uint32_t first, const int64_t *ids) {
    int64_t other[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      other[round] = there[round] != kFree ? batch.ids[there[round]] : 0;
    __syncwarp(); // or the compiler awaits each load before the next
    uint32_t left = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (there[round] != kFree && other[round] != ids[Marked::place(round)])
        left |= 1u << round;
#pragma unroll 1
    for (; left; left &= left - 1) {
      const int round = __ffs(static_cast<int>(left)) - 1;
      const uint32_t position = first + static_cast<uint32_t>(Marked::place(round));
      const int64_t id = ids[Marked::place(round)];
      Search search(segment.of(batch, position), id);
      search.at = pick(slot, round) - search.begin;
      uint32_t found;
      do {
        search.next();
        found = atomicCAS(batch.slots + search.slot(), kFree, position);
      } while (found != kFree && batch.ids[found] != id);
      put(slot, round, search.slot());
      put(there, round, found);
    }
  }
  /// Gives slots the least position of their ids. Of an id that occurs a million times, few
  /// occurrences find a greater one.
  __device__ void lower(const Batch &batch, uint32_t first) {
    uint32_t lowers = 0;
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (there[round] != kFree && there[round] > first + Marked::place(round)) {
        lowers |= 1u << round;
        there[round] = atomicMin(batch.slots + slot[round],
                                 first + static_cast<uint32_t>(Marked::place(round)));
      }
    __syncwarp(); // likewise
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (lowers >> round & 1 && there[round] > first + Marked::place(round))
        Notes::turnOver(batch, there[round]);
  }
};

} // namespace genrec::rt::cuda::unique

#endif // GENREC_RT_KERNELS_CUDA_UNIQUE_TABLE_H
