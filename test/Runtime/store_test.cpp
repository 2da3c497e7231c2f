//===- store_test.cpp - The embedding store -------------------------------===//

#include "genrec_rt/identity.h"
#include "genrec_rt/store.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace genrec::rt::test {
namespace {

StoreConfig configOf(int64_t dim, int32_t states, uint64_t seed = 7) {
  StoreConfig config;
  config.dim = dim;
  config.states = states;
  config.initializer = {2 /* normal */, 0.1, seed, nameHash("movie"), 1, 1};
  return config;
}

struct Pool {
  explicit Pool(int32_t threads) : pool(genrec_rt_pool_create(threads)) {}
  ~Pool() { genrec_rt_pool_destroy(pool); }
  genrec_rt_pool *pool;
};

std::vector<float *> insertAll(EmbeddingStore &store, genrec_rt_pool *pool,
                               const std::vector<int64_t> &ids,
                               const std::vector<uint8_t> &valid = {}) {
  std::vector<float *> rows(ids.size());
  store.findOrInsert(pool, ids.data(), valid.empty() ? nullptr : valid.data(),
                     static_cast<int64_t>(ids.size()), rows.data());
  return rows;
}

TEST(Store, EmptyBatchAndEmptyStore) {
  EmbeddingStore store(configOf(4, 0));
  EXPECT_EQ(store.find(nullptr, nullptr, nullptr, 0, nullptr), 0);
  int64_t id = 5;
  float *row = reinterpret_cast<float *>(&id);
  EXPECT_EQ(store.find(nullptr, &id, nullptr, 1, &row), 1);
  EXPECT_EQ(row, nullptr);
  EXPECT_EQ(store.size(), 0);
}

TEST(Store, RowsAreNumberedByFirstAppearanceAndAligned) {
  EmbeddingStore store(configOf(50, 2));
  std::vector<float *> rows = insertAll(store, nullptr, {9, 0, 9, -4, 0, 7});
  EXPECT_EQ(store.size(), 4);
  EXPECT_EQ(store.id(0), 9);
  EXPECT_EQ(store.id(1), 0);
  EXPECT_EQ(store.id(2), -4);
  EXPECT_EQ(store.id(3), 7);
  EXPECT_EQ(rows[0], rows[2]);
  EXPECT_EQ(rows[0], store.row(0));
  EXPECT_EQ(store.rowStride(), 160); // 150 floats, rounded to 64 bytes
  for (float *row : rows)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(row) % 64, 0u);
}

TEST(Store, InvalidEntriesAreLeftAlone) {
  EmbeddingStore store(configOf(4, 0));
  float mark = 0;
  std::vector<int64_t> ids = {1, 2, 3};
  std::vector<uint8_t> valid = {1, 0, 1};
  std::vector<float *> rows(3, &mark);
  store.findOrInsert(nullptr, ids.data(), valid.data(), 3, rows.data());
  EXPECT_EQ(rows[1], &mark);
  EXPECT_EQ(store.size(), 2);
}

TEST(Store, GrowthMovesKeysAndNeverValues) {
  constexpr int64_t kIds = 200000;
  EmbeddingStore store(configOf(3, 1));
  std::vector<int64_t> ids(kIds);
  std::mt19937_64 random(3);
  std::set<int64_t> distinct;
  for (int64_t &id : ids) {
    id = static_cast<int64_t>(random() >> 12);
    distinct.insert(id);
  }
  std::vector<float *> early = insertAll(store, nullptr, {ids.begin(), ids.begin() + 100});
  int64_t slots = store.slots();
  std::vector<float *> rows = insertAll(store, nullptr, ids);
  EXPECT_EQ(store.size(), static_cast<int64_t>(distinct.size()));
  EXPECT_GT(store.slots(), slots);
  EXPECT_LE(store.size() * 4, store.slots() * 3);
  EXPECT_TRUE(std::equal(early.begin(), early.end(), rows.begin()));
  std::vector<float *> found(kIds);
  EXPECT_EQ(store.find(nullptr, ids.data(), nullptr, kIds, found.data()), 0);
  EXPECT_EQ(found, rows);
  for (int64_t number = 0; number < 1000; ++number)
    EXPECT_EQ(rows[number], found[number]);
}

TEST(Store, LoadIsAtMostThreeQuarters) {
  EmbeddingStore store(configOf(1, 0));
  int64_t slots = store.slots();
  std::vector<int64_t> ids(slots * 3 / 4);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int64_t>(i);
  insertAll(store, nullptr, ids);
  EXPECT_EQ(store.slots(), slots);
  insertAll(store, nullptr, {int64_t(1) << 40});
  EXPECT_EQ(store.slots(), 2 * slots);
}

/// The id whose hash is `hash`: SplitMix64 backwards.
int64_t idOfHash(uint64_t hash) {
  auto unshift = [](uint64_t x, int by) {
    uint64_t y = x;
    for (int i = by; i < 64; i += by)
      y = x ^ (y >> by);
    return y;
  };
  auto inverse = [](uint64_t odd) { // modulo 2^64, by Newton's method
    uint64_t x = odd;
    for (int i = 0; i < 6; ++i)
      x *= 2 - odd * x;
    return x;
  };
  uint64_t x = unshift(hash, 31) * inverse(0x94D049BB133111EBull);
  x = unshift(x, 27) * inverse(0xBF58476D1CE4E5B9ull);
  x = unshift(x, 30) - 0x9E3779B97F4A7C15ull;
  return static_cast<int64_t>(x);
}

TEST(Store, AdversarialIdsOfOneGroupDigestAndStepAreAllFound) {
  // All hashes agree in the 20 low bits (group), the 7 high bits (digest) and
  // the bits that give the step.
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < 4000; ++i) {
    ids.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x123) << 32 | i << 20 | 0x777));
    ASSERT_EQ(EmbeddingStore::hash(ids.back()) & 0xFFFFF, 0x777u);
  }
  EmbeddingStore store(configOf(2, 0));
  std::vector<float *> rows = insertAll(store, nullptr, ids);
  EXPECT_EQ(store.size(), 4000);
  std::vector<float *> found(ids.size());
  EXPECT_EQ(store.find(nullptr, ids.data(), nullptr, 4000, found.data()), 0);
  EXPECT_EQ(rows, found);
  std::vector<int64_t> others;
  for (uint64_t i = 0; i < 64; ++i)
    others.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x124) << 32 | i << 20 | 0x777));
  std::vector<float *> none(64);
  EXPECT_EQ(store.find(nullptr, others.data(), nullptr, 64, none.data()), 64);
}

TEST(Store, SameRowsAtAnyNumberOfThreads) {
  std::mt19937_64 random(11);
  std::vector<int64_t> ids(100000);
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % 30000);
  EmbeddingStore one(configOf(8, 1)), many(configOf(8, 1));
  Pool four(4);
  for (size_t begin = 0; begin < ids.size(); begin += 25000) {
    std::vector<int64_t> part(ids.begin() + static_cast<ptrdiff_t>(begin),
                              ids.begin() + static_cast<ptrdiff_t>(begin) + 25000);
    insertAll(one, nullptr, part);
    insertAll(many, four.pool, part);
  }
  ASSERT_EQ(one.size(), many.size());
  for (int64_t row = 0; row < one.size(); ++row) {
    ASSERT_EQ(one.id(row), many.id(row));
    ASSERT_TRUE(std::equal(one.row(row), one.row(row) + one.rowStride(), many.row(row)));
  }
}

TEST(Store, InitialValuesDependOnSeedNameAndIdAlone) {
  EmbeddingStore first(configOf(16, 1)), second(configOf(16, 1)), other(configOf(16, 1, 8));
  float *alone = insertAll(first, nullptr, {42})[0];
  float *late = insertAll(second, nullptr, {1, 2, 3, 42})[3];
  float *seeded = insertAll(other, nullptr, {42})[0];
  EXPECT_TRUE(std::equal(alone, alone + 32, late));
  EXPECT_FALSE(std::equal(alone, alone + 16, seeded));
  StoreConfig renamed = configOf(16, 1);
  renamed.initializer.nameHash = nameHash("user");
  EmbeddingStore named(renamed);
  EXPECT_FALSE(std::equal(alone, alone + 16, insertAll(named, nullptr, {42})[0]));
  for (int i = 16; i < 32; ++i)
    EXPECT_EQ(alone[i], 0.0f);
}

TEST(Store, AdagradStatesStartAtTheAccumulator) {
  StoreConfig config = configOf(3, 2);
  config.initialAccumulator = 0.25;
  EmbeddingStore store(config);
  float *row = insertAll(store, nullptr, {1})[0];
  for (int i = 3; i < 6; ++i)
    EXPECT_EQ(row[i], 0.25f);
  for (int i = 6; i < 9; ++i)
    EXPECT_EQ(row[i], 0.0f);
}

TEST(Store, XavierOfATableUsesOneAndItsDimension) {
  RowInitializer xavier{5, 1.0, 3, 4, 1, 15}; // sqrt(6 / 16)
  std::vector<float> values(10000);
  xavier.fill(1, static_cast<int64_t>(values.size()), values.data());
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_LT(*most, 0.6123725f);
  EXPECT_GT(*most, 0.60f);
  EXPECT_GT(*least, -0.6123725f);
  EXPECT_LT(*least, -0.60f);
}

TEST(Store, ClearForgetsRowsAndKeepsWorking) {
  EmbeddingStore store(configOf(2, 1));
  float *row = insertAll(store, nullptr, {1, 2})[1];
  row[0] = row[2] = 99;
  store.clear();
  EXPECT_EQ(store.size(), 0);
  float *again = insertAll(store, nullptr, {2})[0];
  EXPECT_NE(again[0], 99.0f);
  EXPECT_EQ(again[2], 0.0f);
}

} // namespace
} // namespace genrec::rt::test
