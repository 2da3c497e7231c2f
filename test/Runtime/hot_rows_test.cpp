//===- hot_rows_test.cpp - Rows that keep the lower halves of floats ------===//

#include "host_side.h"
#include "store_conformance.h"

#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/store.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace genrec::rt::test {
namespace {

struct Pool {
  explicit Pool(int32_t threads) : pool(genrec_rt_pool_create(threads)) {}
  ~Pool() { genrec_rt_pool_destroy(pool); }
  genrec_rt_pool *pool;
};

StoreConfig hotConfig(int64_t dim, int64_t hotAfter, RowRules rules = {}) {
  StoreConfig config = configOf(dim, 1);
  config.element = RowElement::bf16;
  config.initialAccumulator = 0.25;
  config.rules = rules;
  config.rules.hotAfter = hotAfter;
  return config;
}

float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bitsOf(float value) { return std::bit_cast<uint32_t>(value); }

std::vector<float> readValues(const EmbeddingStore &store, float *row) {
  std::vector<float> values(static_cast<size_t>(store.configuration().dim));
  store.readHalves(&row, 1, values.data());
  return values;
}

const uint16_t *lowerOf(const EmbeddingStore &store, float *row) {
  const uint16_t *lower = kernels::lowerHalves(row, storeLowerOffset(store.configuration().dim));
  return kernels::isHot(row, lower) ? lower : nullptr;
}

float *see(EmbeddingStore &store, int64_t id, int64_t step) {
  float *row = nullptr;
  store.findOrAdmit({}, &id, nullptr, 1, step, &row, nullptr);
  return row;
}

TEST(HotRows, TheAddressOfLowerHalvesLiesBetweenValueAndStates) {
  for (int64_t dim : {1, 2, 3, 4, 6, 7, 64, 130}) {
    EmbeddingStore store(hotConfig(dim, 1));
    const StoreConfig &config = store.configuration();
    const int64_t lower = ((dim + 1) / 2 + 1) / 2 * 2;
    EXPECT_EQ(storeLowerOffset(dim), lower);
    EXPECT_EQ(config.stateOffset(), lower + 2);
    EXPECT_EQ(config.sightingOffset(), (lower + 2 + dim + 1) / 2 * 2);
    EXPECT_EQ(store.rowStride(), (config.sightingOffset() + 4 + 15) / 16 * 16);
    int64_t id = 5;
    float *row = nullptr;
    store.findOrInsert({}, &id, nullptr, 1, &row); // sees nothing
    EXPECT_EQ(lowerOf(store, row), nullptr);
    for (int64_t i = 0; i < dim; ++i)
      EXPECT_EQ(row[lower + 2 + i], 0.25f);
    row = see(store, 5, 1);
    ASSERT_NE(lowerOf(store, row), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lowerOf(store, row)) % 64, 0U);
  }
}

TEST(HotRows, AreThoseThatEnoughStepsSaw) {
  EmbeddingStore store(hotConfig(3, 3));
  const int64_t plain = store.valueBytes();
  for (int64_t step : {1, 2, 2, 2}) // a step sees a row once
    EXPECT_EQ(lowerOf(store, see(store, 7, step)), nullptr);
  EXPECT_EQ(store.valueBytes(), plain + store.rowStride() * 4);
  const std::vector<float> before = readValues(store, see(store, 7, 2));
  float *row = see(store, 7, 9);
  EXPECT_NE(lowerOf(store, row), nullptr);
  EXPECT_EQ(readValues(store, row), before) << "lower halves begin with zeros";
  EXPECT_EQ(store.valueBytes(), plain + store.rowStride() * 4 + 64);
}

TEST(HotRows, SplitAndJoinLoseNothing) {
  EmbeddingStore store(hotConfig(5, 1));
  float *row = see(store, 7, 1);
  const std::vector<float> given{fromBits(0x3F80FFFF), fromBits(0xBF7F8001), fromBits(0x00000001),
                                 fromBits(0x7F7FFFFF), fromBits(0x7F800001)};
  store.writeHalves(&row, 1, given.data());
  std::vector<float> read = readValues(store, row);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(bitsOf(read[i]), bitsOf(given[i]));
  EXPECT_EQ(bitsOf(read[4]), 0x7FC00001U) << "a NaN whose upper half would be an infinity";
  unpackValues(row, 5, read.data());
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(bitsOf(read[i]), bitsOf(given[i]) & 0xFFFF0000) << "what lookups read";
  EXPECT_TRUE(std::isnan(read[4]));
  EmbeddingStore cold(hotConfig(5, 2));
  row = see(cold, 7, 1);
  cold.writeHalves(&row, 1, given.data());
  EXPECT_EQ(bitsOf(readValues(cold, row)[0]), 0x3F810000U) << "to nearest";
}

TEST(HotRows, SettleByTheirSightings) {
  EmbeddingStore store(hotConfig(2, 3));
  const int64_t id = 4;
  float *row = nullptr;
  store.findOrInsert({}, &id, nullptr, 1, &row);
  auto settle = [&](int64_t steps) {
    const Sighting sighting{9, steps};
    store.writeRows({}, &row, 1, store.sightingOffset(), 4,
                    reinterpret_cast<const float *>(&sighting));
    store.settleHot(&row, 1);
    return lowerOf(store, row) != nullptr;
  };
  const int64_t cold = store.valueBytes();
  EXPECT_FALSE(settle(2));
  EXPECT_TRUE(settle(3));
  const float given[] = {fromBits(0x3F801234), fromBits(0x3F80ABCD)};
  store.writeHalves(&row, 1, given);
  EXPECT_TRUE(settle(8)) << "and keeps what it has";
  EXPECT_EQ(readValues(store, row), (std::vector<float>{given[0], given[1]}));
  EXPECT_FALSE(settle(1));
  EXPECT_EQ(store.valueBytes(), cold);
  EXPECT_TRUE(settle(3));
  EXPECT_EQ(readValues(store, row), (std::vector<float>{1.0f, 1.0f})) << "zeros again";
}

TEST(HotRows, ThatLeaveGiveTheirBlocksBackAndOthersKeepTheirs) {
  EmbeddingStore store(hotConfig(9, 1, {.ttl = 4}));
  for (int64_t id = 0; id < 500; ++id) {
    float *row = see(store, id, 1 + id % 2 * 3);
    std::vector<float> given(9, fromBits(0x3F800000 + static_cast<uint32_t>(id) + 1));
    store.writeHalves(&row, 1, given.data());
  }
  const int64_t all = store.valueBytes();
  store.evict({}, 5, -1);
  ASSERT_EQ(store.size(), 250);
  EXPECT_EQ(store.valueBytes(), all / 2);
  for (int64_t number = 0; number < store.size(); ++number) {
    ASSERT_EQ(store.id(number) % 2, 1);
    ASSERT_EQ(bitsOf(readValues(store, store.row(number))[8]),
              0x3F800001 + static_cast<uint32_t>(store.id(number)));
  }
  for (int64_t id = 1000; id < 1250; ++id) {
    const std::vector<float> fresh = readValues(store, see(store, id, 6));
    for (float value : fresh)
      ASSERT_EQ(bitsOf(value) & 0xFFFF, 0U) << "of a block that another row had";
  }
  EXPECT_EQ(store.valueBytes(), all);
  store.clear({});
  EXPECT_EQ(store.valueBytes(), 0);
  see(store, 1, 7);
  EXPECT_EQ(store.valueBytes(), store.rowStride() * 4 + 64);
}

TEST(HotRows, AreTheSameAtAnyNumberOfThreads) {
  const RowRules rules{.ttl = 6, .admitAfter = 2};
  EmbeddingStore one(hotConfig(8, 4, rules)), many(hotConfig(8, 4, rules));
  Pool four(4);
  std::mt19937_64 random(12);
  std::vector<int64_t> ids(20000);
  std::vector<float *> rows(ids.size());
  for (int64_t step = 1; step <= 20; ++step) {
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 3000 * (random() % 10));
    one.findOrAdmit({}, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    many.findOrAdmit(four.pool, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    one.evict({}, step, -1);
    many.evict(four.pool, step, -1);
    ASSERT_EQ(one.size(), many.size());
    ASSERT_EQ(one.valueBytes(), many.valueBytes());
  }
  int64_t hot = 0;
  for (int64_t number = 0; number < one.size(); ++number) {
    const bool isHot = lowerOf(one, one.row(number)) != nullptr;
    hot += isHot;
    ASSERT_EQ(isHot, lowerOf(many, many.row(number)) != nullptr);
  }
  EXPECT_GT(hot, 100);
  EXPECT_LT(hot, one.size());
}

} // namespace
} // namespace genrec::rt::test
