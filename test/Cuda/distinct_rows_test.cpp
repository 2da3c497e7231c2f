//===- distinct_rows_test.cpp - Distinct touched rows on a device ---------===//

#include "added_by_pieces.h"
#include "device_copy.h"

#include "../../runtime/embedding/cuda/distinct_rows.h"

#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

// A gradient touches its row wherever its only nonzero column is: in the first 32, which is where
// the search may end, and behind them.
TEST(DistinctRows, OneColumnTouchesARow) {
  constexpr int64_t kDim = 70, kEntries = 7;
  const std::vector<int64_t> columns = {0, 31, 32, -1, 63, 69, 64};
  std::vector<float> gradients(kEntries * kDim);
  for (size_t entry = 0; entry < columns.size(); ++entry)
    if (columns[entry] >= 0)
      gradients[entry * kDim + static_cast<size_t>(columns[entry])] = 1;
  Copy<float> onDevice(gradients), table(std::vector<float>((kEntries + 1) * kDim));
  std::vector<float *> handles;
  for (int64_t entry = 0; entry < kEntries; ++entry)
    handles.push_back(table.data() + (entry + 1) * kDim);
  Copy<float *> rowsOf(handles), rows{std::vector<float *>(kEntries)};

  genrec_domain entries = {}, touched = {};
  entries.count = entries.capacity = touched.capacity = kEntries;
  Copy<genrec_domain> entriesOnDevice{std::vector<genrec_domain>{entries}},
      touchedOnDevice{std::vector<genrec_domain>{touched}};
  entries.device = entriesOnDevice.data();
  touched.device = touchedOnDevice.data();
  const genrec_domain *domain = &entries;
  float *const *handle = rowsOf.data();
  const float *gradient = onDevice.data();
  const int64_t stride = kDim, *parents = nullptr;
  const DeviceGradients from{0,       1,        &domain, &handle, &gradient,
                             &stride, &parents, kDim,    false,   table.data()};
  Copy<int64_t> segments{std::vector<int64_t>(16 + 3 * kEntries + 2)};
  SegmentReduction sums("test");
  DistinctRows distinct;
  distinct.run(from, sums, &touched, rows.data(), segments.data(), testStream());

  ASSERT_EQ(touchedOnDevice.fetch()[0].count, kEntries - 1);
  handles.erase(handles.begin() + 3);
  std::vector<float *> found = rows.fetch();
  found.resize(handles.size());
  EXPECT_EQ(found, handles);
}

/// Gradients of rows of a domain above, read by its parents; a row with more of them than are added
/// one by one, and one that is touched by zeros.
TEST(DistinctRows, SumsOfManyGradientsOfParents) {
  constexpr int64_t kDim = 3, kEntries = kMostSummed + 40, kParents = 9;
  std::vector<float> gradients(kParents * kDim);
  for (size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = static_cast<float>(i % 7) / 7 - 0.4f;
  std::vector<int64_t> parents;
  Copy<float> onDevice(gradients), table(std::vector<float>(4 * kDim));
  std::vector<float *> handles;
  for (int64_t entry = 0; entry < kEntries; ++entry) {
    parents.push_back(entry * 4 % kParents);
    handles.push_back(table.data() + (entry % 50 == 7 ? 2 : 1) * kDim);
  }
  Copy<float *> rowsOf(handles), rows{std::vector<float *>(kEntries)};
  Copy<int64_t> parentsOf(parents);
  genrec_domain entries = {}, touched = {};
  entries.count = entries.capacity = touched.capacity = kEntries;
  Copy<genrec_domain> entriesOnDevice{std::vector<genrec_domain>{entries}},
      touchedOnDevice{std::vector<genrec_domain>{touched}};
  entries.device = entriesOnDevice.data();
  touched.device = touchedOnDevice.data();
  const genrec_domain *domain = &entries;
  float *const *handle = rowsOf.data();
  const float *gradient = onDevice.data();
  const int64_t stride = kDim, *parent = parentsOf.data();
  const DeviceGradients from{0,       1,       &domain, &handle, &gradient,
                             &stride, &parent, kDim,    false,   table.data()};
  Copy<int64_t> segments{std::vector<int64_t>(16 + 3 * kEntries + 2)};
  Copy<float> sums(std::vector<float>(kEntries * kDim));
  SegmentReduction reduction("test");
  DistinctRows distinct;
  distinct.run(from, reduction, &touched, rows.data(), segments.data(), testStream());
  DistinctRows::sum(&touched, segments.data(), kDim, sums.data(), testStream());
  ASSERT_EQ(touchedOnDevice.fetch()[0].count, 2);
  const std::vector<float> got = sums.fetch();
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t c = 0; c < kDim; ++c) {
      std::vector<std::vector<float>> terms;
      for (int64_t entry = 0; entry < kEntries; ++entry)
        if (handles[static_cast<size_t>(entry)] == table.data() + (row + 1) * kDim)
          terms.push_back(
              {gradients[static_cast<size_t>(parents[static_cast<size_t>(entry)] * kDim + c)]});
      const auto add = [](const std::vector<std::vector<float>> &items) {
        float sum = 0;
        for (const std::vector<float> &item : items)
          sum += item[0];
        return std::vector<float>{sum};
      };
      EXPECT_EQ(got[static_cast<size_t>(row * kDim + c)], addedByPieces(terms, add)[0])
          << row << " " << c;
    }
}

} // namespace
} // namespace genrec::rt::cuda::test
