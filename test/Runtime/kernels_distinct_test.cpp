// Products per distinct row against naive loops over every row of the batch.

#include "../../runtime/embedding/distinct.h"

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/distinct_gradient.h"
#include "kernels_bf16_reference.h"

#include <gtest/gtest.h>

#include <array>

namespace genrec::rt::kernels {
namespace {

using test::Random;

/// A number whose sums are exact in float, and which is no bfloat16.
float shortNumber(Random &random) {
  return static_cast<float>(std::round(random.real() * 4096) / 4096);
}

/// `parts` lookups of `count` rows each among `ids` rows of a table.
struct Lookups {
  std::vector<float> memory;
  std::vector<std::vector<float *>> handles;
  std::vector<float *const *> lists;

  Lookups(Random &random, int64_t parts, int64_t count, int64_t ids) : memory(ids * 64) {
    for (float &value : memory)
      value = shortNumber(random);
    for (int64_t part = 0; part < parts; ++part) {
      auto &list = handles.emplace_back();
      for (int64_t row = 0; row < count; ++row)
        list.push_back(memory.data() + 64 * random.below(ids));
    }
    for (auto &list : handles)
      lists.push_back(list.data());
  }
};

struct Found {
  std::vector<float *> rows;
  std::vector<int64_t> memory;
  int64_t size;
};

Found find(genrec_rt_pool *pool, const Lookups &lookups, int64_t count) {
  int64_t parts = static_cast<int64_t>(lookups.lists.size());
  Found found{std::vector<float *>(parts * count + 1),
              std::vector<int64_t>(genrec_rt_distinct_bytes(parts, count) / 8 + 1), 0};
  std::vector<std::vector<int64_t>> scratch(
      8, std::vector<int64_t>(distinctScratchBytes(count) / 8 + 1));
  float **rows = found.rows.data();
  const std::array groups = {static_cast<int32_t>(parts)};
  findDistinct(pool, count, {groups, lookups.lists.data(), &rows, found.memory.data()},
               [&] { return scratch[genrec_rt_worker_index()].data(); });
  found.size = DistinctLookups(found.memory.data()).rows();
  return found;
}

KERNEL_TEST(KernelsDistinct, RowsAreThoseOfEachLookupInTheOrderOfFirstAppearance) {
  float a[64], b[64], c[64];
  Random random(1);
  Lookups lookups(random, 0, 0, 1);
  lookups.handles = {{b, a, b, b}, {a, c, c, a}};
  for (auto &list : lookups.handles)
    lookups.lists.push_back(list.data());
  Found found = find(nullptr, lookups, 4);
  ASSERT_EQ(found.size, 4);
  found.rows.resize(4);
  EXPECT_EQ(found.rows, (std::vector<float *>{b, a, a, c}));
  DistinctLookups distinct(found.memory.data());
  EXPECT_EQ(std::vector<int64_t>(distinct.starts, distinct.starts + 3),
            (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(std::vector<int32_t>(distinct.index, distinct.index + 8),
            (std::vector<int32_t>{0, 1, 0, 0, 0, 1, 1, 0}));
}

/// Groups of lookups are numbered together, and have rows of their own.
KERNEL_TEST(KernelsDistinct, GroupsHaveRowsOfTheirOwn) {
  float a[64], b[64], c[64];
  float *lists[3][3] = {{b, a, b}, {a, c, c}, {c, c, c}};
  float *const *handles[] = {lists[0], lists[1], lists[2]};
  float *first[3] = {}, *second[6] = {};
  float **rows[] = {first, second};
  std::vector<int64_t> memory(genrec_rt_distinct_bytes(3, 3) / 8 + 1),
      scratch(distinctScratchBytes(3) / 8 + 1);
  findDistinct(nullptr, 3, {std::array{1, 2}, handles, rows, memory.data()},
               [&] { return scratch.data(); });
  const DistinctLookups all(memory.data()), own = all.from(1, 2);
  EXPECT_EQ(all.parts, 3);
  EXPECT_EQ(all.from(0, 1).rows(), 2);
  EXPECT_EQ(own.rows(), 3);
  EXPECT_EQ(own.before(1), 2);
  EXPECT_EQ(std::vector<float *>(first, first + 2), (std::vector<float *>{b, a}));
  EXPECT_EQ(std::vector<float *>(second, second + 3), (std::vector<float *>{a, c, c}));
  EXPECT_EQ(std::vector<int32_t>(own.index, own.index + 6),
            (std::vector<int32_t>{0, 1, 1, 0, 0, 0}));
}

KERNEL_TEST(KernelsDistinct, PlacesAreBoundedByALine) {
  for (int64_t parts : {1, 3, 500})
    for (int64_t capacity : {0, 1, 1000})
      EXPECT_LE(genrec_rt_distinct_bytes(parts, capacity),
                GENREC_DISTINCT_BYTES_PER_ROW * parts * capacity +
                    GENREC_DISTINCT_BYTES_PER_PART * parts + GENREC_DISTINCT_BYTES);
}

struct Results {
  std::vector<float> y, dvalues, dweight;
  bool operator==(const Results &) const = default;
};

template <int D, int N, bool Bf16>
Results run(int32_t threads, const Found &found, const std::vector<float> &values,
            const std::vector<float> &weight, const std::vector<int64_t> &columns,
            const std::vector<float> &gradient, int64_t ld) {
  test::Pool pool(threads);
  DistinctLookups distinct(found.memory.data());
  std::vector<float> scratch(distinctLinearScratchBytes<D, N>(distinct, threads) / 4 + 16),
      backward(distinctLinearGradientScratchBytes<D, N>(distinct, threads) / 4 + 16);
  Results results{std::vector<float>(distinct.count * ld + 1, 7.5f),
                  std::vector<float>(found.size * D + 1, 7.5f),
                  std::vector<float>(distinct.parts * D * N + 1, 7.5f)};
  distinctLinear<D, N, Bf16>(pool, distinct, values.data(), D, weight.data(), columns.data(),
                             results.y.data(), ld, /*adds=*/false, scratch.data());
  for (int64_t part = 0; part < distinct.parts; ++part)
    distinctLinearGradient<D, N, Bf16>(pool, distinct, part, values.data(), D, weight.data(),
                                       columns.data(), gradient.data(), ld, results.dvalues.data(),
                                       results.dweight.data(), backward.data());
  return results;
}

/// With Bf16 values, weight and the sum of each distinct row's gradients are rounded.
template <int D, int N, bool Bf16 = false>
void check(int64_t parts, int64_t count, int64_t ids, uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << parts << " lookups of " << D << " by " << N << ", " << count
                                    << " rows, " << ids << " ids");
  Random random(seed);
  const int64_t ld = N + 3, weightRows = parts * D + 5;
  Lookups lookups(random, parts, count, ids);
  Found found = find(nullptr, lookups, count);
  std::vector<float> values(found.size * D), weight(weightRows * N), gradient(count * ld + 1);
  for (int64_t row = 0; row < found.size; ++row)
    std::copy_n(found.rows[row], D, values.data() + row * D);
  for (auto *list : {&weight, &gradient})
    for (float &value : *list)
      value = shortNumber(random);
  std::vector<int64_t> columns;
  for (int64_t part = 0; part < parts; ++part)
    columns.push_back((parts - 1 - part) * D + 2); // any order, with gaps
  Results one = run<D, N, Bf16>(1, found, values, weight, columns, gradient, ld);
  EXPECT_TRUE(one == (run<D, N, Bf16>(3, found, values, weight, columns, gradient, ld)));

  auto factor = [](double x) { return Bf16 ? test::roundedToBf16(static_cast<float>(x)) : x; };
  std::vector<double> dvalues(found.size * D), dweight(parts * D * N), sums(found.size * N);
  DistinctLookups distinct(found.memory.data());
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t n = 0; n < N; ++n) {
      double sum = 0, g = gradient[row * ld + n];
      for (int64_t part = 0; part < parts; ++part) {
        int64_t number = distinct.starts[part] + distinct.index[part * count + row];
        for (int64_t k = 0; k < D; ++k) {
          double x = lookups.handles[part][row][k], w = weight[(columns[part] + k) * N + n];
          sum += factor(x) * factor(w);
        }
        sums[number * N + n] += g;
      }
      ASSERT_NEAR(one.y[row * ld + n], sum, 1e-5 * parts * D) << row << ", " << n;
    }
    for (int64_t n = N; n < ld && row + 1 < count; ++n)
      ASSERT_EQ(one.y[row * ld + n], 7.5f);
  }
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t number = distinct.starts[part]; number < distinct.starts[part + 1]; ++number)
      for (int64_t n = 0; n < N; ++n)
        for (int64_t k = 0; k < D; ++k) {
          double g = factor(sums[number * N + n]);
          dvalues[number * D + k] += g * factor(weight[(columns[part] + k) * N + n]);
          dweight[(part * D + k) * N + n] += g * factor(values[number * D + k]);
        }
  for (size_t i = 0; i < dvalues.size(); ++i)
    ASSERT_NEAR(one.dvalues[i], dvalues[i], (Bf16 ? 1e-6 : 1e-5) * N * count) << i;
  for (size_t i = 0; i < dweight.size(); ++i)
    ASSERT_NEAR(one.dweight[i], dweight[i], (Bf16 ? 1e-6 : 1e-5) * count) << i;
  EXPECT_EQ(one.dvalues.back(), 7.5f);
  EXPECT_EQ(one.dweight.back(), 7.5f);
}

KERNEL_TEST(KernelsDistinct, AgreeWithNaiveLoops) {
  check<4, 128>(7, 150, 20, 1);
  check<8, 32>(3, 65, 1, 2);
  check<16, 5>(1, 64, 1000, 3);
  check<1, 1>(2, 9, 4, 4);
  check<5, 17>(4, 130, 50, 5);
  check<32, 300>(2, 33, 8, 6);
  check<3, 16>(2, 0, 3, 7);
  check<8, 128>(3, 400, 300, 11);
  check<2, 33>(2, 70, 60, 12);
  check<64, 150>(2, 90, 80, 13);
}

/// Of two lookups, the one that found fewer rows has more chunks: it must not need more room.
KERNEL_TEST(KernelsDistinct, GradientsOfALookupDoNotDependOnALargerOne) {
  constexpr int64_t kRows = 7700, kFewer = 7600, kSize = 16;
  static_assert(distinctChunks(kFewer, kSize, kSize).count >
                distinctChunks(kRows, kSize, kSize).count);
  Random random(1);
  Lookups both(random, 0, 0, kRows), one(random, 0, 0, 1);
  for (int64_t part : {0, 1}) {
    auto &list = both.handles.emplace_back();
    for (int64_t row = 0; row < kRows; ++row)
      list.push_back(both.memory.data() + 64 * (part == 0 ? row : row % kFewer));
    both.lists.push_back(list.data());
  }
  one.lists = {both.handles[1].data()};
  const Found foundBoth = find(nullptr, both, kRows), foundOne = find(nullptr, one, kRows);
  std::vector<float> values(foundBoth.size * kSize), weight(kSize * kSize), gradient(kRows * kSize);
  for (auto *list : {&values, &weight, &gradient})
    for (float &value : *list)
      value = shortNumber(random);
  const Results two =
      run<kSize, kSize, false>(1, foundBoth, values, weight, {0, 0}, gradient, kSize);
  const Results alone = run<kSize, kSize, false>(
      1, foundOne, {values.begin() + kRows * kSize, values.end()}, weight, {0}, gradient, kSize);
  EXPECT_TRUE(
      std::equal(alone.dvalues.begin(), alone.dvalues.end(), two.dvalues.begin() + kRows * kSize));
  EXPECT_TRUE(
      std::equal(alone.dweight.begin(), alone.dweight.end(), two.dweight.begin() + kSize * kSize));
}

KERNEL_TEST(KernelsDistinct, FactorsRoundedToBfloat16) {
  check<4, 128, true>(3, 60, 20, 15);
  check<16, 5, true>(1, 64, 1000, 16);
  check<33, 20, true>(2, 200, 150, 17);
}

KERNEL_TEST(KernelsDistinct, ManyRowsAreAddedGroupByGroup) {
  check<4, 16>(5, 1500, 700, 8);    // two lookups do not fit beside each other
  check<4, 16>(2, 3000, 100000, 9); // one alone is more than a group
  check<2, 8>(400, 40, 3, 10);
  check<16, 20>(2, 1200, 1000, 14); // the gradients of a lookup in several chunks
}

} // namespace
} // namespace genrec::rt::kernels
