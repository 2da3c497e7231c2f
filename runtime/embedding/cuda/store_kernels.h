//===- store_kernels.h - The kernels of the store on a device ----*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
#define GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H

#include "row_draws.h"
#include "store_shape.h"

#include "genrec_rt/cuda/store.h"
#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/shared/init.h"

namespace genrec::rt::cuda {

/// A lane has an id, a warp searches for all of its lanes' (bucket_search.h).
template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    findRows(Table table, RowAddresses addresses, const int64_t *ids, const uint8_t *valid,
             int64_t count, float **rows, Word *missing) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isWanted = i < count && (!valid || valid[i]);
    const Entry found = findEntry(table, isWanted ? ids[i] : 0, isWanted);
    const bool isThere = found.slot != kNoSlot;
    if (isWanted)
      rows[i] = isThere ? addresses.row(found.row) : nullptr;
    if (!missing)
      continue;
    const uint32_t absent = __ballot_sync(kAllLanes, isWanted && !isThere);
    if (absent && laneOf() == 0)
      atomicAdd(missing, Word(__popc(absent)));
  }
}

/// What resolveIds leaves of an id: a slot whose row is yet to be numbered, kNoSlot, kNoRoom, or,
/// of an id that had a row before, that row's number and this bit: the slot is not looked at again.
constexpr int64_t kHasRow = int64_t(1) << 62;

/// The row number of an id that has one by now.
__device__ inline uint32_t rowOf(const KeyTable &table, int64_t place) {
  return place >= kHasRow ? static_cast<uint32_t>(place) : table.row(place);
}

/// The row of a slot of a cache.
__device__ inline uint32_t rowOf(const CacheTable &, int64_t slot) {
  return static_cast<uint32_t>(slot);
}

/// What resolveIds notes of an id at position `pending` that has `entry`.
__device__ inline int64_t notePlace(const KeyTable &table, const Entry &entry, uint32_t pending) {
  // Rows that have a number are below any that is pending.
  if (entry.row < kPending)
    return kHasRow | entry.row;
  if (entry.row > pending)
    atomicMin(&table.keys[entry.slot].row, Word(pending));
  return entry.slot;
}

/// Gives every id a slot. Slots that are new in this batch end with the least position of their id.
/// Warps search for the ids of all lanes, and behind that a tile inserts one after another of its
/// lanes' that were not there.
__global__ void __launch_bounds__(kStoreThreads)
    resolveIds(KeyTable table, const int64_t *ids, const uint8_t *valid, int64_t count,
               uint32_t limit, StoreCounters *counters, int64_t *placeOf) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isWanted = i < count && (!valid || valid[i]);
    const Entry own = findEntry<true>(table, isWanted ? ids[i] : 0, isWanted);
    if (i < count)
      placeOf[i] = !isWanted ? kNoSlot
                   : own.slot == kNoSlot
                       ? kNoRoom
                       : notePlace(table, own, kPending | static_cast<uint32_t>(i));
  }
  const Tile tile = tileOf();
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isAbsent = i < count && placeOf[i] == kNoRoom;
    const int64_t id = isAbsent ? ids[i] : 0;
    const uint32_t pending = kPending | static_cast<uint32_t>(i);
    for (uint32_t absent = __ballot_sync(tile.mask, isAbsent); absent; absent &= absent - 1) {
      const int lane = __ffs(static_cast<int>(absent)) - 1;
      const Entry made = findOrClaim(table, __shfl_sync(tile.mask, id, lane), tile,
                                     __shfl_sync(tile.mask, pending, lane), &counters->used, limit);
      if (laneOf() != lane)
        continue;
      if (made.slot == kNoRoom)
        atomicAdd(&counters->unresolved, 1u);
      else
        placeOf[i] = notePlace(table, made, pending);
    }
  }
}

/// flags[i]: position i is the first of an id that has no row yet.
__global__ void __launch_bounds__(kStoreThreads)
    flagFresh(KeyTable table, const int64_t *placeOf, int64_t count, uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = placeOf[i] >= 0 && placeOf[i] < kHasRow &&
               table.row(placeOf[i]) == (kPending | static_cast<uint32_t>(i));
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

/// Numbers new ids by first appearance: erased numbers first, the last erased before the others.
struct NumbersOfTable {
  KeyTable table;
  const int64_t *placeOf;
  const uint32_t *ranks, *freedNumbers;
  const StoreCounters *counters;

  /// The number of the id at position `i`, which is noted in its slot; called by a warp.
  __device__ uint32_t take(int64_t i) const {
    const uint32_t rank = ranks[i], freed = counters->freed;
    const uint32_t number =
        rank < freed ? freedNumbers[freed - 1 - rank] : counters->rows + rank - freed;
    if (laneOf() == 0)
      table.keys[placeOf[i]].row = number;
    return number;
  }
};
struct NumbersOfCache {
  const int64_t *slotOf;

  __device__ uint32_t take(int64_t i) const { return static_cast<uint32_t>(slotOf[i]); }
};

/// Makes the rows of the ids that have `flags`, a warp each. A warp looks at `each` positions at
/// once, up to 32: mostly few ids are new, or none.
template <class T, class Numbers>
__global__ void __launch_bounds__(kStoreThreads, 4)
    makeRows(Numbers numbers, RowAddresses addresses, const int64_t *ids, int64_t count,
             const uint8_t *flags, MemberCounts members, StoreDraws draws, NewRows make, int each) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t first = warp * each; first < count; first += warps * each) {
    const int64_t own = first + laneOf();
    uint32_t made = __ballot_sync(kAllLanes, laneOf() < each && own < count && flags[own]);
    for (; made; made &= made - 1) {
      const int64_t i = first + __ffs(static_cast<int>(made)) - 1;
      if (laneOf() == 0)
        members.add(ids[i]);
      makeRow<T>(addresses, ids[i], numbers.take(i), draws, make);
    }
  }
}

/// Ids and contents of the rows that leave a cache, before others have them: by the position of the
/// id that takes the row.
__global__ void __launch_bounds__(kStoreThreads)
    writeEvicted(RowAddresses addresses, const int64_t *slotOf, int64_t count,
                 const uint8_t *leaving, const uint32_t *ranks, int64_t *ids, float *values) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t i = warp; i < count; i += warps) {
    if (!leaving[i])
      continue;
    const auto number = static_cast<uint32_t>(slotOf[i]);
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

template <class Table>
__global__ void __launch_bounds__(kStoreThreads)
    writeAddresses(Table table, RowAddresses addresses, const int64_t *placeOf, int64_t count,
                   float **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (placeOf[i] >= 0)
      rows[i] = addresses.row(rowOf(table, placeOf[i]));
    else if (placeOf[i] == kNoRoom)
      rows[i] = nullptr;
}

/// Moves the keys of a table into an empty larger one.
__global__ void __launch_bounds__(kStoreThreads)
    moveKeys(KeyTable from, KeyTable to, StoreCounters *counters) {
  const Tile tile = tileOf();
  for (int64_t at = tileInGrid(); at < from.slots(); at += tilesInGrid()) {
    const uint32_t digest = from.digests[at];
    if (digest == kEmpty || digest == kErased)
      continue;
    const Slot moved = from.slot<false>(at);
    findOrClaim(to, moved.key, tile, moved.row, &counters->used, 0xFFFFFFFFu);
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_STORE_KERNELS_H
