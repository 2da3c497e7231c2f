//===- cache_shape.h - Which row leaves a cache ------------------*- C++ -*-===//
//
// A cache of rows has room for n rows, and where that is taken the row with the
// lowest score of its bucket is evicted at once. (A bounded table, row_rules.h, looks
// at all of its rows at the end of a step; a cache never looks further than a
// bucket.) Ids are spread over buckets of at most 128 rows by their hash. The rule:
//
//   - One call that inserts is one step. Rows that it finds or inserts stay, so
//     that a row found forward is still there at its update.
//   - New ids are placed in the order of their first appearance: into free room of
//     their bucket, else in place of the row of the bucket that has the lowest
//     score among those this call has not touched. The new id takes that row.
//   - Of equal scores the row leaves whose id has the least splitMix64.
//   - Where the call has touched all rows of a full bucket, the id is refused: its
//     row is null.
//   - Scores: recency, the call that last inserted or touched the row; frequency, how
//     often its id has occurred in such calls. Searches without inserting touch nothing.
//
// So which rows a cache has depends on n, on the ids and on their order by calls, on
// nothing else. Up to n = 128 there is one bucket, and the lowest score of all leaves.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_CACHE_SHAPE_H
#define GENREC_RT_CUDA_CACHE_SHAPE_H

#include <cstdint>

namespace genrec::rt::cuda {

/// What a row's score is.
enum class CacheScore : int32_t { recency, frequency };

/// What makes a store a cache.
struct CacheLimit {
  static constexpr int64_t kMostRows = (int64_t(1) << 31) - 1;

  int64_t rows = 0; ///< 1 to kMostRows; 0: the store is none, and grows
  CacheScore score = CacheScore::recency;
};

/// The buckets of a cache of `rows` rows, 1 to CacheLimit::kMostRows.
class CacheShape {
public:
  static constexpr int64_t kMostBucketRows = 128;

  CacheShape() = default;
  constexpr explicit CacheShape(int64_t rows)
      : count((rows + kMostBucketRows - 1) / kMostBucketRows), each(rows / count),
        larger(rows % count) {}

  constexpr int64_t buckets() const { return count; }
  /// From bits 24 to 55 of splitMix64 of the id.
  constexpr int64_t bucketOf(uint64_t hash) const {
    return static_cast<int64_t>((hash >> 24 & 0xFFFFFFFFu) * static_cast<uint64_t>(count) >> 32);
  }
  /// Room of a bucket; the rooms add up to the rows of the cache.
  constexpr int64_t bucketRows(int64_t bucket) const { return each + (bucket < larger); }

private:
  int64_t count = 0, each = 0, larger = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_CACHE_SHAPE_H
