//===- cache_reference.h - What a cache of rows must do -----------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_CACHE_REFERENCE_H
#define GENREC_TEST_CUDA_CACHE_REFERENCE_H

#include "genrec_rt/cuda/cache_shape.h"
#include "genrec_rt/identity.h"

#include <map>
#include <set>
#include <vector>

namespace genrec::rt::test {

using cuda::CacheLimit;
using cuda::CacheScore;
using cuda::CacheShape;

/// The rule of cache_shape.h over maps, one id after another: the oracle of the tests.
class CacheReference {
public:
  CacheReference(int64_t rows, CacheScore score)
      : shape(rows), score(score), buckets(static_cast<size_t>(shape.buckets())) {}

  /// One call; returns what was evicted. Refused ids are those it does not have afterwards.
  std::vector<int64_t> insert(const std::vector<int64_t> &ids) {
    ++call;
    std::vector<int64_t> evicted;
    for (int64_t id : ids)
      if (has(id))
        bucketOf(id)[id].call = call;
    for (int64_t id : ids)
      if (!has(id))
        place(id, evicted);
    for (int64_t id : ids)
      if (has(id))
        ++bucketOf(id)[id].count;
    return evicted;
  }
  void erase(int64_t id) { bucketOf(id).erase(id); }
  bool has(int64_t id) { return bucketOf(id).count(id) != 0; }
  std::set<int64_t> ids() const {
    std::set<int64_t> all;
    for (const Bucket &bucket : buckets)
      for (const auto &[id, entry] : bucket)
        all.insert(id);
    return all;
  }

private:
  struct Entry {
    int64_t call, count;
  };
  using Bucket = std::map<int64_t, Entry>;

  static uint64_t hash(int64_t id) { return splitMix64(static_cast<uint64_t>(id)); }
  size_t numberOf(int64_t id) const { return static_cast<size_t>(shape.bucketOf(hash(id))); }
  Bucket &bucketOf(int64_t id) { return buckets[numberOf(id)]; }

  void place(int64_t id, std::vector<int64_t> &evicted) {
    Bucket &bucket = bucketOf(id);
    if (static_cast<int64_t>(bucket.size()) ==
        shape.bucketRows(static_cast<int64_t>(numberOf(id)))) {
      auto scoreOf = [&](const Bucket::value_type &row) {
        return std::pair{score == CacheScore::recency ? row.second.call : row.second.count,
                         hash(row.first)};
      };
      auto least = bucket.end();
      for (auto row = bucket.begin(); row != bucket.end(); ++row)
        if (row->second.call != call && (least == bucket.end() || scoreOf(*row) < scoreOf(*least)))
          least = row;
      if (least == bucket.end())
        return;
      evicted.push_back(least->first);
      bucket.erase(least);
    }
    bucket[id] = {call, 0};
  }

  CacheShape shape;
  CacheScore score;
  std::vector<Bucket> buckets;
  int64_t call = 0;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_CUDA_CACHE_REFERENCE_H
