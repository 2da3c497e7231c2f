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
#include "genrec_rt/scratch_sizes.h"
#include "genrec_rt/kernels/shared/distinct_lookups.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

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

  /// The first lookup finds `ofFirst` rows at most, if that is not 0.
  Lookups(int64_t parts, int64_t count, int64_t ids, int64_t spare, std::mt19937_64 &random,
          int64_t ofFirst = 0)
      : parts(parts), count(count), capacity(count + spare), rows(makeRoot(count, random)),
        rowsThere(*rows, nullptr, capacity), view(rows->view) {
    view.capacity = capacity;
    view.device = rowsThere.get();
    for (int64_t part = 0; part < parts; ++part) {
      auto &list = handles.emplace_back(static_cast<size_t>(capacity));
      const auto own = static_cast<uint64_t>(part == 0 && ofFirst > 0 ? ofFirst : ids);
      for (float *&row : list) // addresses: nothing is read there
        row = reinterpret_cast<float *>((1 + random() % own) * 256);
      handlesThere.emplace_back(list);
    }
  }
};

/// As many lookups as groups have together.
int64_t countLookups(const std::vector<int32_t> &groups) {
  return std::accumulate(groups.begin(), groups.end(), int64_t(0));
}

/// What the CPU finds.
struct Found {
  std::vector<std::vector<float *>> rows; ///< of each group
  std::vector<int64_t> memory;

  Found(const Lookups &of, const std::vector<int32_t> &groups)
      : memory(static_cast<size_t>(genrec_rt_distinct_bytes(of.parts, of.count) / 8 + 1)) {
    std::vector<float *const *> lists;
    for (const auto &list : of.handles)
      lists.push_back(list.data());
    std::vector<float **> room;
    for (int32_t lookups : groups)
      rows.emplace_back(static_cast<size_t>(lookups * of.count + 1));
    for (auto &own : rows)
      room.push_back(own.data());
    std::vector<char> scratch(static_cast<size_t>(distinctScratchBytes(of.count)));
    findDistinct(nullptr, of.count, {groups, lists.data(), room.data(), memory.data()},
                 [&]() -> void * { return scratch.data(); });
    int64_t first = 0;
    for (size_t group = 0; group < groups.size(); first += groups[group++])
      rows[group].resize(static_cast<size_t>(lookups(first, groups[group]).rows()));
  }

  kernels::DistinctLookups lookups(int64_t first, int64_t some) const {
    return kernels::DistinctLookups(memory.data()).from(first, some);
  }
};

/// What the device finds.
struct FoundThere {
  std::vector<std::unique_ptr<DeviceDomain>> distinct; ///< of each group
  std::vector<Copy<float *>> rows;
  Copy<char> memory;

  FoundThere(Lookups &of, const std::vector<int32_t> &groups)
      : memory(std::vector<char>(static_cast<size_t>(
            GENREC_DISTINCT_BYTES_PER_ROW * of.parts * of.capacity +
            GENREC_DISTINCT_BYTES_PER_PART * of.parts + GENREC_DISTINCT_BYTES))) {
    std::vector<float *const *> lists;
    for (auto &list : of.handlesThere)
      lists.push_back(list.data());
    std::vector<genrec_domain> made(groups.size());
    std::vector<genrec_domain *> domains;
    std::vector<float **> room;
    for (size_t group = 0; group < groups.size(); ++group) {
      const int64_t capacity = groups[group] * of.capacity;
      distinct.push_back(std::make_unique<DeviceDomain>(0, capacity));
      rows.emplace_back(std::vector<float *>(static_cast<size_t>(capacity)));
      made[group].capacity = capacity;
      made[group].device = distinct[group]->get();
      domains.push_back(&made[group]);
    }
    for (auto &own : rows)
      room.push_back(own.data());
    DistinctLookupRows finder;
    finder.run({{groups, lists.data(), room.data(), memory.data()}, &of.view, domains.data()},
               testStream());
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
};

/// Groups of lookups of `count` rows each among `ids` rows of a table, with and without room left.
void expectFound(const std::vector<int32_t> &groups, int64_t count, int64_t ids) {
  std::mt19937_64 random(1);
  const int64_t parts = countLookups(groups);
  for (int64_t spare : {0, 7}) {
    SCOPED_TRACE(testing::Message() << groups.size() << " groups, " << parts << " lookups of "
                                    << count << " rows among " << ids << ", room for " << spare);
    Lookups lookups(parts, count, ids, spare, random);
    const Found found(lookups, groups);
    FoundThere there(lookups, groups);
    for (size_t group = 0; group < groups.size(); ++group) {
      const genrec_domain made = there.distinct[group]->fetch();
      ASSERT_EQ(made.count, static_cast<int64_t>(found.rows[group].size())) << group;
      EXPECT_EQ(made.max_length, made.count);
      auto rows = there.rows[group].fetch();
      rows.resize(found.rows[group].size());
      EXPECT_EQ(rows, found.rows[group]) << group;
    }
    const kernels::DistinctLookups expected = found.lookups(0, parts);
    auto memory = there.memory.fetch();
    const DistinctLookups got(parts, &lookups.view, memory.data());
    for (int64_t part = 0; part <= parts; ++part)
      ASSERT_EQ(got.starts[part], expected.starts[part]);
    for (int64_t place = 0; place < parts * count; ++place)
      ASSERT_EQ(got.numbers[place], expected.starts[place / count] + expected.index[place]);
  }
}

TEST(DistinctLookups, RowsAreThoseOfEachLookupInTheOrderOfFirstAppearance) {
  expectFound({1}, 0, 3);
  expectFound({1}, 1, 1);
  expectFound({3}, 31, 5);
  expectFound({2}, 32, 1000);
  expectFound({2}, 33, 1);
  expectFound({5}, 255, 40);
  expectFound({2}, 257, 100);
  expectFound({300}, 9, 4);
}

TEST(DistinctLookups, GroupsHaveRowsOfTheirOwn) {
  expectFound({1, 1}, 0, 3);
  expectFound({1, 1}, 1, 1);
  expectFound({2, 1, 3}, 33, 10);
  expectFound({1, 270}, 9, 4);
  expectFound(std::vector<int32_t>(300, 1), 3, 2); // more groups than a launch takes
}

struct Results {
  std::vector<float> y, dweight;
  std::vector<std::vector<float>> dvalues; ///< of each group
};

/// A product and its gradient: `parts` lookups in the first group, of rows of the first D, one more
/// in each other.
template <int N, int... D> struct Case {
  static constexpr std::array<int, sizeof...(D)> kWidths = {D...};
  static constexpr int64_t kLdY = N + 3;

  std::vector<int32_t> groups;
  Lookups lookups;
  Found found;
  int64_t weightRows = 0; ///< of all lookups
  std::vector<std::vector<float>> values;
  std::vector<float> weight, gradient;
  std::vector<int64_t> columns;

  static std::vector<int32_t> groupsOf(int64_t parts) {
    std::vector<int32_t> groups;
    while (groups.size() < kWidths.size())
      groups.push_back(static_cast<int32_t>(parts + static_cast<int64_t>(groups.size())));
    return groups;
  }
  static int64_t ldValues(size_t group) { return kWidths[group] + 1; }

  Case(int64_t parts, int64_t count, int64_t ids, std::mt19937_64 &random, int64_t ofFirst = 0)
      : groups(groupsOf(parts)),
        lookups(countLookups(groups), count, ids, /*spare=*/5, random, ofFirst),
        found(lookups, groups), gradient(fractions(count * kLdY, random)) {
    for (size_t group = 0; group < groups.size(); ++group) {
      weightRows += groups[group] * kWidths[group];
      values.push_back(
          fractions(static_cast<int64_t>(found.rows[group].size()) * ldValues(group), random));
    }
    weight = fractions((weightRows + 5) * N, random);
    int64_t column = weightRows + 2; // any order, with gaps
    for (size_t group = 0; group < groups.size(); ++group)
      for (int32_t part = 0; part < groups[group]; ++part)
        columns.push_back(column -= kWidths[group]);
  }

  /// Memory for results: what is not written stays -7.
  Results room() const {
    auto floats = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count), -7); };
    Results results{floats(lookups.count * kLdY), floats(weightRows * N), {}};
    for (size_t group = 0; group < groups.size(); ++group)
      results.dvalues.push_back(
          floats(static_cast<int64_t>(found.rows[group].size()) * kWidths[group]));
    return results;
  }

  Results onCpu() {
    Results results = room();
    size_t group = 0;
    int64_t first = 0;
    float *dweight = results.dweight.data();
    auto run = [&]<int Width>() {
      distinctLinearOnCpu<Width, N>({found.memory.data(), first, groups[group],
                                     values[group].data(), ldValues(group), weight.data(),
                                     columns.data() + first, gradient.data(), kLdY},
                                    {results.y.data(), results.dvalues[group].data(), dweight});
      dweight += groups[group] * Width * N;
      first += groups[group++];
    };
    (run.template operator()<D>(), ...);
    return results;
  }

  /// `before` floats lie in front of the gradients of values.
  Results onDevice(size_t before = 0) {
    FoundThere there(lookups, groups);
    Copy<float> w(weight), g(gradient);
    Results results = room();
    Copy<float> y(results.y), dweight(results.dweight);
    std::vector<Copy<float>> x, dvalues;
    std::vector<DistinctGroup> of;
    std::vector<float *> gradients;
    for (size_t group = 0; group < groups.size(); ++group) {
      x.emplace_back(values[group]);
      dvalues.emplace_back(std::vector<float>(results.dvalues[group].size() + before, -7));
      of.push_back({groups[group], kWidths[group], x[group].data(), ldValues(group)});
      gradients.push_back(dvalues[group].data() + before);
    }
    const DistinctProduct product{
        {lookups.parts, &lookups.view, there.memory.data()}, of, N, w.data(), columns.data()};
    Scratch scratch(distinctProductScratchBytes(product)),
        backward(distinctGradientScratchBytes(product));
    multiplyDistinct(product, y.data(), kLdY, scratch.data(), testStream());
    multiplyDistinctGradient(product, {g.data(), kLdY, gradients.data(), dweight.data()},
                             backward.data(), testStream());
    for (size_t group = 0; group < groups.size(); ++group) {
      std::vector<float> all = dvalues[group].fetch();
      results.dvalues[group].assign(all.begin() + static_cast<int64_t>(before), all.end());
    }
    results.y = y.fetch();
    results.dweight = dweight.fetch();
    return results;
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
template <int N, int... D>
void expectCpus(int64_t parts, int64_t count, int64_t ids, int64_t ofFirst = 0) {
  SCOPED_TRACE(testing::Message() << parts << " lookups by " << N << ", " << count << " rows, "
                                  << ids << " ids");
  std::mt19937_64 random(static_cast<uint64_t>(parts * 100 + count));
  Case<N, D...> of(parts, count, ids, random, ofFirst);
  const Results expected = of.onCpu(), got = of.onDevice();
  if constexpr (N % 16 == 0) {
    EXPECT_EQ(got.y, expected.y);
    EXPECT_EQ(got.dweight, expected.dweight);
  }
  const auto rows = static_cast<double>(count);
  expectClose(got.y, expected.y, static_cast<double>(of.weightRows));
  expectClose(got.dweight, expected.dweight, rows);
  for (size_t group = 0; group < of.groups.size(); ++group) {
    SCOPED_TRACE(group);
    if (of.kWidths[group] % 16 == 0)
      EXPECT_EQ(got.dvalues[group], expected.dvalues[group]);
    expectClose(got.dvalues[group], expected.dvalues[group], std::max(rows, double(N)));
  }
}

TEST(DistinctProducts, AreThoseOfTheCpu) {
  expectCpus<1, 1>(2, 9, 4);
  expectCpus<128, 4>(7, 31, 20);
  expectCpus<33, 8>(3, 65, 1);
  expectCpus<64, 16>(1, 64, 1000);
  expectCpus<70, 17>(2, 63, 50);
  expectCpus<16, 64>(2, 255, 300);
  expectCpus<16, 3>(2, 0, 3);
  expectCpus<144, 16>(1, 257, 120);
  expectCpus<16, 80>(2, 100, 70);
}

/// Windows have lookups of several groups, and groups those of several windows.
TEST(DistinctProducts, GroupsHaveAWidthEach) {
  expectCpus<16, 64, 3>(1, 9, 4);
  expectCpus<16, 3, 80, 16>(2, 100, 70);
  expectCpus<144, 16, 4>(3, 257, 120);
  expectCpus<16, 16, 4>(2, 700, 100000); // the wider rows in more chunks
  expectCpus<16, 4, 16>(150, 5, 3);
  expectCpus<16, 80, 3>(2, 0, 3);
}

/// A wide group has eight chunks at most, a narrow one more.
TEST(DistinctProducts, GroupsHaveChunksEach) {
  constexpr int kRows = 2000, kColumns = 144, kWide = 416;
  static_assert(mostDistinctChunks(kRows, kWide, kColumns) <
                mostDistinctChunks(kRows, 1, kColumns));
  expectCpus<kColumns, kWide, 1>(1, kRows, 1000000, /*ofFirst=*/20);
}

TEST(DistinctProducts, LongSumsAreCutAsOnTheCpu) {
  expectCpus<16, 16>(2, 700, 100000); // the gradients of a lookup in several chunks
  expectCpus<16, 4>(300, 5, 3);       // more lookups than a launch takes
}

/// Whole numbers, which have one sum in every order: `ids` rows that many rows of the batch find.
template <int N, int... D> void expectSumsOfGiants(int64_t parts, int64_t count, int64_t ids) {
  SCOPED_TRACE(testing::Message() << parts << " lookups by " << N << ", " << count << " rows, "
                                  << ids << " ids");
  std::mt19937_64 random(static_cast<uint64_t>(count));
  Case<N, D...> of(parts, count, ids, random);
  const auto makeWhole = [&](std::vector<float> &values) {
    for (float &value : values)
      value = static_cast<float>(random() % 5) - 2;
  };
  makeWhole(of.weight);
  makeWhole(of.gradient);
  for (std::vector<float> &values : of.values)
    makeWhole(values);
  const Results expected = of.onCpu(), got = of.onDevice();
  EXPECT_EQ(got.dvalues, expected.dvalues);
  EXPECT_EQ(got.dweight, expected.dweight);
}

/// A warp adds 256 gradients, others add those of a row with more in pieces.
TEST(DistinctProducts, AddGradientsOfRowsThatManyFind) {
  expectSumsOfGiants<16, 3>(1, 256, 1);
  expectSumsOfGiants<33, 8>(2, 257, 1);
  expectSumsOfGiants<144, 16>(3, 900, 2);
  expectSumsOfGiants<16, 4>(3, 1100, 40);
  expectSumsOfGiants<1, 1>(1, 256 * 256 + 300, 1); // pieces of pieces
  expectSumsOfGiants<16, 3, 16>(1, 700, 1);
}

/// What lies between kernels does not grow with the number of lookups.
TEST(DistinctProducts, WindowsBoundTheirMemory) {
  constexpr int64_t kCapacity = 64, kColumns = 128, kOfOne = kCapacity * kColumns * 4;
  genrec_domain rows{};
  rows.capacity = kCapacity;
  const auto bytes = [&](int64_t parts, int64_t n) {
    const std::array groups{DistinctGroup{parts, 1}};
    const DistinctProduct product{{parts, &rows, nullptr}, groups, n};
    return std::array{distinctProductScratchBytes(product), distinctGradientScratchBytes(product)};
  };
  for (int64_t parts : {2, 300})
    for (size_t i : {0, 1})
      EXPECT_LE(bytes(parts, kColumns)[i] - bytes(parts, 1)[i], 2 * kOfOne) << parts << " " << i;
}

/// Rows of whole words that begin at any float.
TEST(DistinctProducts, GradientsAreAlignedToAFloatAlone) {
  std::mt19937_64 random(6);
  Case<16, 8> of(2, 40, 30, random);
  const Results aligned = of.onDevice();
  for (size_t before : {1, 2, 3})
    EXPECT_EQ(of.onDevice(before).dvalues, aligned.dvalues) << before;
}

TEST(DistinctProducts, HaveTheSameBitsInLargerMemory) {
  std::mt19937_64 random(5);
  Case<20, 8, 3> of(3, 90, 30, random);
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
