//===- rows_test.cpp - Gathering, pooling, updating rows ------------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "device_copy.h"
#include "row_steps.h"

#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cuda/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Floats = std::vector<float>;

/// Rows of T with states of `dim` floats on a device, and what they hold on the host.
template <class T> class Table {
public:
  Table(int64_t rows, int64_t dim, int64_t states, uint32_t seed = 1)
      : dim(dim), states(states), valueBytes((dim * static_cast<int64_t>(sizeof(T)) + 3) / 4 * 4),
        stride((valueBytes + dim * states * 4 + 63) / 64 * 64), host(bytesOf(rows, seed)),
        memory(host) {
    for (int64_t row = 0; row < rows; ++row)
      places.push_back(reinterpret_cast<T *>(memory.data() + row * stride));
  }
  float value(const std::vector<char> &bytes, int64_t row, int64_t column) const {
    T element;
    std::memcpy(&element, bytes.data() + row * stride + column * static_cast<int64_t>(sizeof(T)),
                sizeof(T));
    return toFloat(element);
  }
  float state(const std::vector<char> &bytes, int64_t row, int64_t number, int64_t column) const {
    float element;
    std::memcpy(&element, bytes.data() + row * stride + valueBytes + (number * dim + column) * 4,
                4);
    return element;
  }

  int64_t dim, states, valueBytes, stride;
  std::vector<char> host;
  Copy<char> memory;
  std::vector<T *> places;

private:
  std::vector<char> bytesOf(int64_t rows, uint32_t seed) const {
    std::vector<char> bytes(static_cast<size_t>(rows * stride));
    std::mt19937 random(seed);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < dim; ++c) {
        const T value = fromFloat<T>(static_cast<float>(random() % 2000) / 1000 - 1);
        std::memcpy(bytes.data() + row * stride + c * static_cast<int64_t>(sizeof(T)), &value,
                    sizeof(T));
      }
      for (int64_t c = 0; c < dim * states; ++c) {
        const float value = static_cast<float>(random() % 1000) / 1000;
        std::memcpy(bytes.data() + row * stride + valueBytes + c * 4, &value, 4);
      }
    }
    return bytes;
  }
};

template <class T> class Rows : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Rows, Elements);

/// A leading dimension, and elements between what is aligned and where a matrix begins.
struct Layout {
  int64_t more, shift;
};
constexpr Layout kLayouts[] = {{8, 0}, {1, 0}, {8, 1}};

TYPED_TEST(Rows, GatherCopiesRowsAndZeros) {
  using T = TypeParam;
  for (int64_t dim : {1, 4, 5, 8, 16, 50, 128, 512})
    for (auto [count, layout] : {std::pair(0, kLayouts[0]),
                                 {1, kLayouts[0]},
                                 {31, kLayouts[1]},
                                 {130, kLayouts[2]},
                                 {300, kLayouts[0]}}) {
      Table<T> table(7, dim, 0);
      std::vector<const T *> rows;
      for (int64_t i = 0; i < count; ++i)
        rows.push_back(i % 5 == 4 ? nullptr : table.places[static_cast<size_t>(i * 3 % 7)]);
      Copy<const T *> places(rows);
      const int64_t ld = dim + layout.more, shift = layout.shift;
      Copy<T> out(std::vector<T>(static_cast<size_t>(shift + count * ld)));
      gatherRows<T>(places.data(), count, dim, out.data() + shift, ld, testStream());
      const std::vector<T> got = out.fetch();
      for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < dim; ++c)
          ASSERT_EQ(toFloat(got[static_cast<size_t>(shift + i * ld + c)]),
                    i % 5 == 4 ? 0.0f : table.value(table.host, i * 3 % 7, c));
    }
}

TYPED_TEST(Rows, ScatterFillsRowsAndNothingElse) {
  using T = TypeParam;
  for (int64_t dim : {1, 4, 5, 8, 16, 50, 128, 512})
    for (auto [count, layout] :
         {std::pair(0, kLayouts[0]), {1, kLayouts[2]}, {31, kLayouts[1]}, {130, kLayouts[0]}}) {
      Table<T> table(std::max<int64_t>(count, 1), dim, 1);
      std::vector<T *> rows(table.places.begin(), table.places.begin() + count);
      for (int64_t i = 4; i < count; i += 5)
        rows[static_cast<size_t>(i)] = nullptr;
      const int64_t ld = dim + layout.more, shift = layout.shift;
      std::vector<T> values(static_cast<size_t>(shift + count * ld));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = fromFloat<T>(static_cast<float>(i % 251));
      Copy<T *> places(rows);
      Copy<T> from(values);
      scatterRows<T>(places.data(), count, dim, from.data() + shift, ld, testStream());
      std::vector<char> expected = table.host;
      for (int64_t i = 0; i < count; ++i)
        if (rows[static_cast<size_t>(i)])
          std::memcpy(expected.data() + i * table.stride, values.data() + shift + i * ld,
                      static_cast<size_t>(dim) * sizeof(T));
      ASSERT_EQ(table.memory.fetch(), expected) << count << " rows of " << dim;
    }
}

TYPED_TEST(Rows, PoolSumsInTheOrderOfTheList) {
  using T = TypeParam;
  const std::vector<int64_t> offsets = {0, 0, 1, 40, 40, 43, 140};
  for (auto [dim, layout] : {std::pair(4, Layout{1, 0}),
                             {50, {0, 0}},
                             {130, {2, 0}},
                             {512, {4, 0}},
                             {8, {4, 1}},
                             {12, {4, 0}}})
    for (Pool kind : {Pool::sum, Pool::mean}) {
      const int64_t ld = dim + layout.more, shift = layout.shift;
      Table<T> table(9, dim, 0);
      std::vector<const T *> rows(table.places.begin(), table.places.end());
      std::vector<uint32_t> inverse(140);
      for (size_t i = 0; i < inverse.size(); ++i)
        inverse[i] = static_cast<uint32_t>(i * 5 % 9);
      Copy<const T *> places(rows);
      Copy<uint32_t> numbers(inverse);
      Copy<int64_t> lists(offsets);
      Copy<float> out(Floats(static_cast<size_t>(shift + 6 * ld), -1));
      poolRows<T>(places.data(), numbers.data(), lists.data(), 6, dim, kind, out.data() + shift, ld,
                  testStream());
      const Floats got = out.fetch();
      for (int64_t parent = 0; parent < 6; ++parent)
        for (int64_t c = 0; c < dim; ++c) {
          float total = 0;
          for (int64_t i = offsets[parent]; i < offsets[parent + 1]; ++i)
            total += table.value(table.host, inverse[i], c);
          const int64_t size = std::max<int64_t>(offsets[parent + 1] - offsets[parent], 1);
          ASSERT_EQ(got[static_cast<size_t>(shift + parent * ld + c)],
                    kind == Pool::mean ? total / static_cast<float>(size) : total);
        }
    }
}

/// More lists than warps have at once: in the emulator two would have half of them each.
TEST(Rows, ManyListsAreSplit) {
  constexpr int64_t kLists = 1200, kDim = 4;
  Table<float> table(9, kDim, 0);
  std::vector<const float *> rows(table.places.begin(), table.places.end());
  std::vector<int64_t> offsets = {0};
  std::vector<uint32_t> inverse;
  for (uint32_t list = 0; list < kLists; ++list) {
    for (uint32_t i = 0; i < list % 3; ++i)
      inverse.push_back((list + i) % 9);
    offsets.push_back(static_cast<int64_t>(inverse.size()));
  }
  Copy<const float *> places(rows);
  Copy<uint32_t> numbers(inverse);
  Copy<int64_t> lists(offsets);
  Copy<float> out(Floats(static_cast<size_t>(kLists * kDim), -1));
  poolRows<float>(places.data(), numbers.data(), lists.data(), kLists, kDim, Pool::sum, out.data(),
                  kDim, testStream());
  const Floats got = out.fetch();
  for (size_t list = 0; list < kLists; ++list)
    for (size_t c = 0; c < kDim; ++c) {
      float total = 0;
      for (int64_t i = offsets[list]; i < offsets[list + 1]; ++i)
        total += table.value(table.host, inverse[static_cast<size_t>(i)], static_cast<int64_t>(c));
      ASSERT_EQ(got[list * kDim + c], total) << list;
    }
}

/// A batch to update five rows with: row 0 occurs once, 1 often, 2 is null, 3 twice; the last is
/// not in use.
struct UpdateBatch {
  std::vector<int64_t> segments = {0, 1, 91, 92, 94, 94}, parents, lists = {0, 30, 60, 94};
  std::vector<uint32_t> order;
  Floats gradients;
  int64_t dim;
  bool isMean;

  UpdateBatch(int64_t dim, bool isMean)
      : parents(94), order(94), gradients(static_cast<size_t>(3 * dim)), dim(dim), isMean(isMean) {
    std::iota(order.begin(), order.end(), 0u);
    std::reverse(order.begin() + 1, order.begin() + 91);
    for (size_t i = 0; i < parents.size(); ++i)
      parents[i] = static_cast<int64_t>(i < 30 ? 0 : i < 60 ? 1 : 2);
    std::mt19937 random(9);
    for (float &g : gradients)
      g = static_cast<float>(random() % 2000) / 1000 - 1;
  }
  static bool isUpdated(int64_t row) { return row != 2 && row != 4; }
  /// Added up in the same order: what is left is the step's own rounding.
  float sum(int64_t row, int64_t column) const {
    float total = 0;
    for (int64_t at = segments[row]; at < segments[row + 1]; ++at) {
      const int64_t parent = parents[order[at]];
      const float share = isMean ? 1 / static_cast<float>(lists[parent + 1] - lists[parent]) : 1.0f;
      total += gradients[parent * dim + column] * share;
    }
    return total;
  }
  /// The table's bytes after one step.
  template <int64_t D, class T, class Step>
  std::vector<char> apply(Table<T> &table, const Step &step) const {
    std::vector<T *> rows(table.places);
    rows[2] = nullptr;
    Copy<T *> places(rows);
    Copy<uint32_t> members(order), used(std::vector<uint32_t>{4});
    Copy<int64_t> begins(segments), above(parents), listOffsets(lists);
    Copy<float> deviceGradients(gradients);
    SegmentReduction reduction("test");
    Copy<SegmentSums> made{std::vector<SegmentSums>(1)};
    reduction.run(5, used.data(), D,
                  {deviceGradients.data(), D, above.data(), isMean ? listOffsets.data() : nullptr,
                   members.data()},
                  begins.data(), 94, made.data(), nullptr, testStream());
    launchStep<T, D>(places.data(), 5, used.data(), made.data(), step, testStream());
    return table.memory.fetch();
  }
};

template <class T, int64_t D> void expectStepsOfSums(bool isMean) {
  const UpdateBatch batch(D, isMean);
  const Accumulate step{0.05f};
  Table<T> table(5, D, 1);
  const std::vector<char> after = batch.apply<D>(table, step);
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t c = 0; c < D; ++c) {
      float weight = table.value(table.host, row, c), state = table.state(table.host, row, 0, c);
      if (batch.isUpdated(row))
        weight = toFloat(fromFloat<T>(step(weight, batch.sum(row, c), &state)));
      // A device multiplies and adds in one; bfloat16 may round to the neighbour then.
      const float near = 1e-6f * (1 + std::abs(weight)) +
                         (sizeof(T) == 2 && batch.isUpdated(row) ? std::abs(weight) / 128 : 0);
      ASSERT_NEAR(table.value(after, row, c), weight, near) << row << ", " << c << " of " << D;
      ASSERT_NEAR(table.state(after, row, 0, c), state, 4e-6f * (1 + state)) // a square of the sum
          << row << ", " << c << " of " << D;
    }
}

TYPED_TEST(Rows, KernelsAddUpTheGradientsOfARow) {
  for (bool isMean : {false, true}) {
    expectStepsOfSums<TypeParam, 4>(isMean);
    expectStepsOfSums<TypeParam, 31>(isMean);
    expectStepsOfSums<TypeParam, 33>(isMean);
    expectStepsOfSums<TypeParam, 50>(isMean);
    expectStepsOfSums<TypeParam, 130>(isMean);
    expectStepsOfSums<TypeParam, 512>(isMean);
  }
}

TEST(SegmentSums, AMinusZeroStaysOne) {
  // As on the CPU, which does not add a row's only gradient to a zero.
  Copy<float> gradients({-0.0f, 1.0f}), out(Floats(1, 1.0f));
  Copy<uint32_t> order({0});
  Copy<int64_t> offsets({0, 1});
  Copy<float *> rows({out.data()});
  SegmentReduction reduction("test");
  Copy<SegmentSums> made{std::vector<SegmentSums>(1)};
  reduction.run(1, nullptr, 1, {gradients.data(), 1, nullptr, nullptr, order.data()},
                offsets.data(), 1, made.data(), nullptr, testStream());
  launchStep<float, 1>(rows.data(), 1, nullptr, made.data(), Copied{}, testStream());
  EXPECT_TRUE(std::signbit(out.fetch()[0]));
}

/// The tree of segment_sums.h, written down.
float treeSum(Floats terms) {
  while (true) {
    Floats sums;
    for (size_t begin = 0; begin < terms.size(); begin += kMostSummed) {
      float sum = 0;
      for (size_t i = begin; i < std::min(begin + kMostSummed, terms.size()); ++i)
        sum += terms[i];
      sums.push_back(sum);
    }
    if (sums.size() == 1)
      return sums[0];
    terms = sums;
  }
}

TYPED_TEST(Rows, GiantsAreSummedByATree) {
  using T = TypeParam;
  constexpr int64_t kMost = kMostSummed;
  // One below, at and above what a warp adds up, several pieces, and one more level of them.
  const std::vector<int64_t> sizes = {kMost - 1,        0, kMost, kMost + 1, 3 * kMost + 7, 1,
                                      kMost * kMost + 3};
  constexpr int64_t kDim = 4;
  std::vector<int64_t> segments = {0};
  for (int64_t size : sizes)
    segments.push_back(segments.back() + size);
  const int64_t count = static_cast<int64_t>(sizes.size()), all = segments.back();
  std::vector<uint32_t> order(static_cast<size_t>(all));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<uint32_t>(order.size() - 1 - i);
  Floats gradients(static_cast<size_t>(all * kDim));
  std::mt19937 random(4);
  for (float &g : gradients)
    g = static_cast<float>(random() % 2000) / 1000 - 1;
  Copy<uint32_t> members(order);
  Copy<int64_t> begins(segments);
  Copy<float> deviceGradients(gradients);
  SegmentReduction reduction("test");
  for (int round = 0; round < 2; ++round) {
    Table<T> table(count, kDim, 0);
    Copy<T *> places(table.places);
    Copy<SegmentSums> made{std::vector<SegmentSums>(1)};
    reduction.run(count, nullptr, kDim,
                  {deviceGradients.data(), kDim, nullptr, nullptr, members.data()}, begins.data(),
                  all, made.data(), nullptr, testStream());
    launchStep<T, kDim>(places.data(), count, nullptr, made.data(), Descend{0.5f}, testStream());
    const std::vector<char> after = table.memory.fetch();
    for (int64_t row = 0; row < count; ++row)
      for (int64_t c = 0; c < kDim; ++c) {
        Floats terms;
        for (int64_t at = segments[row]; at < segments[row + 1]; ++at)
          terms.push_back(gradients[order[static_cast<size_t>(at)] * kDim + c]);
        const float before = table.value(table.host, row, c);
        const float expected = before - 0.5f * (terms.empty() ? 0 : treeSum(terms));
        ASSERT_EQ(table.value(after, row, c), toFloat(fromFloat<T>(expected)))
            << "row " << row << " of " << sizes[static_cast<size_t>(row)] << " column " << c;
      }
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
