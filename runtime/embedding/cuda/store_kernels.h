//===- store_kernels.h - The kernels of the store on a device ----*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
#define GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H

#include "genrec_rt/cuda/store.h"

#include "genrec_rt/kernels/init.h"

#include <type_traits>

namespace genrec::rt::cuda {

constexpr int kStoreThreads = 256;

template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    findRows(Table table, RowPlaces places, const int64_t *ids, const uint8_t *valid, int64_t count,
             float **rows, uint32_t *missing) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    if (valid && !valid[i])
      continue;
    const int64_t slot = findSlot(table, ids[i], tile);
    if (tile.rank != 0)
      continue;
    rows[i] = slot == kNoSlot ? nullptr : places.row(table.rows[slot]);
    if (slot == kNoSlot && missing)
      atomicAdd(missing, 1u);
  }
}

/// Gives every id a slot. Slots that are new in this batch end with the least position of their id.
__global__ void __launch_bounds__(kStoreThreads)
    resolveIds(KeyTable table, const int64_t *ids, const uint8_t *valid, int64_t count,
               uint32_t limit, StoreCounters *counters, int64_t *slotOf) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    int64_t slot = kNoSlot;
    if (!valid || valid[i]) {
      const uint32_t pending = kPending | static_cast<uint32_t>(i);
      slot = findOrClaimSlot(table, ids[i], tile, pending, &counters->used, limit);
      // Rows that have a number are below any that is pending.
      if (tile.rank == 0 && slot >= 0 && loadRelaxed(table.rows + slot) > pending)
        atomicMin(table.rows + slot, pending);
      if (tile.rank == 0 && slot == kNoRoom)
        atomicAdd(&counters->unresolved, 1u);
    }
    if (tile.rank == 0)
      slotOf[i] = slot;
  }
}

/// flags[i]: position i is the first of an id that has no row yet.
__global__ void __launch_bounds__(kStoreThreads)
    flagFresh(KeyTable table, const int64_t *slotOf, int64_t count, uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = slotOf[i] >= 0 && table.rows[slotOf[i]] == (kPending | static_cast<uint32_t>(i));
}

/// Numbers the new ids by first appearance: erased numbers first, the last erased before the
/// others; those that took a row from one that leaves (`leaving`, null in a store that is no cache)
/// have its number. Then a warp fills the row: initial values, states, zeros to the end.
__global__ void __launch_bounds__(kStoreThreads)
    makeRows(KeyTable table, RowPlaces places, const int64_t *ids, const int64_t *slotOf,
             int64_t count, const uint8_t *flags, const uint8_t *leaving, const uint32_t *ranks,
             const uint32_t *freedNumbers, const StoreCounters *counters,
             InitialDistribution distribution, kernels::RandomStream stream, int64_t dim,
             float accumulator, int64_t accumulated) {
  const uint64_t key = kernels::streamKey(stream);
  const uint32_t freed = counters->freed, used = counters->rows;
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t i = warp; i < count; i += warps) {
    const bool isTaken = leaving && leaving[i];
    if (!flags[i] && !isTaken)
      continue;
    const uint32_t rank = ranks[i];
    const uint32_t number = isTaken        ? table.rows[slotOf[i]]
                            : rank < freed ? freedNumbers[freed - 1 - rank]
                                           : used + rank - freed;
    const uint64_t id = static_cast<uint64_t>(ids[i]);
    float *row = places.row(number);
    // 16 lanes have the four words each of 64 columns.
    for (int64_t base = laneOf() / 16 * 64 + laneOf() % 16; base < places.stride; base += 128) {
      const uint32_t block = static_cast<uint32_t>(base / 64 * 16 + base % 16);
      const kernels::PhiloxBlock words = kernels::philox4x32(
          {{block, stream.op, static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)}},
          static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int64_t column = base + 16 * part;
        if (column < dim)
          row[column] =
              kernels::initialFromBits(static_cast<kernels::InitKind>(distribution.kind),
                                       distribution.mean, distribution.scale, words.word[part]);
        else if (column < places.stride)
          row[column] = column < dim + accumulated ? accumulator : 0.0f;
      }
    }
    if (laneOf() == 0) {
      *places.id(number) = ids[i];
      table.rows[slotOf[i]] = number;
    }
  }
}

/// Ids and contents of the rows that leave, before others have them: by the position of the id that
/// takes the row.
__global__ void __launch_bounds__(kStoreThreads)
    writeEvicted(KeyTable table, RowPlaces places, const int64_t *slotOf, int64_t count,
                 const uint8_t *leaving, const uint32_t *ranks, int64_t *ids, float *values) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t i = warp; i < count; i += warps) {
    if (!leaving[i])
      continue;
    const uint32_t number = table.rows[slotOf[i]];
    if (ids && laneOf() == 0)
      ids[ranks[i]] = *places.id(number);
    if (values)
      for (int64_t c = laneOf(); c < places.stride; c += kWarp)
        values[ranks[i] * places.stride + c] = places.row(number)[c];
  }
}

/// After the rows are made.
__global__ void countRows(StoreCounters *counters) {
  const uint32_t reused = min(counters->fresh, counters->freed);
  counters->freed -= reused;
  counters->rows += counters->fresh - reused;
}

__global__ void __launch_bounds__(kStoreThreads)
    writeRows(KeyTable table, RowPlaces places, const int64_t *slotOf, int64_t count,
              float **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (slotOf[i] >= 0)
      rows[i] = places.row(table.rows[slotOf[i]]);
    else if (slotOf[i] == kNoRoom)
      rows[i] = nullptr;
}

/// Moves the keys of a table into an empty larger one.
__global__ void __launch_bounds__(kStoreThreads)
    moveKeys(KeyTable from, KeyTable to, StoreCounters *counters) {
  const Tile tile = tileOf();
  for (int64_t slot = tileInGrid(); slot < from.slots(); slot += tilesInGrid()) {
    const uint32_t digest = from.digests[slot];
    if (digest == kEmpty || digest == kErased)
      continue;
    findOrClaimSlot(to, from.keys[slot], tile, from.rows[slot], &counters->used, 0xFFFFFFFFu);
  }
}

//===----------------------------------------------------------------------===//
// Erasing and exporting
//===----------------------------------------------------------------------===//

/// slotOf[i] = the slot of an id, and firstOf[its row] the least position of that id.
template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    findErased(Table table, const int64_t *ids, int64_t count, int64_t *slotOf, uint32_t *firstOf) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    const int64_t slot = findSlot(table, ids[i], tile);
    if (tile.rank != 0)
      continue;
    slotOf[i] = slot;
    if (slot != kNoSlot)
      atomicMin(firstOf + table.rows[slot], static_cast<uint32_t>(i));
  }
}

__global__ void __launch_bounds__(kStoreThreads)
    flagErased(KeyTable table, const int64_t *slotOf, int64_t count, const uint32_t *firstOf,
               uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = slotOf[i] != kNoSlot && firstOf[table.rows[slotOf[i]]] == static_cast<uint32_t>(i);
}

/// A tile per id. A bucket that searches may go past has an empty slot before its slots are erased,
/// or has none after.
template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    eraseSlots(Table table, const int64_t *slotOf, int64_t count, const uint8_t *flags,
               const uint32_t *ranks, uint32_t *freedNumbers, StoreCounters *counters) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    if (!flags[i])
      continue;
    const int64_t slot = slotOf[i], bucket = slot / kBucketSlots;
    bool hasEmpty = true;
    if constexpr (!std::is_same_v<Table, CacheTable>) {
      const uint4 digests = loadRelaxed4(detail::laneDigests(table, bucket, tile));
      hasEmpty = __any_sync(tile.mask, matchBytes(digests, kEmpty) != 0);
    }
    if (tile.rank != 0)
      continue;
    unsigned *word = reinterpret_cast<unsigned *>(table.digests + (slot & ~int64_t(3)));
    const int shift = static_cast<int>(slot & 3) * 8;
    // One step: a slot of a full bucket must never look empty, not even to tiles that erase beside
    // this one.
    const uint32_t after = hasEmpty ? kEmpty : kErased;
    atomicXor(word, (table.digests[slot] ^ after) << shift);
    if (hasEmpty && !std::is_same_v<Table, CacheTable>)
      atomicSub(&counters->used, 1u);
    freedNumbers[counters->freed + ranks[i]] = table.rows[slot];
  }
}

__global__ void countErased(StoreCounters *counters) { counters->freed += counters->fresh; }

/// flags[number]: the row is in use.
template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    flagStored(Table table, RowPlaces places, int64_t numbers, uint8_t *flags) {
  const Tile tile = tileOf();
  for (int64_t number = tileInGrid(); number < numbers; number += tilesInGrid()) {
    const int64_t slot = findSlot(table, *places.id(static_cast<uint32_t>(number)), tile);
    if (tile.rank == 0)
      flags[number] = slot != kNoSlot && table.rows[slot] == static_cast<uint32_t>(number);
  }
}

__global__ void __launch_bounds__(kStoreThreads)
    writeStored(RowPlaces places, int64_t numbers, const uint8_t *flags, const uint32_t *ranks,
                int64_t *ids, float **rows) {
  for (int64_t number = threadInGrid(); number < numbers; number += threadsInGrid())
    if (flags[number]) {
      ids[ranks[number]] = *places.id(static_cast<uint32_t>(number));
      rows[ranks[number]] = places.row(static_cast<uint32_t>(number));
    }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
