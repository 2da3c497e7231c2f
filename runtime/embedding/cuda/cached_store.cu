//===- cached_store.cu - A table in host memory, cached on a device -------===//

#include "genrec_rt/cuda/cached_store.h"

#include "store_shape.h"

#include "genrec_rt/footprint.h"

#include <utility>

namespace genrec::rt::cuda {

namespace {

/// Rows on the device and in host memory, in words of 16 bytes.
struct CachedRows {
  uint4 *rows;      ///< by slot
  uint4 **hostRows; ///< by slot
  int64_t words;    ///< of a row

  __device__ uint4 *row(int64_t slot) const { return rows + slot * words; }
};

/// A warp copies a row.
__device__ void copyRow(const uint4 *from, uint4 *to, int64_t words) {
#pragma unroll 2
  for (int64_t at = laneOf(); at < words; at += kWarp)
    storeWhole(to + at, loadWhole<uint4>(from + at));
}

/// Copies rows that leave to where they belong, and new ones to where those
/// were. A warp per position; of several of an id the first.
__global__ void __launch_bounds__(kStoreThreads)
    exchangeRows(CachedRows cached, uint4 *const *batchRows, Placement placement, int64_t count) {
  const int64_t warp = threadInGrid() / kWarp, warps = threadsInGrid() / kWarp;
  for (int64_t i = warp; i < count; i += warps) {
    if (!placement.placed[i])
      continue;
    const int64_t slot = placement.slotOf[i];
    if (placement.leaving[i])
      copyRow(cached.row(slot), cached.hostRows[slot], cached.words);
    copyRow(batchRows[i], cached.row(slot),
            cached.words); // a lane has the same words of both
    __syncwarp();
    if (laneOf() == 0)
      cached.hostRows[slot] = batchRows[i];
  }
}

__global__ void __launch_bounds__(kStoreThreads)
    placeRows(CachedRows cached, uint4 *const *batchRows, const int64_t *slotOf, int64_t count,
              uint4 **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (slotOf[i] >= 0)
      rows[i] = cached.row(slotOf[i]);
    else if (slotOf[i] == kNoRoom)
      rows[i] = batchRows[i];
}

/// Rows that are in the cache are read there.
__global__ void __launch_bounds__(kStoreThreads)
    findCached(CacheTable table, CachedRows cached, const int64_t *ids, const uint8_t *valid,
               int64_t count, uint4 **rows) {
  for (int64_t base = threadInGrid() - laneOf(); base < count; base += threadsInGrid()) {
    const int64_t i = base + laneOf();
    const bool isWanted = i < count && (!valid || valid[i]);
    const int64_t slot = findEntry(table, isWanted ? ids[i] : 0, isWanted).slot;
    if (slot != kNoSlot)
      rows[i] = cached.row(slot);
  }
}

/// Of rows in the cache, where they belong; the others' own addresses.
__global__ void __launch_bounds__(kStoreThreads)
    findHostRows(CachedRows cached, int64_t slots, uint4 *const *rows, int64_t count,
                 const int64_t *counted, uint4 **hostRows) {
  if (counted && *counted < count)
    count = *counted;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const bool isCached = rows[i] >= cached.rows && rows[i] < cached.row(slots);
    hostRows[i] = isCached ? cached.hostRows[(rows[i] - cached.rows) / cached.words] : rows[i];
  }
}

uint4 **wordRows(float **rows) { return reinterpret_cast<uint4 **>(rows); }

CachedRows viewOf(const DeviceArray<float> &rows, const DeviceArray<float *> &hostRows,
                  int64_t stride) {
  return {reinterpret_cast<uint4 *>(rows.data()), wordRows(hostRows.data()), stride / 4};
}

const StoreConfig &checked(const StoreConfig &config, const std::string &name, int64_t rows) {
  if (config.keepsLower())
    throw Error("table '" + name + "' has hot rows and its values in host memory",
                "keep its values on the device, or leave 'hot_after' out");
  if (config.rules.any())
    throw Error("table '" + name + "' has rules about rows and its values in host memory",
                "keep its values on the device, or leave its rules out");
  if (rows < 1 || rows > CacheLimit::kMostRows)
    throw Error("cache '" + name + "' of " + std::to_string(rows) +
                " rows: a cache has from 1 to " + std::to_string(CacheLimit::kMostRows));
  return config;
}

StoreOptions inHostMemory(StoreOptions options) {
  options.values = ValueMemory::host;
  options.cache = {};
  return options;
}

} // namespace

CachedStore::CachedStore(const StoreConfig &config, const std::string &name, int64_t rows,
                         cudaStream_t stream, const StoreOptions &options, CacheScore score)
    : TableStore(config), table(checked(config, name, rows), name, stream, inHostMemory(options)),
      step(options.step), cachedRows(name + ".cached_values"), hostRows(name + ".cached_places"),
      refused(name + ".cache_refused"), cache(name + ".cache", {rows, score}, stream),
      batchRows(name + ".batch_rows"), slotOf(name + ".cache_slots"),
      placed(name + ".cache_placed"), leaving(name + ".cache_leaving"),
      exportedIds(name + ".exported_ids"), identifiedRows(name + ".identified_rows") {
  const int64_t slots = cache.table().slots();
  cachedRows.ensure(slots * table.rowStride(), stream);
  hostRows.ensure(slots, stream);
  refused.ensure(1, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(refused.data(), 0, sizeof(uint32_t), stream));
}

int64_t CachedStore::keyBytes() const {
  return table.keyBytes() + cache.bytes() + cache.table().slots() * sizeof(float *);
}

bool CachedStore::beginsStep() {
  const int64_t now = step ? step->number : 0;
  return std::exchange(lastStep, now) != now;
}

void CachedStore::pointToCached(const int64_t *ids, const uint8_t *valid, int64_t count,
                                float **rows, cudaStream_t stream) const {
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), findCached, cache.table(),
                     viewOf(cachedRows, hostRows, table.rowStride()), ids, valid, count,
                     wordRows(rows));
}

void CachedStore::find(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                       int64_t count, float **rows, int64_t *missing) const {
  table.find(on, ids, valid, count, rows, missing);
  if (count > 0)
    pointToCached(ids, valid, count, rows, streamOf(on));
}

void CachedStore::findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                               int64_t count, float **rows) {
  if (count == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  const int64_t room = capacityBucket(count);
  batchRows.ensure(room, stream);
  slotOf.ensure(room, stream);
  placed.ensure(room, stream);
  leaving.ensure(room, stream);
  const Placement placement{slotOf.data(), placed.data(), leaving.data()};
  table.findOrInsert(on, ids, valid, count, batchRows.data());
  cache.place(ids, valid, count, beginsStep(), placement, {nullptr, refused.data()}, stream);
  const CachedRows cached = viewOf(cachedRows, hostRows, table.rowStride());
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, kWarp), exchangeRows, cached,
                     wordRows(batchRows.data()), placement, count);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), placeRows, cached, wordRows(batchRows.data()),
                     slotOf.data(), count, wordRows(rows));
}

void CachedStore::findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                              int64_t count, int64_t, float **rows, int64_t *) {
  findOrInsert(on, ids, valid, count, rows);
}

void CachedStore::erase(const StoreStream &on, const int64_t *ids, int64_t count) {
  if (count == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  cache.erase(ids, count, slotOf.ensure(capacityBucket(count), stream), {}, stream);
  table.erase(on, ids, count);
}

void CachedStore::clear(const StoreStream &on) {
  cache.clear(streamOf(on));
  table.clear(on);
}

void CachedStore::exportRows(const StoreStream &on, int64_t member, int64_t first, int64_t count,
                             int64_t *ids, float **rows) const {
  const cudaStream_t stream = streamOf(on);
  if (rows && !ids && count > 0)
    ids = exportedIds.ensure(count, stream);
  table.exportRows(on, member, first, count, ids, rows);
  if (!rows || count <= 0)
    return;
  pointToCached(ids, nullptr, count, rows, stream);
  waitForStream(stream);
}

void CachedStore::identify(const StoreStream &on, float *const *rows, int64_t count,
                           const int64_t *counted, uint64_t *identities) const {
  if (count == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  float **found = identifiedRows.ensure(capacityBucket(count), stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), findHostRows,
                     viewOf(cachedRows, hostRows, table.rowStride()), cache.table().slots(),
                     wordRows(const_cast<float **>(rows)), count, counted, wordRows(found));
  table.identify(on, found, count, counted, identities);
}

int64_t CachedStore::uncached(cudaStream_t stream) const {
  uint32_t count = 0;
  GENREC_CUDA_CHECK(
      cudaMemcpyAsync(&count, refused.data(), sizeof(count), cudaMemcpyDeviceToHost, stream));
  waitForStream(stream);
  return count;
}

} // namespace genrec::rt::cuda
