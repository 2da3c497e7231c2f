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

/// The sums of the gradients of each row; `rows` gets the rows, as many as `touched` says then.
std::vector<float> addUp(const DeviceGradients &from, int64_t dim, genrec_domain &touched,
                         Copy<float *> &rows) {
  const auto entries = static_cast<size_t>(touched.capacity);
  Copy<int64_t> segments{std::vector<int64_t>(16 + 3 * entries + 2)};
  Copy<float> sums(std::vector<float>(entries * static_cast<size_t>(dim)));
  SegmentReduction reduction("test");
  DistinctRows distinct;
  distinct.run(from, reduction, &touched, rows.data(), segments.data(), testStream());
  DistinctRows::sum(&touched, segments.data(), dim, sums.data(), testStream());
  return sums.fetch();
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
  const std::vector<float> got = addUp(from, kDim, touched, rows);
  ASSERT_EQ(touchedOnDevice.fetch()[0].count, 2);
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

/// Parts that have room for one entry, for none and for two: rows by part, and their sums.
TEST(DistinctRows, OfPartsWithRoomForOneEntry) {
  constexpr int64_t kDim = 2, kParts = 4, kCapacities[kParts] = {1, 0, 2, 1}, kAll = 4;
  const std::vector<float> gradients = {1, 2, 10, 20, 100, 200, 1000, 2000};
  Copy<float> onDevice(gradients), table(std::vector<float>(4 * kDim));
  const auto rowOf = [&](int64_t row) { return table.data() + row * kDim; };
  Copy<float *> rowsOf({rowOf(3), rowOf(1), rowOf(3), rowOf(2)}), rows{std::vector<float *>(kAll)};
  std::vector<genrec_domain> entries(kParts);
  for (size_t part = 0; part < kParts; ++part)
    entries[part].count = entries[part].capacity = kCapacities[part];
  Copy<genrec_domain> entriesOnDevice(entries),
      touchedOnDevice{std::vector<genrec_domain>{genrec_domain{}}};
  genrec_domain touched = {};
  touched.capacity = kAll;
  touched.device = touchedOnDevice.data();
  const genrec_domain *domains[kParts];
  float *const *handles[kParts];
  const float *gradientsOf[kParts];
  const int64_t strides[kParts] = {kDim, kDim, kDim, kDim}, *parents[kParts] = {};
  for (int64_t part = 0, first = 0; part < kParts; first += kCapacities[part++]) {
    entries[static_cast<size_t>(part)].device = entriesOnDevice.data() + part;
    domains[part] = &entries[static_cast<size_t>(part)];
    handles[part] = rowsOf.data() + first;
    gradientsOf[part] = onDevice.data() + first * kDim;
  }
  const DeviceGradients from{0,       kParts,  domains, handles, gradientsOf,
                             strides, parents, kDim,    false,   table.data()};
  std::vector<float> added = addUp(from, kDim, touched, rows);
  ASSERT_EQ(touchedOnDevice.fetch()[0].count, 3);
  std::vector<float *> found = rows.fetch();
  found.resize(3);
  EXPECT_EQ(found, (std::vector<float *>{rowOf(3), rowOf(1), rowOf(2)}));
  added.resize(3 * kDim);
  EXPECT_EQ(added, (std::vector<float>{101, 202, 10, 20, 1000, 2000}));
}

/// More parts than a launch takes, of none to two entries each, every third gradient 0: touched or
/// not, as `all` says. Row of the entries 2k and 2k + 1: k.
void expectManyParts(bool all) {
  SCOPED_TRACE(all);
  constexpr int64_t kDim = 3, kParts = 133;
  std::vector<int64_t> firsts = {0};
  for (int64_t part = 0; part < kParts; ++part)
    firsts.push_back(firsts.back() + (part + 1) % 3);
  const int64_t count = firsts.back(), tableRows = count / 2 + 2;
  std::vector<float> gradients(static_cast<size_t>(count * kDim));
  for (int64_t i = 0; i < count; ++i)
    gradients[static_cast<size_t>(i * kDim + i % kDim)] =
        i % 3 == 2 ? 0 : static_cast<float>(i + 1);
  Copy<float> onDevice(gradients), table(std::vector<float>(static_cast<size_t>(tableRows * kDim)));
  std::vector<float *> rowsOf;
  for (int64_t i = 0; i < count; ++i)
    rowsOf.push_back(table.data() + (i / 2 + 1) * kDim);
  Copy<float *> handlesThere(rowsOf), rows{std::vector<float *>(rowsOf.size())};
  std::vector<genrec_domain> entries(kParts);
  for (size_t part = 0; part < entries.size(); ++part)
    entries[part].count = entries[part].capacity = firsts[part + 1] - firsts[part];
  Copy<genrec_domain> entriesThere(entries),
      touchedThere{std::vector<genrec_domain>{genrec_domain{}}};
  genrec_domain touched = {};
  touched.capacity = count;
  touched.device = touchedThere.data();
  std::vector<const genrec_domain *> domains;
  std::vector<float *const *> handles;
  std::vector<const float *> gradientsOf;
  const std::vector<int64_t> strides(kParts, kDim);
  const std::vector<const int64_t *> parents(kParts);
  for (size_t part = 0; part < entries.size(); ++part) {
    entries[part].device = entriesThere.data() + part;
    domains.push_back(&entries[part]);
    handles.push_back(handlesThere.data() + firsts[part]);
    gradientsOf.push_back(onDevice.data() + firsts[part] * kDim);
  }
  const DeviceGradients from{0,
                             static_cast<int32_t>(kParts),
                             domains.data(),
                             handles.data(),
                             gradientsOf.data(),
                             strides.data(),
                             parents.data(),
                             kDim,
                             all,
                             table.data()};
  std::vector<float> added = addUp(from, kDim, touched, rows);
  std::vector<float *> expectedRows;
  std::vector<float> expected;
  for (int64_t row = 0; row * 2 < count; ++row) {
    std::vector<float> sum(kDim);
    bool isTouched = all;
    for (int64_t i = row * 2; i < std::min(row * 2 + 2, count); ++i)
      for (int64_t c = 0; c < kDim; ++c) {
        const float own = gradients[static_cast<size_t>(i * kDim + c)];
        sum[static_cast<size_t>(c)] += own;
        isTouched |= own != 0;
      }
    if (!isTouched)
      continue;
    expectedRows.push_back(rowsOf[static_cast<size_t>(row * 2)]);
    expected.insert(expected.end(), sum.begin(), sum.end());
  }
  ASSERT_EQ(touchedThere.fetch()[0].count, static_cast<int64_t>(expectedRows.size()));
  std::vector<float *> found = rows.fetch();
  found.resize(expectedRows.size());
  EXPECT_EQ(found, expectedRows);
  added.resize(expected.size());
  EXPECT_EQ(added, expected);
}

TEST(DistinctRows, OfMorePartsThanALaunchTakes) {
  expectManyParts(true);
  expectManyParts(false);
}

} // namespace
} // namespace genrec::rt::cuda::test
