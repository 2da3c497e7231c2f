//===- distinct_test.cpp - Products per distinct row on the device --------===//
//
// Against the CPU's: to the bit where it adds in the same order, else against double precision.
//
//===----------------------------------------------------------------------===//

#include "cpu_reference.h"
#include "domain_copies.h"
#include "scratch.h"

#include "../../runtime/embedding/cuda/distinct_lookups.h"
#include "../../runtime/embedding/distinct.h"
#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/shared/distinct_lookups.h"

#include <gtest/gtest.h>

#include <array>

namespace genrec::rt::cuda::test {
namespace {

/// `parts` lookups of `count` rows each among `ids` rows of a table, on both sides.
struct Lookups {
  int64_t parts, count, capacity;
  std::unique_ptr<HostDomain> rows;
  DeviceDomain rowsThere;
  genrec_domain view; ///< as the host's step has it
  std::vector<std::vector<float *>> handles;
  std::vector<Copy<float *>> handlesThere;

  Lookups(int64_t parts, int64_t count, int64_t ids, int64_t spare, std::mt19937_64 &random)
      : parts(parts), count(count), capacity(count + spare), rows(makeRoot(count, random)),
        rowsThere(*rows, nullptr, capacity), view(rows->view) {
    view.capacity = capacity;
    view.device = rowsThere.get();
    for (int64_t part = 0; part < parts; ++part) {
      auto &list = handles.emplace_back(static_cast<size_t>(capacity));
      for (float *&row : list) // addresses: nothing is read there
        row = reinterpret_cast<float *>((1 + random() % static_cast<uint64_t>(ids)) * 256);
      handlesThere.emplace_back(list);
    }
  }
};

/// What the CPU finds.
struct Found {
  std::vector<float *> rows;
  std::vector<int64_t> memory;

  explicit Found(const Lookups &of)
      : rows(static_cast<size_t>(of.parts * of.count + 1)),
        memory(static_cast<size_t>(genrec_rt_distinct_bytes(of.parts, of.count) / 8 + 1)) {
    std::vector<float *const *> lists;
    for (const auto &list : of.handles)
      lists.push_back(list.data());
    std::vector<char> scratch(static_cast<size_t>(distinctScratchBytes(of.count)));
    rows.resize(static_cast<size_t>(findDistinct(nullptr, of.parts, of.count, lists.data(),
                                                 rows.data(), memory.data(),
                                                 [&]() -> void * { return scratch.data(); })));
  }
};

/// What the device finds.
struct FoundThere {
  DeviceDomain distinct;
  Copy<float *> rows;
  Copy<char> memory;

  explicit FoundThere(Lookups &of)
      : distinct(0, of.parts * of.capacity),
        rows(std::vector<float *>(static_cast<size_t>(of.parts * of.capacity))),
        memory(std::vector<char>(static_cast<size_t>(
            GENREC_DISTINCT_BYTES_PER_ROW * of.parts * of.capacity +
            GENREC_DISTINCT_BYTES_PER_PART * of.parts + GENREC_DISTINCT_BYTES))) {
    std::vector<float *const *> lists;
    for (auto &list : of.handlesThere)
      lists.push_back(list.data());
    genrec_domain made{};
    made.capacity = of.parts * of.capacity;
    made.device = distinct.get();
    DistinctLookupRows finder;
    finder.run({static_cast<int32_t>(of.parts), &of.view, lists.data()}, &made, rows.data(),
               memory.data(), testStream());
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
};

TEST(DistinctLookups, RowsAreThoseOfEachLookupInTheOrderOfFirstAppearance) {
  std::mt19937_64 random(1);
  for (auto [parts, count, ids] : {std::tuple<int64_t, int64_t, int64_t>(1, 0, 3),
                                   {1, 1, 1},
                                   {3, 31, 5},
                                   {2, 32, 1000},
                                   {2, 33, 1},
                                   {5, 255, 40},
                                   {2, 257, 100},
                                   {300, 9, 4}})
    for (int64_t spare : {0, 7}) {
      SCOPED_TRACE(testing::Message() << parts << " lookups of " << count << " rows among " << ids);
      Lookups lookups(parts, count, ids, spare, random);
      const Found found(lookups);
      FoundThere there(lookups);
      ASSERT_EQ(there.distinct.fetch().count, static_cast<int64_t>(found.rows.size()));
      auto rows = there.rows.fetch();
      rows.resize(found.rows.size());
      EXPECT_EQ(rows, found.rows);
      const kernels::DistinctLookups expected(found.memory.data());
      auto memory = there.memory.fetch();
      const DistinctLookups got(parts, &lookups.view, memory.data());
      for (int64_t part = 0; part <= parts; ++part)
        ASSERT_EQ(got.starts[part], expected.starts[part]);
      for (int64_t place = 0; place < parts * count; ++place)
        ASSERT_EQ(got.numbers[place], expected.starts[place / count] + expected.index[place]);
    }
}

struct Results {
  std::vector<float> y, dvalues, dweight;
};

/// A product and its gradient.
template <int D, int N> struct Case {
  Lookups lookups;
  Found found;
  int64_t distinct, ldY = N + 3, ldValues = D + 1;
  std::vector<float> values, weight, gradient;
  std::vector<int64_t> columns;

  Case(int64_t parts, int64_t count, int64_t ids, std::mt19937_64 &random)
      : lookups(parts, count, ids, /*spare=*/5, random), found(lookups),
        distinct(static_cast<int64_t>(found.rows.size())),
        values(fractions(distinct * ldValues, random)),
        weight(fractions((parts * D + 5) * N, random)), gradient(fractions(count * ldY, random)) {
    for (int64_t part = 0; part < parts; ++part)
      columns.push_back((parts - 1 - part) * D + 2); // any order, with gaps
  }

  /// Memory for results: what is not written stays -7.
  Results room() const {
    auto floats = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count), -7); };
    return {floats(lookups.count * ldY), floats(distinct * D), floats(lookups.parts * D * N)};
  }

  Results onCpu() {
    Results results = room();
    distinctLinearOnCpu<D, N>({found.memory.data(), lookups.parts, values.data(), ldValues,
                               weight.data(), columns.data(), gradient.data(), ldY},
                              {results.y.data(), results.dvalues.data(), results.dweight.data()});
    return results;
  }

  /// `before` floats lie in front of the gradients of values.
  Results onDevice(int64_t before = 0) {
    FoundThere there(lookups);
    Copy<float> x(values), w(weight), g(gradient);
    Results results = room();
    results.dvalues.resize(results.dvalues.size() + static_cast<size_t>(before), -7);
    Copy<float> y(results.y), dvalues(results.dvalues), dweight(results.dweight);
    const DistinctProduct product{{lookups.parts, &lookups.view, there.memory.data()},
                                  D,
                                  N,
                                  x.data(),
                                  ldValues,
                                  w.data(),
                                  columns.data()};
    Scratch scratch(distinctProductScratchBytes(product)),
        backward(distinctGradientScratchBytes(product));
    multiplyDistinct(product, y.data(), ldY, scratch.data(), testStream());
    multiplyDistinctGradient(product, {g.data(), ldY, dvalues.data() + before, dweight.data()},
                             backward.data(), testStream());
    std::vector<float> gradients = dvalues.fetch();
    gradients.erase(gradients.begin(), gradients.begin() + before);
    return {y.fetch(), gradients, dweight.fetch()};
  }
};

/// Within k * 2^-24 of the sum of the terms' magnitudes, which values below 1 keep below k.
void expectClose(const std::vector<float> &got, const std::vector<float> &expected, double terms) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2 * terms * terms * 0x1p-24) << i;
}

/// Sizes around lanes, warps, tiles and chunks. Where a width fills the CPU's vectors the bits are
/// its own.
template <int D, int N> void expectCpus(int64_t parts, int64_t count, int64_t ids) {
  SCOPED_TRACE(testing::Message() << parts << " lookups of " << D << " by " << N << ", " << count
                                  << " rows, " << ids << " ids");
  std::mt19937_64 random(static_cast<uint64_t>(parts * 100 + count));
  Case<D, N> of(parts, count, ids, random);
  const Results expected = of.onCpu(), got = of.onDevice();
  if constexpr (N % 16 == 0) {
    EXPECT_EQ(got.y, expected.y);
    EXPECT_EQ(got.dweight, expected.dweight);
  }
  if constexpr (D % 16 == 0)
    EXPECT_EQ(got.dvalues, expected.dvalues);
  const auto rows = static_cast<double>(count);
  expectClose(got.y, expected.y, static_cast<double>(parts * D));
  expectClose(got.dvalues, expected.dvalues, std::max(rows, double(N)));
  expectClose(got.dweight, expected.dweight, rows);
}

TEST(DistinctProducts, AreThoseOfTheCpu) {
  expectCpus<1, 1>(2, 9, 4);
  expectCpus<4, 128>(7, 31, 20);
  expectCpus<8, 33>(3, 65, 1);
  expectCpus<16, 64>(1, 64, 1000);
  expectCpus<17, 70>(2, 63, 50);
  expectCpus<64, 16>(2, 255, 300);
  expectCpus<3, 16>(2, 0, 3);
  expectCpus<16, 144>(1, 257, 120);
  expectCpus<80, 16>(2, 100, 70);
}

TEST(DistinctProducts, LongSumsAreCutAsOnTheCpu) {
  expectCpus<16, 16>(2, 700, 100000); // the gradients of a lookup in several chunks
  expectCpus<4, 16>(300, 5, 3);       // more lookups than a launch takes
}

/// Whole numbers, which have one sum in every order: `ids` rows that many rows of the batch find.
template <int D, int N> void expectSumsOfGiants(int64_t parts, int64_t count, int64_t ids) {
  SCOPED_TRACE(testing::Message() << parts << " lookups of " << D << " by " << N << ", " << count
                                  << " rows, " << ids << " ids");
  std::mt19937_64 random(static_cast<uint64_t>(count));
  Case<D, N> of(parts, count, ids, random);
  for (std::vector<float> *values : {&of.values, &of.weight, &of.gradient})
    for (float &value : *values)
      value = static_cast<float>(random() % 5) - 2;
  const Results expected = of.onCpu(), got = of.onDevice();
  EXPECT_EQ(got.dvalues, expected.dvalues);
  EXPECT_EQ(got.dweight, expected.dweight);
}

/// A warp adds 256 gradients, others add those of a row with more in pieces.
TEST(DistinctProducts, AddGradientsOfRowsThatManyFind) {
  expectSumsOfGiants<3, 16>(1, 256, 1);
  expectSumsOfGiants<8, 33>(2, 257, 1);
  expectSumsOfGiants<16, 144>(3, 900, 2);
  expectSumsOfGiants<4, 16>(3, 1100, 40);
  expectSumsOfGiants<1, 1>(1, 256 * 256 + 300, 1); // pieces of pieces
}

/// What lies between kernels does not grow with the number of lookups.
TEST(DistinctProducts, GroupsBoundTheirMemory) {
  constexpr int64_t kCapacity = 64, kColumns = 128, kOfOne = kCapacity * kColumns * 4;
  genrec_domain rows{};
  rows.capacity = kCapacity;
  const auto bytes = [&](int64_t parts, int64_t n) {
    const DistinctProduct product{{parts, &rows, nullptr}, 1, n};
    return std::array{distinctProductScratchBytes(product), distinctGradientScratchBytes(product)};
  };
  for (int64_t parts : {2, 300})
    for (size_t i : {0, 1})
      EXPECT_LE(bytes(parts, kColumns)[i] - bytes(parts, 1)[i], 2 * kOfOne) << parts << " " << i;
}

/// Rows of whole words that begin at any float.
TEST(DistinctProducts, GradientsAreAlignedToAFloatAlone) {
  std::mt19937_64 random(6);
  Case<8, 16> of(2, 40, 30, random);
  const Results aligned = of.onDevice();
  for (int64_t before : {1, 2, 3})
    EXPECT_EQ(of.onDevice(before).dvalues, aligned.dvalues) << before;
}

TEST(DistinctProducts, HaveTheSameBitsInLargerMemory) {
  std::mt19937_64 random(5);
  Case<8, 20> of(3, 90, 30, random);
  const Results one = of.onDevice();
  of.lookups.capacity += 2000;
  for (auto &list : of.lookups.handles)
    list.resize(static_cast<size_t>(of.lookups.capacity));
  of.lookups.view.capacity = of.lookups.capacity;
  DeviceDomain larger(*of.lookups.rows, nullptr, of.lookups.capacity);
  of.lookups.view.device = larger.get();
  const Results two = of.onDevice();
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.dvalues, two.dvalues);
  EXPECT_EQ(one.dweight, two.dweight);
}

} // namespace
} // namespace genrec::rt::cuda::test
