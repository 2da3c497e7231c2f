//===- cache_keys.h - Places ids in a cache ----------------------*- C++ -*-===//
//
// The host's side of cache_table.h. A call finds and marks what the table has,
// orders the other ids by bucket and position, and gives each bucket to one warp:
// the order of first appearance holds within a bucket, and buckets do not know of
// each other, so the result is that of placing one id after another.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_CACHE_KEYS_H
#define GENREC_RT_CUDA_CACHE_KEYS_H

#include "genrec_rt/cuda/cache_table.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/ranks.h"

namespace genrec::rt::cuda {

/// What a call of the rule makes of its ids; arrays of the device with room for them.
struct Placement {
  int64_t *slotOf = nullptr;  ///< kNoRoom: refused; kNoSlot: not a valid one
  uint8_t *placed = nullptr;  ///< 1 for the first position of an id that the cache had not got
  uint8_t *leaving = nullptr; ///< 1 where that id took the slot of one that leaves
};

/// What calls add to, on the device.
struct CacheCounts {
  uint32_t *rows = nullptr; ///< that the cache holds; null: nobody counts
  uint32_t *refused = nullptr;
};

class CacheKeys {
public:
  CacheKeys(const std::string &name, const CacheLimit &limit, cudaStream_t stream);

  /// As the kernels take it.
  const CacheTable &table() const { return cache; }
  int64_t bytes() const;

  /// One call of the rule, or of a step's calls a later one, which is as if the ids were behind
  /// those of the calls before.
  void place(const int64_t *ids, const uint8_t *valid, int64_t count, bool beginsStep,
             const Placement &placement, const CacheCounts &counts, cudaStream_t stream);
  /// Forgets ids; `slotOf` has room for them.
  void erase(const int64_t *ids, int64_t count, int64_t *slotOf, const CacheCounts &counts,
             cudaStream_t stream);
  /// As new.
  void clear(cudaStream_t stream);

private:
  void startCall(cudaStream_t stream);

  CacheTable cache;
  DeviceArray<uint8_t> digests;
  DeviceArray<int64_t> keys;
  DeviceArray<uint8_t> marks, scores;
  DeviceArray<Word> counts;
  // Of the current call.
  DeviceArray<uint8_t> missing;
  DeviceArray<uint32_t> ranks, positions, buckets, order, missingCount;
  FlagRanks flagRanks;
  StableOrder byBucket;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_CACHE_KEYS_H
