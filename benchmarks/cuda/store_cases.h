//===- store_cases.h - What ours and the peer's table are given --*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_CUDA_STORE_CASES_H
#define GENREC_BENCHMARKS_CUDA_STORE_CASES_H

#include "timing.h"

namespace genrec::bench {

/// As HierarchicalKV publishes its figures: a table of 128 Mi slots, batches of a mebi of ids.
constexpr int64_t kStoreSlots = 128 * kMi, kStoreBatch = kMi;
/// Calls that insert are few, so that they hardly change the load.
constexpr int kInsertRepeats = 6;

struct StoreCase {
  int64_t dim;
  double load;

  int64_t rows() const { return static_cast<int64_t>(load * static_cast<double>(kStoreSlots)); }
  std::string text() const {
    return ", dim " + std::to_string(dim) + ", load " + std::to_string(load).substr(0, 4);
  }
  static int64_t id(int64_t number) { return number * 7919 + 1; }
  /// What the table is filled with.
  std::vector<int64_t> filled() const {
    std::vector<int64_t> ids(static_cast<size_t>(rows()));
    for (int64_t i = 0; i < rows(); ++i)
      ids[static_cast<size_t>(i)] = id(i);
    return ids;
  }
  /// A batch of distinct ids that the table was given, in no order that it could profit from.
  std::vector<int64_t> known() const {
    std::vector<int64_t> ids(static_cast<size_t>(kStoreBatch));
    for (int64_t i = 0; i < kStoreBatch; ++i)
      ids[static_cast<size_t>(i)] = id((i * 1000003 + 17) % rows());
    return ids;
  }
  /// Batches of which every eighth id is new; one per call, as an id is new once.
  std::vector<int64_t> mixed() const {
    std::vector<int64_t> ids, first = known();
    for (int64_t call = 0; call < kInsertRepeats + 2; ++call)
      for (int64_t i = 0; i < kStoreBatch; ++i)
        ids.push_back(i % 8 ? first[static_cast<size_t>(i)] : id(rows() + call * kStoreBatch + i));
    return ids;
  }
};

/// 1.0 is more than a table with room for as many ids may hold: some buckets are full before
/// others.
constexpr double kLoads[] = {0.5, 1.0, 0.75}; // what something is asked of comes first
constexpr int64_t kDims[] = {8, 32, 64};

} // namespace genrec::bench

#endif // GENREC_BENCHMARKS_CUDA_STORE_CASES_H
