//===- segments_test.cpp - Distinct touched rows and their sums -----------===//

#include "../../runtime/embedding/segments.h"

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/segments.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace genrec::rt::test {
namespace {

struct Case {
  std::vector<std::vector<float *>> handles;
  std::vector<std::vector<float>> gradients;
  int64_t dim;
};

struct Result {
  std::vector<float *> rows;
  std::vector<float> sums;
};

Result runSegments(const Case &input, const float *zeros, int32_t threads) {
  genrec_rt_pool *pool = genrec_rt_pool_create(threads);
  std::vector<int64_t> counts;
  std::vector<float *const *> handles;
  std::vector<const float *> gradients;
  int64_t total = 0;
  for (size_t part = 0; part < input.handles.size(); ++part) {
    counts.push_back(static_cast<int64_t>(input.handles[part].size()));
    handles.push_back(input.handles[part].data());
    gradients.push_back(input.gradients[part].data());
    total += counts.back();
  }
  std::vector<int64_t> scratch(static_cast<size_t>(segmentBytes(total)) / 8 + 1);
  Result result;
  result.rows.resize(static_cast<size_t>(total));
  GradientParts parts{static_cast<int32_t>(counts.size()), counts.data(), handles.data(),
                      gradients.data(), input.dim};
  int64_t count = buildSegments(pool, parts, zeros, result.rows.data(), scratch.data());
  result.rows.resize(static_cast<size_t>(count));
  result.sums.resize(static_cast<size_t>(count * input.dim));
  sumSegments(pool, parts, count, scratch.data(), result.sums.data());
  genrec_rt_pool_destroy(pool);
  return result;
}

TEST(Segments, NothingGivesNothing) {
  EXPECT_TRUE(runSegments({{{}}, {{}}, 4}, nullptr, 1).rows.empty());
}

TEST(Segments, FirstAppearanceOrderAndSums) {
  float a[64], b[64], zeros[64];
  Case input{{{a, b, a}, {b, zeros}}, {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 9}}, 2};
  Result result = runSegments(input, zeros, 2);
  EXPECT_EQ(result.rows, (std::vector<float *>{a, b}));
  EXPECT_EQ(result.sums, (std::vector<float>{6, 8, 10, 12}));
}

TEST(Segments, ExactlyZeroGradientsDoNotTouch) {
  float a[64], b[64], c[64];
  Case input{{{a, b, c}}, {{0, -0.0f, 0, 1e-45f, 0, 0}}, 2};
  Result result = runSegments(input, nullptr, 1);
  EXPECT_EQ(result.rows, (std::vector<float *>{b}));
}

TEST(Segments, AllRowsCountWhereTheyAreAskedFor) {
  float a[64], b[64], c[64];
  float *const entries[] = {b, a, c, b};
  float *const *handles[] = {entries};
  const int64_t counts[] = {4};
  const float *gradients[] = {nullptr}; // not read
  GradientParts parts{1, counts, handles, gradients, 2, nullptr, nullptr, /*all=*/true};
  std::vector<int64_t> scratch(static_cast<size_t>(segmentBytes(4)) / 8 + 1);
  std::vector<float *> rows(4);
  ASSERT_EQ(buildSegments(nullptr, parts, /*untouchable=*/c, rows.data(), scratch.data()), 2);
  EXPECT_EQ(rows[0], b);
  EXPECT_EQ(rows[1], a);
}

TEST(Segments, KernelsAddUpTheSameSums) {
  constexpr int64_t kRows = 50, kCount = 300, kDim = 16, kStride = 40;
  std::mt19937 random(3);
  std::vector<float> memory(kRows * 64), wide(kCount * kStride);
  for (float &value : wide)
    value = static_cast<float>(random() % 1000) / 64;
  std::vector<float *> entries[2];
  for (auto &part : entries)
    for (int64_t i = 0; i < kCount; ++i) // the first rows have many gradients, the last ones few
      part.push_back(memory.data() + std::min(random() % kRows, random() % (4 * kRows)) * 64);
  float *const *handles[] = {entries[0].data(), entries[1].data()};
  const int64_t counts[] = {kCount, kCount}, strides[] = {kStride, kStride};
  const float *gradients[] = {wide.data(), wide.data() + 20};
  GradientParts parts{2, counts, handles, gradients, kDim, strides};
  std::vector<int64_t> scratch(static_cast<size_t>(segmentBytes(2 * kCount)) / 8 + 1);
  std::vector<float *> rows(2 * kCount);
  genrec_domain touched{};
  touched.count = buildSegments(nullptr, parts, nullptr, rows.data(), scratch.data());
  std::vector<float> sums(static_cast<size_t>(touched.count * kDim));
  sumSegments(nullptr, parts, touched.count, scratch.data(), sums.data());
  kernels::SegmentSums lists = kernels::segmentSums(&touched, scratch.data(), gradients, strides);
  for (int64_t row = 0; row < touched.count; ++row) {
    float room[kDim];
    const float *sum = kernels::segmentSum<kDim>(&lists, row, room);
    for (int64_t d = 0; d < kDim; ++d)
      ASSERT_EQ(sum[d], sums[static_cast<size_t>(row * kDim + d)]);
  }
}

TEST(Segments, GradientsOfParentsAreReadThere) {
  // Lists {a, b}, {}, {b, a, a}; the first list's gradient is zero in part 1.
  float a[64], b[64];
  float *const entries[] = {a, b, b, a, a};
  float *const *handles[] = {entries, entries};
  const int64_t counts[] = {5, 5}, lists[] = {0, 0, 2, 2, 2};
  const int64_t *parents[] = {lists, lists};
  const float first[] = {1, 2, 99, 99, 3, 4}, second[] = {0, 0, 99, 99, 10, 20};
  const float *gradients[] = {first, second};
  GradientParts parts{2, counts, handles, gradients, 2, nullptr, parents};
  std::vector<int64_t> scratch(static_cast<size_t>(segmentBytes(10)) / 8 + 1);
  std::vector<float *> rows(10);
  ASSERT_EQ(buildSegments(nullptr, parts, nullptr, rows.data(), scratch.data()), 2);
  EXPECT_EQ(rows[0], a);
  EXPECT_EQ(rows[1], b);
  std::vector<float> sums(4);
  sumSegments(nullptr, {2, nullptr, nullptr, gradients, 2}, 2, scratch.data(), sums.data());
  EXPECT_EQ(sums, (std::vector<float>{1 + 3 + 3 + 10 + 10, 2 + 4 + 4 + 20 + 20, 1 + 3 + 10, 2 + 4 + 20}));
}

TEST(Segments, ColumnsOfWiderRowsAreReadInPlace) {
  // Two lookups of width 4 and 3 whose gradients are columns of rows of 9 floats.
  float a[64], b[64];
  float *const rows[] = {a, b, a};
  const int64_t counts[] = {3, 3}, strides[] = {9, 9};
  std::vector<float> wide(3 * 9);
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = static_cast<float>(i + 1);
  for (int64_t dim : {4, 3}) {
    float *const *handles[] = {rows, rows};
    const float *gradients[] = {wide.data(), wide.data() + 5};
    GradientParts parts{2, counts, handles, gradients, dim, strides};
    std::vector<int64_t> scratch(static_cast<size_t>(segmentBytes(6)) / 8 + 1);
    std::vector<float *> distinct(6);
    ASSERT_EQ(buildSegments(nullptr, parts, nullptr, distinct.data(), scratch.data()), 2);
    std::vector<float> sums(static_cast<size_t>(2 * dim));
    sumSegments(nullptr, {2, nullptr, nullptr, gradients, dim, strides}, 2, scratch.data(), sums.data());
    for (int64_t d = 0; d < dim; ++d) {
      float first = static_cast<float>(d + 1), second = first + 5;
      EXPECT_EQ(sums[static_cast<size_t>(d)], first + (first + 18) + second + (second + 18));
      EXPECT_EQ(sums[static_cast<size_t>(dim + d)], (first + 9) + (second + 9));
    }
  }
}

class SegmentsOfWidth : public testing::TestWithParam<int64_t> {};

TEST_P(SegmentsOfWidth, AgreeWithAMapAtAnyNumberOfThreads) {
  constexpr int64_t kRows = 500, kCount = 20000;
  const int64_t kDim = GetParam();
  std::mt19937 random(5);
  std::vector<float> memory(kRows * 64);
  Case input{{{}, {}, {}}, {{}, {}, {}}, kDim};
  std::map<float *, std::vector<float>> expected;
  std::vector<float *> order;
  for (size_t part = 0; part < 3; ++part)
    for (int64_t i = 0; i < kCount; ++i) {
      // Skewed: half of all contributions are of one row.
      int64_t row = random() % 2 ? 0 : static_cast<int64_t>(random() % kRows);
      float *handle = memory.data() + row * 64;
      bool isZero = random() % 4 == 0;
      std::vector<float> gradient(kDim);
      for (float &value : gradient)
        value = isZero ? 0 : static_cast<float>(random() % 1000) / 64;
      input.handles[part].push_back(handle);
      input.gradients[part].insert(input.gradients[part].end(), gradient.begin(), gradient.end());
      if (isZero)
        continue;
      auto [entry, isNew] = expected.try_emplace(handle, std::vector<float>(kDim));
      if (isNew)
        order.push_back(handle);
      for (int64_t d = 0; d < kDim; ++d)
        entry->second[d] += gradient[d];
    }
  Result one = runSegments(input, nullptr, 1), four = runSegments(input, nullptr, 4);
  EXPECT_EQ(one.rows, order);
  EXPECT_EQ(one.rows, four.rows);
  EXPECT_EQ(one.sums, four.sums);
  for (size_t n = 0; n < order.size(); ++n)
    for (int64_t d = 0; d < kDim; ++d)
      ASSERT_EQ(one.sums[n * kDim + d], expected[order[n]][d]); // the order of summation is fixed
}

INSTANTIATE_TEST_SUITE_P(Segments, SegmentsOfWidth, testing::Values(1, 4, 8, 16, 19, 32, 64),
                         [](const auto &info) { return "width" + std::to_string(info.param); });

TEST(Segments, BytesAreBoundedByALine) {
  for (int64_t capacity : {0, 1, 2, 15, 16, 17, 1000, 1 << 20, (1 << 20) + 1})
    EXPECT_LE(genrec_rt_segment_bytes(capacity),
              GENREC_SEGMENT_BYTES_PER_ROW * capacity + GENREC_SEGMENT_BYTES);
}

} // namespace
} // namespace genrec::rt::test
