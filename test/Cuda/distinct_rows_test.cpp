//===- distinct_rows_test.cpp - Distinct touched rows on a device ---------===//

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

} // namespace
} // namespace genrec::rt::cuda::test
