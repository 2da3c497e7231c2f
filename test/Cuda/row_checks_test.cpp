//===- row_checks_test.cpp - Values that may not be, found on the device --===//

#include "domain_copies.h"
#include "note_copy.h"

#include "genrec_rt/kernels/cuda/row_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kSpare = 9; // capacity beyond the rows

/// Lists of lists; `rows` has what is checked.
struct CheckedRows {
  std::mt19937_64 random{3};
  std::unique_ptr<HostDomain> users = makeRoot(4, random),
                              lists = makeLists(*users, {2, 0, 3, 1}, random),
                              rows = makeLists(*lists, {100, 0, 300, 1, 200, 99}, random);
  DeviceDomain usersThere{*users}, listsThere{*lists, &usersThere}, rowsThere{*rows, &listsThere};

  int64_t count() const { return rows->view.count; }
  int64_t rootOf(int64_t row) const {
    return lists->parent[static_cast<size_t>(rows->parent[static_cast<size_t>(row)])];
  }
};

/// Values within 0 … 9 but for rows `bad`.
template <class T>
void expectFirst(int32_t type, const std::vector<int64_t> &bad, T value, int64_t expected,
                 bool hidesFirst = false) {
  CheckedRows r;
  std::vector<T> values(static_cast<size_t>(r.count()));
  for (T &each : values)
    each = static_cast<T>(r.random() % 10);
  for (int64_t row : bad)
    values[static_cast<size_t>(row)] = value;
  std::vector<float> weight(values.size(), 0.5f);
  std::vector<uint8_t> valid(values.size(), 1);
  if (hidesFirst) {
    weight[static_cast<size_t>(bad[0])] = 0;
    valid[static_cast<size_t>(bad[1])] = 0;
  }
  Copy<T> valuesThere(values);
  Copy<float> weightThere(weight);
  Copy<uint8_t> validThere(valid);
  DeviceRange range;
  range.domain = r.rowsThere.get(), range.count = r.count() + kSpare;
  range.type = type, range.values = valuesThere.data();
  range.weight = hidesFirst ? weightThere.data() : nullptr;
  range.valid = hidesFirst ? validThere.data() : nullptr;
  range.low = 0, range.high = 9;
  NoteCopy note;
  checkRange(range, note.data(), testStream());
  EXPECT_EQ(note.row(), expected);
  if (expected < 0)
    return;
  EXPECT_EQ(note.root(), r.rootOf(expected));
  const T found = note.value<T>();
  EXPECT_TRUE(found == value || (found != found && value != value));
}

TEST(RowChecks, TheFirstRowBeyondARangeIsNoted) {
  for (const std::vector<int64_t> &bad : {std::vector<int64_t>{699}, {401, 17, 650}, {300, 299}}) {
    const int64_t first = *std::min_element(bad.begin(), bad.end());
    expectFirst<int32_t>(GENREC_I32, bad, -1, first);
    expectFirst<int64_t>(GENREC_I64, bad, int64_t(1) << 40, first);
    expectFirst<float>(GENREC_F32, bad, 9.5f, first);
    expectFirst<double>(GENREC_F64, bad, std::numeric_limits<double>::quiet_NaN(), first);
  }
  expectFirst<float>(GENREC_F32, {}, 0, -1);
}

TEST(RowChecks, RowsThatDoNotCountArePassedOver) {
  expectFirst<float>(GENREC_F32, {3, 8, 500}, -2, 500, /*hidesFirst=*/true);
  expectFirst<int64_t>(GENREC_I64, {3, 8}, 12, -1, /*hidesFirst=*/true);
}

TEST(RowChecks, ACatalogueBoundsNumbersOfItsRows) {
  CheckedRows r;
  std::vector<int64_t> values(static_cast<size_t>(r.count()), 4);
  values[40] = 5;
  Copy<int64_t> valuesThere(values);
  for (const auto &[count, high] : {std::pair<int64_t, double>{5, 100}, {6, 100}, {6, 4}}) {
    genrec_domain record{};
    record.count = count;
    Copy<genrec_domain> catalogue{std::vector{record}};
    DeviceRange range;
    range.domain = r.rowsThere.get(), range.count = r.count() + kSpare;
    range.type = GENREC_I64, range.values = valuesThere.data();
    range.items = catalogue.data();
    range.low = 0, range.high = high;
    NoteCopy note;
    checkRange(range, note.data(), testStream());
    EXPECT_EQ(note.row(), count == 5 || high == 4 ? 40 : -1);
  }
}

TEST(RowChecks, TheFirstNonFiniteElementIsNoted) {
  CheckedRows r;
  constexpr int64_t kSize = 3, kStride = 5;
  std::vector<float> values(static_cast<size_t>(r.count() * kStride), 1);
  values[3] = std::nanf(""); // between the rows
  auto check = [&](const genrec_domain *domain, int64_t capacity) {
    Copy<float> there(values);
    NoteCopy note;
    checkFinite({there.data(), domain, capacity, kSize, kStride}, note.data(), testStream());
    return std::pair(note.row(), note.value<float>());
  };
  EXPECT_EQ(check(r.rowsThere.get(), r.count() + kSpare).first, -1);
  values[static_cast<size_t>(333 * kStride + 1)] = -INFINITY;
  values[static_cast<size_t>(334 * kStride)] = std::nanf("");
  EXPECT_EQ(check(r.rowsThere.get(), r.count() + kSpare), std::pair(333 * kSize + 1, -INFINITY));
  EXPECT_EQ(check(nullptr, 1).first, -1);
  values[2] = INFINITY;
  EXPECT_EQ(check(nullptr, 1), std::pair(int64_t(2), INFINITY));
}

/// Rows that are not there, of zeros, and of ids of 40 on.
TEST(RowChecks, TheFirstRowWithAValueThatIsNotFiniteIsNotedWithItsKey) {
  CheckedRows r;
  constexpr int64_t kDim = 3, kRowFloats = 4; // behind the values is a state
  const float nan = std::nanf("");
  for (const bool isBf16 : {false, true}) {
    std::vector<float> values(static_cast<size_t>(r.count() * kRowFloats), 1);
    std::vector<float *> rows(static_cast<size_t>(r.count() + kSpare));
    std::vector<int64_t> keys(rows.size());
    auto row = [&](int64_t number) { return values.data() + number * kRowFloats; };
    row(2)[isBf16 ? 2 : 3] = nan; // a state
    row(8)[0] = nan;              // of zeros
    row(9)[0] = nan;              // of none
    auto check = [&] {
      Copy<float> there(values);
      for (int64_t i = 0; i < r.count(); ++i) {
        rows[static_cast<size_t>(i)] = there.data() + i * kRowFloats;
        keys[static_cast<size_t>(i)] = 40 + i;
      }
      rows[9] = nullptr;
      Copy<float *> rowsThere(rows);
      Copy<int64_t> keysThere(keys);
      NoteCopy note;
      checkRows({.domain = r.rowsThere.get(),
                 .count = r.count() + kSpare,
                 .rows = rowsThere.data(),
                 .keys = keysThere.data(),
                 .dim = kDim,
                 .isBf16 = isBf16,
                 .zeros = there.data() + 8 * kRowFloats},
                note.data(), testStream());
      return std::pair(note.row(), note.row() < 0 ? 0 : note.value());
    };
    EXPECT_EQ(check().first, -1);
    row(501)[0] = -INFINITY;
    row(333)[isBf16 ? 0 : 1] = nan;
    EXPECT_EQ(check(), std::pair(int64_t(333), int64_t(373)));
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
