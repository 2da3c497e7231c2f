//===- store_kernels.h - The kernels of the store on a device ----*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
#define GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H

#include "row_draws.h"
#include "store_shape.h"

#include "genrec_rt/cuda/store.h"
#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/shared/init.h"

namespace genrec::rt::cuda {

template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    findRows(Table table, RowAddresses addresses, const int64_t *ids, const uint8_t *valid,
             int64_t count, float **rows, Word *missing) {
  const Tile tile = tileOf();
  for (int64_t i = tileInGrid(); i < count; i += tilesInGrid()) {
    if (valid && !valid[i])
      continue;
    const int64_t slot = findSlot(table, ids[i], tile);
    if (tile.rank != 0)
      continue;
    rows[i] = slot == kNoSlot ? nullptr : addresses.row(table.rows[slot]);
    if (slot == kNoSlot && missing)
      atomicAdd(missing, Word(1));
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

/// How a row begins: `dim` values in `valueFloats` floats, `accumulated` times `accumulator` from
/// `stateOffset` on, zeros everywhere else.
struct NewRows {
  int64_t dim, valueFloats, stateOffset;
  float accumulator;
  int64_t accumulated;
};

/// Fills row `number`, of the id with the key `key`. Called by a warp.
template <class T>
__device__ void makeRow(const RowAddresses &addresses, int64_t key, uint32_t number,
                        const StoreDraws &draws, const NewRows &make) {
  const RowDraws &drawn = draws.of(key);
  const InitialDistribution distribution = drawn.distribution;
  const kernels::RandomStream stream = drawn.stream;
  const uint64_t id = draws.idOf(key), streamKey = kernels::streamKey(stream);
  float *row = addresses.row(number);
  T *values = reinterpret_cast<T *>(row);
  // 16 lanes have the four words each of 64 columns.
  for (int64_t base = laneOf() / 16 * 64 + laneOf() % 16; base < make.dim; base += 128) {
    const uint32_t block = static_cast<uint32_t>(base / 64 * 16 + base % 16);
    const kernels::PhiloxBlock words = kernels::philox4x32(
        {{block, stream.op, static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)}},
        static_cast<uint32_t>(streamKey), static_cast<uint32_t>(streamKey >> 32));
#pragma unroll
    for (int part = 0; part < 4; ++part)
      if (base + 16 * part < make.dim)
        values[base + 16 * part] = fromFloat<T>(
            kernels::initialFromBits(static_cast<kernels::Distribution>(distribution.kind),
                                     distribution.mean, distribution.scale, words.word[part]));
  }
  if (sizeof(T) == 2 && make.dim % 2 && laneOf() == 0)
    values[make.dim] = fromFloat<T>(0.0f);
  for (int64_t at = make.valueFloats + laneOf(); at < addresses.stride; at += kWarp) {
    const int64_t inStates = at - make.stateOffset;
    row[at] = inStates >= 0 && inStates < make.accumulated ? make.accumulator : 0.0f;
  }
  if (laneOf() == 0)
    *addresses.id(number) = key;
}

/// Numbers the new ids by first appearance: erased numbers first, the last erased before the
/// others; those that took a row from one that leaves (`leaving`, null in a store that is no cache)
/// have its number. Then a warp fills the row. A warp looks at `each` positions at once, up to 32:
/// mostly few ids are new, or none.
template <class T>
__global__ void __launch_bounds__(kStoreThreads, 4)
    makeRows(KeyTable table, RowAddresses addresses, const int64_t *ids, const int64_t *slotOf,
             int64_t count, const uint8_t *flags, const uint8_t *leaving, const uint32_t *ranks,
             const uint32_t *freedNumbers, const StoreCounters *counters, MemberCounts members,
             StoreDraws draws, NewRows make, int each) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t first = warp * each; first < count; first += warps * each) {
    const int64_t own = first + laneOf();
    const bool isOwn = laneOf() < each && own < count;
    uint32_t made = __ballot_sync(kAllLanes, isOwn && (flags[own] || (leaving && leaving[own])));
    for (; made; made &= made - 1) {
      const int64_t i = first + __ffs(static_cast<int>(made)) - 1;
      const bool isTaken = leaving && leaving[i];
      const uint32_t rank = ranks[i], freed = counters->freed;
      const uint32_t number = isTaken        ? table.rows[slotOf[i]]
                              : rank < freed ? freedNumbers[freed - 1 - rank]
                                             : counters->rows + rank - freed;
      if (laneOf() == 0) {
        if (!isTaken)
          table.rows[slotOf[i]] = number;
        members.add(ids[i]);
      }
      makeRow<T>(addresses, ids[i], number, draws, make);
    }
  }
}

/// Ids and contents of the rows that leave, before others have them: by the position of the id that
/// takes the row.
__global__ void __launch_bounds__(kStoreThreads)
    writeEvicted(KeyTable table, RowAddresses addresses, const int64_t *slotOf, int64_t count,
                 const uint8_t *leaving, const uint32_t *ranks, int64_t *ids, float *values) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t i = warp; i < count; i += warps) {
    if (!leaving[i])
      continue;
    const uint32_t number = table.rows[slotOf[i]];
    if (ids && laneOf() == 0)
      ids[ranks[i]] = *addresses.id(number);
    if (values)
      for (int64_t c = laneOf(); c < addresses.stride; c += kWarp)
        values[ranks[i] * addresses.stride + c] = addresses.row(number)[c];
  }
}

/// After the rows are made.
__global__ void countRows(StoreCounters *counters) {
  const uint32_t reused = min(counters->fresh, counters->freed);
  counters->freed -= reused;
  counters->rows += counters->fresh - reused;
}

__global__ void __launch_bounds__(kStoreThreads)
    writeAddresses(KeyTable table, RowAddresses addresses, const int64_t *slotOf, int64_t count,
                   float **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (slotOf[i] >= 0)
      rows[i] = addresses.row(table.rows[slotOf[i]]);
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

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
