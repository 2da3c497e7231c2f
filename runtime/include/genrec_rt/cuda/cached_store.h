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
// Addresses of rows hold until the next step that inserts: a step is what
// StoreStep counts; without one, all calls are of one step. A step's rows may be
// written until then, so the next step's lookups wait for that.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_CACHED_STORE_H
#define GENREC_RT_CUDA_CACHED_STORE_H

#include "genrec_rt/cuda/store.h"

namespace genrec::rt::cuda {

class CachedStore final : public TableStore {
public:
  /// `cachedRows` rows are kept on the device, in whole buckets: memory for up
  /// to 127 more than asked for is taken. The table may not have rules about
  /// rows. Of `options`, `step` is taken.
  CachedStore(const StoreConfig &config, const std::string &name, int64_t cachedRows,
              cudaStream_t stream, const StoreOptions &options = {},
              CacheScore score = CacheScore::recency);

  const ArgumentMemory &arguments() const override { return deviceMemory(); }
  /// Of rows that the cache has no room for: pinned memory of the host, which kernels reach, too.
  MemoryKind rowMemory() const override { return MemoryKind::device; }

  /// Rows that are not in the cache are found in host memory, and stay there.
  void find(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
            float **rows, int64_t *missing) const override;
  void findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows) override;
  /// Without rules: as findOrInsert.
  void findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                   int64_t step, float **rows, int64_t *waits) override;
  void evict(const StoreStream &, int64_t, int64_t) override {} // no rules, nothing to do
  void erase(const StoreStream &on, const int64_t *ids, int64_t count) override;
  void clear(const StoreStream &on) override;

  int64_t size(const StoreStream &on) const override { return table.size(on); }
  int64_t memberSize(const StoreStream &on, int64_t member) const override {
    return table.memberSize(on, member);
  }
  /// Rows are where they are now: in the cache or in host memory.
  void exportRows(const StoreStream &on, int64_t member, int64_t first, int64_t count, int64_t *ids,
                  float **rows) const override;
  void identify(const StoreStream &on, float *const *rows, int64_t count, const int64_t *counted,
                uint64_t *identities) const override;
  void readRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                int64_t width, float *to) const override {
    table.readRows(on, rows, count, offset, width, to);
  }
  void writeRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                 int64_t width, const float *from) override {
    table.writeRows(on, rows, count, offset, width, from);
  }

  TableStore *waiting() const override { return nullptr; }
  int64_t rowStride() const override { return table.rowStride(); }
  int64_t sightingOffset() const override { return table.sightingOffset(); }
  int64_t keyBytes() const override;
  /// Of rows in host memory and of those in the cache.
  int64_t valueBytes() const override { return table.valueBytes() + cachedBytes(); }

  int64_t slots() const { return table.slots(); }
  /// Bytes of rows on the device.
  int64_t cachedBytes() const { return cachedRows.capacity() * 4; }
  /// Entries so far that got rows in host memory for want of room in the cache;
  /// waits.
  int64_t uncached(cudaStream_t stream) const;

private:
  /// Addresses of rows that the cache has take the place of those in host memory.
  void pointToCached(const int64_t *ids, const uint8_t *valid, int64_t count, float **rows,
                     cudaStream_t stream) const;
  /// Whether the rows of the calls before may leave the cache.
  bool beginsStep();

  EmbeddingStore table; ///< rows in host memory
  const StoreStep *const step;
  int64_t lastStep = -1;
  DeviceArray<float> cachedRows; ///< by slot
  DeviceArray<float *> hostRows; ///< by slot: where a cached row belongs
  DeviceArray<uint32_t> refused;
  CacheKeys cache;
  // Of the current call.
  DeviceArray<float *> batchRows;
  DeviceArray<int64_t> slotOf;
  DeviceArray<uint8_t> placed, leaving;
  mutable DeviceArray<int64_t> exportedIds;
  mutable DeviceArray<float *> identifiedRows; ///< in host memory
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_CACHED_STORE_H
