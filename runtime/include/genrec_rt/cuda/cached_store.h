//===- cached_store.h - A table in host memory, cached ------------*- C++ -*-===//
//
// A table with more rows than the device has memory for. Ids are on the device,
// rows (values and optimizer states) in pinned memory of the host; a cache of
// rows (cache_shape.h) on the device holds those that steps use. A step finds
// its rows: what is not in the cache is copied into it, and what that evicts is
// copied back, by one kernel, over the bus. An id for which the cache has no
// room in this step (all rows of its bucket are this step's) gets its row in
// host memory, which kernels read and write in place. So results are those of a
// table on the device, to the bit.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_CACHED_STORE_H
#define GENREC_RT_CUDA_CACHED_STORE_H

#include "genrec_rt/cuda/store.h"

namespace genrec::rt::cuda {

class CachedStore {
public:
  /// `cachedRows` rows are kept on the device, in whole buckets: memory for up
  /// to 127 more than asked for is taken. The table may not have rules about
  /// rows.
  CachedStore(const StoreConfig &config, const std::string &name, int64_t cachedRows,
              cudaStream_t stream, RowElement element = RowElement::f32,
              CacheScore score = CacheScore::recency);

  /// As EmbeddingStore has them. Rows are where they are until the next call of
  /// findOrInsert.
  void find(const int64_t *ids, const uint8_t *valid, int64_t count, float **rows, int64_t *missing,
            cudaStream_t stream) const;
  void findOrInsert(const int64_t *ids, const uint8_t *valid, int64_t count, float **rows,
                    cudaStream_t stream);
  void erase(const int64_t *ids, int64_t count, cudaStream_t stream);
  /// Copies every cached row back, so that the host may read all rows once
  /// `stream` is done. The cache keeps them.
  void flush(cudaStream_t stream);
  /// Ids and rows from place `first` on, by ascending row number; rows are host memory. Flushes and
  /// waits.
  void exportRows(int64_t first, int64_t count, int64_t *ids, float **rows, cudaStream_t stream) {
    flush(stream);
    table.exportRows(onStream(stream), 0, first, count, ids, rows);
  }
  void clear(cudaStream_t stream);

  int64_t size(cudaStream_t stream) { return table.size(onStream(stream)); }
  int64_t rowStride() const { return table.rowStride(); }
  /// Bytes of rows on the device.
  int64_t cachedBytes() const { return cachedRows.capacity() * 4; }
  /// Entries so far that got rows in host memory for want of room in the cache;
  /// waits.
  int64_t uncached(cudaStream_t stream) const;

private:
  KeyTable allocateKeys(int64_t buckets, cudaStream_t stream);

  EmbeddingStore table; ///< rows in host memory
  DeviceArray<uint8_t> digests;
  DeviceArray<int64_t> keys;
  DeviceArray<uint32_t> marks;   ///< KeyTable::rows: which slots are new in a call
  DeviceArray<float> cachedRows; ///< by slot
  DeviceArray<float *> hostRows; ///< by slot: where a cached row belongs
  DeviceArray<uint32_t> refused;
  CacheKeys cache;
  // Of the current call.
  DeviceArray<float *> batchRows;
  DeviceArray<int64_t> slotOf;
  DeviceArray<uint8_t> leaving;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_CACHED_STORE_H
