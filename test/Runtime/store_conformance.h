//===- store_conformance.h - What every embedding store does -----*- C++ -*-===//
//
// One suite for all implementations of TableStore, which see them as HostSide has them
// (host_side.h). An implementation comes as a class derived from that which is made from a
// StoreConfig, and has `slots()` and `kMany`, how many ids make a large test: see CpuStore in
// store_test.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_STORE_CONFORMANCE_H
#define GENREC_TEST_RUNTIME_STORE_CONFORMANCE_H

#include "id_of_hash.h"

#include "genrec_rt/table_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace genrec::rt::test {

inline StoreConfig configOf(int64_t dim, int32_t states, uint64_t seed = 7) {
  StoreConfig config;
  config.dim = dim;
  config.states = states;
  config.hashSeed = 0; // so that ids can be made that collide
  config.initializer = {2 /* normal */, 0.1, seed, nameHash("movie"), 1, 1};
  return config;
}

template <class Store> class StoreConformance : public testing::Test {
protected:
  using Ids = std::vector<int64_t>;

  static Ids randomIds(int64_t count, uint64_t seed, uint64_t below) {
    std::mt19937_64 random(seed);
    Ids ids(static_cast<size_t>(count));
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % below);
    return ids;
  }
  /// Distinct ids in the order of first appearance.
  static Ids distinct(const Ids &ids) {
    std::set<int64_t> seen;
    Ids result;
    for (int64_t id : ids)
      if (seen.insert(id).second)
        result.push_back(id);
    return result;
  }
};
TYPED_TEST_SUITE_P(StoreConformance);

TYPED_TEST_P(StoreConformance, EmptyBatchAndEmptyStore) {
  TypeParam store(configOf(4, 0));
  EXPECT_TRUE(store.insert({}).empty());
  int64_t missing = -1;
  EXPECT_TRUE(store.find({}, &missing).empty());
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(store.find({5}, &missing)[0], nullptr);
  EXPECT_EQ(missing, 1);
  EXPECT_EQ(store.size(), 0);
}

TYPED_TEST_P(StoreConformance, OneIdByItself) {
  TypeParam store(configOf(4, 1));
  store.write(store.insert({5})[0], 0, 2.5f);
  EXPECT_EQ(store.values(store.find({5})[0])[0], 2.5f);
  EXPECT_EQ(store.exportedIds(1), std::vector<int64_t>{5});
  EXPECT_EQ(store.values(store.exportedRows(1)[0])[0], 2.5f);
  store.erase({5});
  EXPECT_EQ(store.find({5})[0], nullptr);
  EXPECT_EQ(store.size(), 0);
}

TYPED_TEST_P(StoreConformance, ColumnsOfRowsAreReadAndWritten) {
  TypeParam store(configOf(5, 1));
  auto rows = store.insert({5, 6, 7});
  std::swap(rows[0], rows[2]);
  for (int64_t width : {1, 3}) {
    std::vector<float> some(static_cast<size_t>(3 * width));
    std::iota(some.begin(), some.end(), static_cast<float>(10 * width));
    const float before = store.values(rows[1])[0];
    store.writeColumns(rows, 1, width, some);
    EXPECT_EQ(store.columns(rows, 1, width), some);
    EXPECT_EQ(store.values(rows[1])[1], some[static_cast<size_t>(width)]);
    EXPECT_EQ(store.values(rows[1])[0], before);
  }
}

TYPED_TEST_P(StoreConformance, RowsAreNumberedByFirstAppearanceAndAligned) {
  TypeParam store(configOf(50, 2));
  auto rows = store.insert({9, 0, 9, -4, 0, 7});
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{9, 0, -4, 7}));
  EXPECT_EQ(rows[0], rows[2]);
  EXPECT_EQ(rows[1], rows[4]);
  EXPECT_EQ(store.rowStride(), 160); // 150 floats, rounded to 64 bytes
  for (auto row : rows)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(row) % 64, 0u);
}

TYPED_TEST_P(StoreConformance, InvalidEntriesAreLeftAlone) {
  TypeParam store(configOf(4, 0));
  float mark = 0;
  auto rows = store.insert({1, 2, 3}, {1, 0, 1}, &mark);
  EXPECT_EQ(rows[1], &mark);
  EXPECT_EQ(store.size(), 2);
  int64_t missing = 0;
  rows = store.find({1, 3, 7, 8}, &missing, {1, 0, 0, 1}, &mark);
  EXPECT_EQ(rows[1], &mark) << "though it has a row";
  EXPECT_EQ(rows[2], &mark);
  EXPECT_EQ(rows[3], nullptr);
  EXPECT_EQ(missing, 1);
}

TYPED_TEST_P(StoreConformance, BatchesOfEverySize) {
  // One below, at and above a warp, a block and many blocks; every id twice.
  TypeParam store(configOf(4, 0));
  int64_t first = 0;
  for (int64_t count : {1, 31, 32, 33, 255, 256, 257, 700}) {
    std::vector<int64_t> ids(static_cast<size_t>(2 * count));
    for (int64_t i = 0; i < 2 * count; ++i)
      ids[static_cast<size_t>(i)] = first + i * 7919 % count;
    auto rows = store.insert(ids);
    EXPECT_EQ(store.find(ids), rows) << count;
    EXPECT_EQ(store.size(), first + count);
    first += count;
  }
}

TYPED_TEST_P(StoreConformance, AllIdsEqual) {
  TypeParam store(configOf(8, 1));
  std::vector<int64_t> ids(1000, 42);
  auto rows = store.insert(ids);
  EXPECT_EQ(store.size(), 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), rows[0]), 1000);
}

TYPED_TEST_P(StoreConformance, GrowthMovesKeysAndNeverValues) {
  TypeParam store(configOf(3, 1));
  const auto ids = this->randomIds(TypeParam::kMany, 3, uint64_t(1) << 52);
  auto early = store.insert({ids.begin(), ids.begin() + 100});
  int64_t slots = store.slots();
  store.write(early[7], 2, 99.0f);
  // The table grows in the middle of this batch, more than once.
  auto rows = store.insert(ids);
  EXPECT_EQ(store.ids(), this->distinct(ids));
  EXPECT_GE(store.slots(), 4 * slots);
  EXPECT_LE(store.size() * 4, store.slots() * 3);
  EXPECT_TRUE(std::equal(early.begin(), early.end(), rows.begin()));
  EXPECT_EQ(store.values(rows[7])[2], 99.0f);
  int64_t missing = -1;
  EXPECT_EQ(store.find(ids, &missing), rows);
  EXPECT_EQ(missing, 0);
}

TYPED_TEST_P(StoreConformance, ATableExactlyFullIsFound) {
  TypeParam store(configOf(1, 0));
  int64_t slots = store.slots(), full = slots / 4 * 3;
  std::vector<int64_t> ids(static_cast<size_t>(full));
  std::iota(ids.begin(), ids.end(), 1000);
  auto rows = store.insert(ids);
  EXPECT_EQ(store.slots(), slots);
  EXPECT_EQ(store.insert(ids), rows); // nothing new: nothing grows
  EXPECT_EQ(store.slots(), slots);
  store.insert({int64_t(1) << 40});
  EXPECT_EQ(store.slots(), 2 * slots);
  EXPECT_EQ(store.find(ids), rows);
}

TYPED_TEST_P(StoreConformance, AdversarialIdsOfOneGroupDigestAndStepAreAllFound) {
  // All hashes agree in the 20 low bits (group), the 7 high bits (digest, class) and the bits that
  // give the step.
  const uint64_t many = std::min<int64_t>(TypeParam::kMany, 4000);
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < many; ++i) {
    ids.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x123) << 32 | i << 20 | 0x777));
    ASSERT_EQ(splitMix64(static_cast<uint64_t>(ids.back())) & 0xFFFFF, 0x777u);
  }
  TypeParam store(configOf(2, 0));
  auto rows = store.insert(ids);
  EXPECT_EQ(store.ids(), ids);
  int64_t missing = -1;
  EXPECT_EQ(store.find(ids, &missing), rows);
  EXPECT_EQ(missing, 0);
  std::vector<int64_t> others;
  for (uint64_t i = 0; i < 64; ++i)
    others.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x124) << 32 | i << 20 | 0x777));
  store.find(others, &missing);
  EXPECT_EQ(missing, 64);
}

TYPED_TEST_P(StoreConformance, InitialValuesDependOnSeedNameAndIdAlone) {
  TypeParam first(configOf(70, 1)), second(configOf(70, 1)), other(configOf(70, 1, 8));
  auto alone = first.values(first.insert({42})[0]);
  auto late = second.values(second.insert({1, 2, 3, 42})[3]);
  auto seeded = other.values(other.insert({42})[0]);
  EXPECT_EQ(alone, late);
  EXPECT_FALSE(std::equal(alone.begin(), alone.begin() + 70, seeded.begin()));
  StoreConfig renamed = configOf(70, 1);
  renamed.initializer.nameHash = nameHash("user");
  TypeParam named(renamed);
  auto ofUser = named.values(named.insert({42})[0]);
  EXPECT_FALSE(std::equal(alone.begin(), alone.begin() + 70, ofUser.begin()));
  // The definition, which no store owns.
  std::vector<float> expected(70);
  configOf(70, 1).initializer.fill(42, 70, expected.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), alone.begin()));
  for (size_t i = 70; i < alone.size(); ++i)
    EXPECT_EQ(alone[i], 0.0f);
  const int64_t far = int64_t(7) << 32 | 42; // all bits of an id count
  alone = first.values(first.insert({far})[0]);
  configOf(70, 1).initializer.fill(far, 70, expected.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), alone.begin()));
  constexpr int64_t kWide = 4100;
  TypeParam wide(configOf(kWide, 0));
  alone = wide.values(wide.insert({42})[0]);
  expected.resize(kWide);
  configOf(kWide, 0).initializer.fill(42, kWide, expected.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), alone.begin()));
}

TYPED_TEST_P(StoreConformance, TablesThatShareAStoreHaveInitialValuesOfTheirOwn) {
  StoreConfig config = configOf(70, 0);
  config.keyBits = 40;
  config.members = {{2, 0.1, 7, nameHash("movie"), 1, 1}, {4, 0.5, 8, nameHash("user"), 1, 1}};
  TypeParam store(config);
  const std::vector<int64_t> ids = {5, int64_t(1) << 40 | 5, 6, int64_t(1) << 40 | 7};
  auto rows = store.insert(ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<float> expected(70), values = store.values(rows[i]);
    config.members[i % 2].fill(static_cast<uint64_t>(ids[i] & 0xFF), 70, expected.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), values.begin())) << ids[i];
  }
}

TYPED_TEST_P(StoreConformance, TablesThatShareAStoreAreExportedApart) {
  StoreConfig config = configOf(2, 0);
  config.keyBits = 40;
  config.members.assign(3, config.initializer);
  TypeParam store(config);
  const int64_t second = int64_t(1) << 40;
  auto rows = store.insert({5, second | 5, 6, second | 7, 8});
  using Exported = decltype(store.exported());
  EXPECT_EQ(store.exported(0), (Exported{{5, rows[0]}, {6, rows[2]}, {8, rows[4]}}));
  EXPECT_EQ(store.exported(1), (Exported{{second | 5, rows[1]}, {second | 7, rows[3]}}));
  EXPECT_TRUE(store.exported(2).empty());
  EXPECT_EQ(store.exported(0).size(), 3u) << "again";
  store.erase({6, second | 5});
  EXPECT_EQ(store.exported(0).size(), 2u);
  EXPECT_EQ(store.exported(1)[0].first, second | 7);
  store.insert({second | 9});
  EXPECT_EQ(store.exported(1).size(), 2u);
}

TYPED_TEST_P(StoreConformance, WhatLeavesAStoreDoesNotDependOnTheSeed) {
  StoreConfig config = configOf(3, 0);
  TypeParam unseeded(config);
  config.hashSeed = splitMix64(99);
  TypeParam seeded(config);
  const auto ids = this->randomIds(500, 5, uint64_t(1) << 40);
  auto rows = seeded.insert(ids);
  unseeded.insert(ids);
  EXPECT_EQ(seeded.ids(), unseeded.ids());
  EXPECT_EQ(seeded.find(ids), rows);
  EXPECT_EQ(seeded.values(rows[7]), unseeded.values(unseeded.find({ids[7]})[0]));
}

TYPED_TEST_P(StoreConformance, AdagradStatesStartAtTheAccumulator) {
  StoreConfig config = configOf(3, 2);
  config.initialAccumulator = 0.25;
  TypeParam store(config);
  auto row = store.values(store.insert({1})[0]);
  for (size_t i = 3; i < 6; ++i)
    EXPECT_EQ(row[i], 0.25f);
  for (size_t i = 6; i < 9; ++i)
    EXPECT_EQ(row[i], 0.0f);
}

TYPED_TEST_P(StoreConformance, ClearForgetsRowsAndKeepsWorking) {
  TypeParam store(configOf(2, 1));
  auto row = store.insert({1, 2})[1];
  store.write(row, 0, 99);
  store.write(row, 2, 99);
  store.clear();
  EXPECT_EQ(store.size(), 0);
  EXPECT_EQ(store.find({2})[0], nullptr);
  auto again = store.values(store.insert({2})[0]);
  EXPECT_NE(again[0], 99.0f);
  EXPECT_EQ(again[2], 0.0f);
}

/// The float that a bfloat16 in a row of them is.
inline float valueOf(const std::vector<float> &row, int64_t column) {
  uint16_t half;
  std::memcpy(&half, reinterpret_cast<const char *>(row.data()) + column * 2, sizeof half);
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

TYPED_TEST_P(StoreConformance, ValuesOfBf16AreThoseOfFloatsRoundedToNearest) {
  for (int64_t dim : {1, 4, 5, 50}) {
    StoreConfig config = configOf(dim, 1);
    config.initialAccumulator = 0.25;
    TypeParam floats(config);
    config.element = RowElement::bf16;
    TypeParam halves(config);
    const int64_t begin = (dim + 1) / 2;
    EXPECT_EQ(halves.rowStride(), (begin + dim + 15) / 16 * 16);
    for (int64_t id : {3, 900, 3}) {
      const auto wide = floats.values(floats.insert({id})[0]);
      const auto row = halves.values(halves.insert({id})[0]);
      for (int64_t i = 0; i < dim; ++i) {
        const auto bits = std::bit_cast<uint32_t>(wide[i]);
        const uint32_t nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
        ASSERT_EQ(valueOf(row, i), std::bit_cast<float>(nearest)) << dim << " " << i;
        ASSERT_EQ(row[begin + i], 0.25f);
      }
      if (dim % 2)
        ASSERT_EQ(valueOf(row, dim), 0.0f); // what fills it up
      for (size_t i = begin + dim; i < row.size(); ++i)
        ASSERT_EQ(row[i], 0.0f);
    }
  }
}

TYPED_TEST_P(StoreConformance, RowsAreIdentifiedByNameAndIdWhereverTheyAre) {
  StoreConfig config = configOf(50, 2);
  config.element = RowElement::bf16;
  TypeParam alone(config);
  const RowInitializer own = config.initializer;
  config.members = {{2, 0.1, 7, nameHash("user"), 1, 1}, own};
  config.keyBits = 40;
  TypeParam shared(config);
  auto keyOf = [](int64_t id) { return int64_t(1) << 40 | id; };
  std::vector<int64_t> ids = this->randomIds(TypeParam::kMany, 5, uint64_t(1) << 40), keys;
  for (int64_t id : ids)
    keys.push_back(keyOf(id));
  auto rows = alone.insert(ids), sharedRows = shared.insert(keys);
  std::vector<uint64_t> expected;
  for (int64_t id : ids)
    expected.push_back(mixIdentity(nameHash("movie"), static_cast<uint64_t>(id)));
  EXPECT_EQ(alone.identities(rows), expected);
  EXPECT_EQ(shared.identities(sharedRows), expected);
  const auto other = shared.insert({3});
  EXPECT_EQ(shared.identities(other)[0], mixIdentity(nameHash("user"), 3));
  // Addresses of no row, and entries that are not counted.
  float elsewhere = 0;
  EXPECT_EQ(alone.identities({nullptr, &elsewhere, rows[0]}),
            (std::vector<uint64_t>{0, 0, expected[0]}));
  EXPECT_EQ(alone.identities({rows[0], rows[1]}, 1), (std::vector<uint64_t>{expected[0], 99}));
  // A row that leaves gives its place to another one.
  alone.erase({ids[0]});
  const std::vector<int64_t> rest{ids[1], ids.back()};
  EXPECT_EQ(alone.identities(alone.find(rest)),
            (std::vector<uint64_t>{expected[1], expected.back()}));
}

REGISTER_TYPED_TEST_SUITE_P(
    StoreConformance, EmptyBatchAndEmptyStore, OneIdByItself, ColumnsOfRowsAreReadAndWritten,
    RowsAreNumberedByFirstAppearanceAndAligned, InvalidEntriesAreLeftAlone, BatchesOfEverySize,
    AllIdsEqual, GrowthMovesKeysAndNeverValues, ATableExactlyFullIsFound,
    AdversarialIdsOfOneGroupDigestAndStepAreAllFound, InitialValuesDependOnSeedNameAndIdAlone,
    TablesThatShareAStoreHaveInitialValuesOfTheirOwn, TablesThatShareAStoreAreExportedApart,
    WhatLeavesAStoreDoesNotDependOnTheSeed, AdagradStatesStartAtTheAccumulator,
    ClearForgetsRowsAndKeepsWorking, ValuesOfBf16AreThoseOfFloatsRoundedToNearest,
    RowsAreIdentifiedByNameAndIdWhereverTheyAre);

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_STORE_CONFORMANCE_H
