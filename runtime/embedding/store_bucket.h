//===- store_bucket.h - A bucket of the host's store -------------*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_STORE_BUCKET_H
#define GENREC_RT_EMBEDDING_STORE_BUCKET_H

#include "genrec_rt/store.h"

#include <bit>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace genrec::rt {

/// A cache line of slots. An empty slot has no address (its id is 0, which is an id as others
/// are). Bit c of the filter, 32 bits in the addresses' unused bytes: an id whose hash is of
/// class c found all slots taken and went on.
struct alignas(64) EmbeddingStore::Bucket {
  /// Addresses take less than 56 bits; the bytes above them are the bucket's filter.
  static constexpr int kFilterShift = 56;
  static constexpr uint64_t kAddress = (uint64_t(1) << kFilterShift) - 1;

  /// The group of a hash among the 32 that a bucket's filter tells apart.
  static uint64_t classOf(uint64_t hash) { return hash >> 59; }

  int64_t ids[kSlots];
  uint64_t taggedRows[kSlots];

  float *row(int64_t slot) const { return reinterpret_cast<float *>(taggedRows[slot] & kAddress); }
  void setRow(int64_t slot, const float *row) {
    taggedRows[slot] = (taggedRows[slot] & ~kAddress) | reinterpret_cast<uintptr_t>(row);
  }
  void put(int64_t slot, int64_t id, const float *row) {
    ids[slot] = id;
    setRow(slot, row);
  }

  bool isPassedBy(uint64_t hash) const {
    uint64_t number = classOf(hash);
    return taggedRows[number / 8] >> (kFilterShift + number % 8) & 1;
  }
  void letPass(uint64_t hash) {
    uint64_t number = classOf(hash);
    taggedRows[number / 8] |= uint64_t(1) << (kFilterShift + number % 8);
  }
  bool isPassed() const {
    return (taggedRows[0] | taggedRows[1] | taggedRows[2] | taggedRows[3]) >> kFilterShift;
  }

  /// The slot of `id`, -1 where there is none.
  int64_t slotOf(int64_t id) const {
    for (uint32_t mask = matching(id); mask; mask &= mask - 1)
      if (int64_t slot = std::countr_zero(mask); row(slot))
        return slot;
    return -1;
  }
  /// The first empty slot, -1 where there is none.
  int64_t emptySlot() const {
#if defined(__AVX2__)
    __m256i words = _mm256_load_si256(reinterpret_cast<const __m256i *>(taggedRows));
    __m256i address = _mm256_and_si256(words, _mm256_set1_epi64x(static_cast<int64_t>(kAddress)));
    __m256i empty = _mm256_cmpeq_epi64(address, _mm256_setzero_si256());
    auto mask = static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(empty)));
    return mask ? std::countr_zero(mask) : -1;
#else
    for (int64_t slot = 0; slot < kSlots; ++slot)
      if (!row(slot))
        return slot;
    return -1;
#endif
  }

private:
  uint32_t matching(int64_t id) const {
#if defined(__AVX2__)
    __m256i equal = _mm256_cmpeq_epi64(_mm256_load_si256(reinterpret_cast<const __m256i *>(ids)),
                                       _mm256_set1_epi64x(id));
    return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
#else
    uint32_t mask = 0;
    for (int64_t slot = 0; slot < kSlots; ++slot)
      mask |= static_cast<uint32_t>(ids[slot] == id) << slot;
    return mask;
#endif
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_STORE_BUCKET_H
