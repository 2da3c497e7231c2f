//===- store_export.cu - Rows of a store on a device, in and out ----------===//

#include "genrec_rt/cuda/store.h"

#include "row_draws.h"
#include "store_shape.h"

namespace genrec::rt::cuda {

namespace {

/// flags[number]: the row is in use, by the member that keys of it have above `keyBits`, where that
/// is not -1.
__global__ void __launch_bounds__(kStoreThreads)
    flagStored(KeyTable table, RowAddresses addresses, int64_t member, int64_t keyBits,
               int64_t numbers, uint8_t *flags) {
  for (int64_t base = threadInGrid() - laneOf(); base < numbers; base += threadsInGrid()) {
    const int64_t number = base + laneOf();
    const int64_t key = number < numbers ? *addresses.id(static_cast<uint32_t>(number)) : 0;
    const bool isWanted = number < numbers && (member < 0 || key >> keyBits == member);
    const Entry found = findEntry(table, key, isWanted);
    if (number < numbers)
      flags[number] = found.slot != kNoSlot && found.row == static_cast<uint32_t>(number);
  }
}

/// The same of a cache, whose rows are its slots.
__global__ void __launch_bounds__(kStoreThreads)
    flagSlots(CacheTable table, int64_t member, int64_t keyBits, int64_t numbers, uint8_t *flags) {
  for (int64_t slot = threadInGrid(); slot < numbers; slot += threadsInGrid())
    flags[slot] =
        table.digests[slot] != kEmpty && (member < 0 || table.keys[slot] >> keyBits == member);
}

__global__ void __launch_bounds__(kStoreThreads)
    writeStored(RowAddresses addresses, int64_t numbers, const uint8_t *flags,
                const uint32_t *ranks, int64_t *ids, float **rows) {
  for (int64_t number = threadInGrid(); number < numbers; number += threadsInGrid())
    if (flags[number]) {
      ids[ranks[number]] = *addresses.id(static_cast<uint32_t>(number));
      rows[ranks[number]] = addresses.row(static_cast<uint32_t>(number));
    }
}

/// to[i][c] = rows[i][offset + c]
__global__ void __launch_bounds__(kStoreThreads)
    gatherColumns(float *const *rows, int64_t count, int64_t offset, int64_t width, float *to) {
  for (int64_t i = threadInGrid(); i < count * width; i += threadsInGrid())
    to[i] = rows[i / width][offset + i % width];
}

/// rows[i][offset + c] = from[i][c]
__global__ void __launch_bounds__(kStoreThreads)
    scatterColumns(float *const *rows, int64_t count, int64_t offset, int64_t width,
                   const float *from) {
  for (int64_t i = threadInGrid(); i < count * width; i += threadsInGrid())
    rows[i / width][offset + i % width] = from[i];
}

/// The identity of the row at an address: of its table's name and its id, as StoreConfig has it.
/// Places: the number of chunks, then where they begin, sorted. The number of rows is not asked:
/// lookups of the next step, on a stream of their own, may be adding to it.
__global__ void __launch_bounds__(kStoreThreads)
    identifyRows(const ChunkPlace *places, RowAddresses addresses, StoreDraws draws,
                 float *const *rows, int64_t count, const int64_t *counted, uint64_t *identities) {
  if (counted && *counted < count)
    count = *counted;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    int64_t low = 0, high = places->number; // chunks before `low` begin at the row or before it
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (places[1 + middle].begin <= rows[i])
        low = middle + 1;
      else
        high = middle;
    }
    identities[i] = 0;
    if (low == 0)
      continue;
    const ChunkPlace chunk = places[low];
    const int64_t inChunk = (rows[i] - chunk.begin) / addresses.stride;
    const int64_t number = (chunk.number << addresses.chunkShift) + inChunk;
    if (inChunk >= addresses.chunkRows)
      continue;
    const int64_t key = *addresses.id(static_cast<uint32_t>(number));
    identities[i] =
        kernels::splitmix64(draws.of(key).nameHash + 0x9E3779B97F4A7C15ull * (draws.idOf(key) + 1));
  }
}

} // namespace

void EmbeddingStore::identify(const StoreStream &on, float *const *rows, int64_t count,
                              const int64_t *counted, uint64_t *identities) const {
  if (count == 0)
    return;
  const StoreDraws from{draws.data(), config.keyBits, !config.members.empty()};
  GENREC_CUDA_LAUNCH(streamOf(on), shapeOf(count, 1), identifyRows, placesOnDevice.data(),
                     addresses, from, rows, count, counted, identities);
}

void EmbeddingStore::flagInUse(int64_t member, int64_t numbers, uint8_t *inUse,
                               cudaStream_t stream) const {
  if (cache)
    GENREC_CUDA_LAUNCH(stream, shapeOf(numbers, 1), flagSlots, cache->table(), member,
                       config.keyBits, numbers, inUse);
  else
    GENREC_CUDA_LAUNCH(stream, shapeOf(numbers, 1), flagStored, table, addresses, member,
                       config.keyBits, numbers, inUse);
}

int64_t EmbeddingStore::list(int64_t member, cudaStream_t stream) const {
  if (config.members.empty())
    member = -1;
  if (listing.version == version && listing.member == member)
    return listing.count;
  const int64_t numbers = cache ? slots() : readCounters(stream).rows;
  listing.version = version;
  listing.member = member;
  listing.count = 0;
  if (numbers == 0)
    return 0;
  flags.ensure(numbers, stream);
  ranks.ensure(numbers, stream);
  listing.ids.ensure(numbers, stream);
  listing.rows.ensure(numbers, stream);
  flagInUse(member, numbers, flags.data(), stream);
  flagRanks.run(flags.data(), numbers, ranks.data(), &counters.data()->fresh, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(numbers, 1), writeStored, addresses, numbers, flags.data(),
                     ranks.data(), listing.ids.data(), listing.rows.data());
  return listing.count = readCounters(stream).fresh;
}

int64_t EmbeddingStore::memberSize(const StoreStream &on, int64_t member) const {
  return config.members.empty() ? size(on) : list(member, streamOf(on));
}

void EmbeddingStore::exportRows(const StoreStream &on, int64_t member, int64_t first, int64_t count,
                                int64_t *ids, float **rows) const {
  const cudaStream_t stream = streamOf(on);
  list(member, stream);
  auto copy = [&](auto *to, const auto *from) {
    if (to && count > 0)
      GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from + first, static_cast<size_t>(count) * sizeof(*to),
                                        cudaMemcpyDeviceToDevice, stream));
  };
  copy(ids, listing.ids.data());
  copy(rows, listing.rows.data());
  waitForStream(stream);
}

void EmbeddingStore::readRows(const StoreStream &on, float *const *rows, int64_t count,
                              int64_t offset, int64_t width, float *to) const {
  if (count == 0 || width == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  float *gathered = transfer.ensure(count * width, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count * width, 1), gatherColumns, rows, count, offset, width,
                     gathered);
  deviceMemory().copyOut(to, gathered, count * width * static_cast<int64_t>(sizeof(float)), on);
}

void EmbeddingStore::writeRows(const StoreStream &on, float *const *rows, int64_t count,
                               int64_t offset, int64_t width, const float *from) {
  if (count == 0 || width == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  float *scattered = transfer.ensure(count * width, stream);
  deviceMemory().copyIn(scattered, from, count * width * static_cast<int64_t>(sizeof(float)), on);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count * width, 1), scatterColumns, rows, count, offset, width,
                     scattered);
  waitForStream(stream);
}

} // namespace genrec::rt::cuda
