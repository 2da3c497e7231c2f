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

class CacheKeys {
public:
  /// `keys` has 128 slots for every bucket of CacheShape(limit.rows), all of them empty.
  CacheKeys(const std::string &name, const CacheLimit &limit, const KeyTable &keys,
            cudaStream_t stream);

  /// As the kernels take it.
  const CacheTable &table() const { return cache; }
  int64_t bytes() const;

  /// One call of the rule, or of a step's calls a later one, which is as if the ids were behind those
  /// of the calls before: slotOf[i] = the slot of ids[i], kNoRoom where it was refused, kNoSlot
  /// where it is not valid. New rows have row number kPending | i, i the first position of their
  /// id; where they took a row from one that leaves they keep its number, and leaving[i] is 1,
  /// else 0. Adds the number of refused ids to *refused. All arrays are the device's.
  void place(const int64_t *ids, const uint8_t *valid, int64_t count, bool beginsStep,
             int64_t *slotOf, uint8_t *leaving, uint32_t *refused, cudaStream_t stream);

  /// As new; the digests are the caller's to empty.
  void clear(cudaStream_t stream);

private:
  void startCall(cudaStream_t stream);

  CacheTable cache;
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
