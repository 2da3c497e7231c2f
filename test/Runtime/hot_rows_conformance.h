//===- hot_rows_conformance.h - Rows that keep lower halves ------*- C++ -*-===//
//
// One suite for all stores that may have hot rows, beside row_rules_conformance.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_HOT_ROWS_CONFORMANCE_H
#define GENREC_TEST_RUNTIME_HOT_ROWS_CONFORMANCE_H

#include "naive_rows.h"
#include "store_conformance.h"

#include <bit>
#include <cmath>
#include <map>

namespace genrec::rt::test {

inline StoreConfig hotConfig(int64_t dim, int64_t hotAfter, RowRules rules = {}) {
  StoreConfig config = configOf(dim, 1);
  config.element = RowElement::bf16;
  config.initialAccumulator = 0.25;
  config.rules = rules;
  config.rules.hotAfter = hotAfter;
  return config;
}

inline float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t bitsOf(float value) { return std::bit_cast<uint32_t>(value); }
inline float toNearest(float value) {
  return fromBits((bitsOf(value) + 0x7FFF + (bitsOf(value) >> 16 & 1)) & 0xFFFF0000);
}

template <class Store> class HotRowsConformance : public testing::Test {
protected:
  using Row = typename Store::Row;

  static Row see(Store &store, int64_t id, int64_t step) { return store.train({id}, step)[0]; }

  using Values = std::map<int64_t, std::vector<float>>;

  /// Writes random floats to rows by id, and notes what they are to hold.
  static void write(Store &store, const std::map<int64_t, Row> &rowOf, const NaiveRows &rows,
                    std::mt19937_64 &random, Values &written) {
    std::vector<Row> addresses;
    std::vector<float> given;
    for (const auto &[id, row] : rowOf) {
      const bool isHot = rows.rows.at(id).steps >= kHotAfter;
      std::vector<float> &values = written[id];
      values.clear();
      for (int64_t i = 0; i < store.dim(); ++i) {
        given.push_back(fromBits(0x3F000000 + static_cast<uint32_t>(random() % 0xFFFFFF)));
        values.push_back(isHot ? given.back() : toNearest(given.back()));
      }
      addresses.push_back(row);
    }
    store.writeHalves(addresses, given);
  }

  /// The rows hold these values, and each hot one has a block of its own.
  static void expectValues(const Store &store, const Values &written, int64_t hot) {
    std::vector<int64_t> ids;
    for (const auto &[id, values] : written)
      ids.push_back(id);
    const std::vector<Row> rows = store.find(ids);
    const std::vector<float> halves = store.halves(rows);
    std::set<uintptr_t> blocks;
    auto at = halves.begin();
    for (size_t i = 0; i < ids.size(); ++i, at += store.dim()) {
      ASSERT_EQ(std::vector<float>(at, at + store.dim()), written.at(ids[i])) << "id " << ids[i];
      if (const uintptr_t lower = lowerOf(store, rows[i]))
        blocks.insert(lower);
    }
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), hot);
  }

  static constexpr int64_t kHotAfter = 3;

  /// Where a row has its lower halves; 0 where it is not hot.
  static uintptr_t lowerOf(const Store &store, Row row) {
    const std::vector<float> floats = store.values(row);
    uintptr_t lower;
    std::memcpy(&lower, floats.data() + storeLowerOffset(store.dim()), sizeof lower);
    return lower;
  }
};
TYPED_TEST_SUITE_P(HotRowsConformance);

TYPED_TEST_P(HotRowsConformance, TheAddressOfLowerHalvesLiesBetweenValueAndStates) {
  for (int64_t dim : {1, 2, 3, 4, 6, 7, 64, 130}) {
    const StoreConfig config = hotConfig(dim, 1);
    TypeParam store(config);
    const int64_t lower = ((dim + 1) / 2 + 1) / 2 * 2;
    EXPECT_EQ(storeLowerOffset(dim), lower);
    EXPECT_EQ(config.stateOffset(), lower + 2);
    EXPECT_EQ(config.sightingOffset(), (lower + 2 + dim + 1) / 2 * 2);
    EXPECT_EQ(store.rowStride(), (config.sightingOffset() + 4 + 15) / 16 * 16);
    auto row = store.insert({5})[0]; // sees nothing
    EXPECT_EQ(this->lowerOf(store, row), 0U);
    const std::vector<float> floats = store.values(row);
    for (int64_t i = 0; i < dim; ++i)
      EXPECT_EQ(floats[static_cast<size_t>(lower + 2 + i)], 0.25f);
    row = this->see(store, 5, 1);
    ASSERT_NE(this->lowerOf(store, row), 0U);
    EXPECT_EQ(this->lowerOf(store, row) % 64, 0U);
  }
}

TYPED_TEST_P(HotRowsConformance, AreThoseThatEnoughStepsSaw) {
  TypeParam store(hotConfig(3, 3));
  for (int64_t step : {1, 2, 2, 2}) // a step sees a row once
    EXPECT_EQ(this->lowerOf(store, this->see(store, 7, step)), 0U);
  store.train(std::vector<int64_t>(700, 7), 2);
  EXPECT_EQ(store.hotRows(), 0);
  const std::vector<float> before = store.halves(this->see(store, 7, 2));
  auto row = store.train(std::vector<int64_t>(700, 7), 9)[699];
  EXPECT_NE(this->lowerOf(store, row), 0U);
  EXPECT_EQ(store.halves(row), before) << "lower halves begin with zeros";
  EXPECT_EQ(store.hotRows(), 1) << "however often a step has the id";
}

TYPED_TEST_P(HotRowsConformance, SearchingAndInsertingSeeNothing) {
  TypeParam store(hotConfig(3, 2));
  this->see(store, 7, 1);
  for (int i = 0; i < 3; ++i) {
    store.find({7});
    store.insert({7, 8});
  }
  EXPECT_EQ(store.hotRows(), 0);
  EXPECT_EQ(store.sighting(7).steps, 1);
}

TYPED_TEST_P(HotRowsConformance, SplitAndJoinLoseNothing) {
  TypeParam store(hotConfig(5, 1));
  auto row = this->see(store, 7, 1);
  const std::vector<float> given{fromBits(0x3F80FFFF), fromBits(0xBF7F8001), fromBits(0x00000001),
                                 fromBits(0x7F7FFFFF), fromBits(0x7F800001)};
  store.writeHalves(row, given);
  const std::vector<float> read = store.halves(row);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(bitsOf(read[i]), bitsOf(given[i]));
  EXPECT_EQ(bitsOf(read[4]), 0x7FC00001U) << "a NaN whose upper half would be an infinity";
  const std::vector<float> stored = store.values(row);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(bitsOf(valueOf(stored, i)), bitsOf(given[static_cast<size_t>(i)]) & 0xFFFF0000)
        << "what lookups read";
  EXPECT_TRUE(std::isnan(valueOf(stored, 4)));
  EXPECT_EQ(valueOf(stored, 5), 0.0f) << "what fills the value up";
  TypeParam cold(hotConfig(5, 2));
  row = this->see(cold, 7, 1);
  cold.writeHalves(row, given);
  EXPECT_EQ(bitsOf(cold.halves(row)[0]), 0x3F810000U) << "to nearest";
}

TYPED_TEST_P(HotRowsConformance, SettleByTheirSightings) {
  TypeParam store(hotConfig(2, 3));
  auto row = store.insert({4})[0];
  auto settle = [&](int64_t steps) {
    store.settle({row}, {{9, steps}});
    return this->lowerOf(store, row) != 0;
  };
  EXPECT_FALSE(settle(2));
  EXPECT_TRUE(settle(3));
  const std::vector<float> given{fromBits(0x3F801234), fromBits(0x3F80ABCD)};
  store.writeHalves(row, given);
  EXPECT_TRUE(settle(8)) << "and keeps what it has";
  EXPECT_EQ(store.halves(row), given);
  EXPECT_FALSE(settle(1));
  EXPECT_EQ(store.hotRows(), 0);
  EXPECT_TRUE(settle(3));
  EXPECT_EQ(store.halves(row), (std::vector<float>{1.0f, 1.0f})) << "zeros again";
}

TYPED_TEST_P(HotRowsConformance, ThatLeaveGiveTheirBlocksBackAndOthersKeepTheirs) {
  TypeParam store(hotConfig(30, 1, {.ttl = 4}));
  std::vector<int64_t> even, odd;
  for (int64_t id = 0; id < 200; ++id)
    (id % 2 ? odd : even).push_back(id);
  auto valueOfId = [](int64_t id) { return fromBits(0x3F800001 + static_cast<uint32_t>(id)); };
  for (const std::vector<int64_t> *ids : {&even, &odd}) {
    auto rows = store.train(*ids, ids == &even ? 1 : 4);
    std::vector<float> given;
    for (int64_t id : *ids)
      given.insert(given.end(), 30, valueOfId(id));
    store.writeHalves(rows, given);
  }
  EXPECT_EQ(store.hotRows(), 200);
  store.evict(5);
  ASSERT_EQ(store.size(), 100);
  EXPECT_EQ(store.hotRows(), 100);
  std::vector<int64_t> later(100);
  std::iota(later.begin(), later.end(), 1000);
  const std::vector<float> fresh = store.halves(store.train(later, 6));
  for (float value : fresh)
    ASSERT_EQ(bitsOf(value) & 0xFFFF, 0U) << "of a block that another row had";
  EXPECT_EQ(store.hotRows(), 200);
  const std::vector<float> kept = store.halves(store.find(odd));
  for (size_t i = 0; i < kept.size(); ++i)
    ASSERT_EQ(kept[i], valueOfId(odd[i / 30]));
  store.erase({1001, 1, 77777, 1001});
  EXPECT_EQ(store.hotRows(), 198);
  store.clear();
  EXPECT_EQ(store.hotRows(), 0);
  for (float value : store.halves(this->see(store, 1, 7)))
    EXPECT_EQ(bitsOf(value) & 0xFFFF, 0U);
  EXPECT_EQ(store.hotRows(), 1);
}

TYPED_TEST_P(HotRowsConformance, TablesThatShareAStoreCountTheirOwn) {
  StoreConfig config = hotConfig(4, 2);
  config.keyBits = 40;
  config.members.assign(2, config.initializer);
  TypeParam store(config);
  const int64_t second = int64_t(1) << 40;
  store.train({5, second | 5, 6}, 1);
  auto rows = store.train({second | 5, 6, second | 7}, 2);
  EXPECT_EQ(this->lowerOf(store, store.find({5})[0]), 0U);
  EXPECT_NE(this->lowerOf(store, rows[0]), 0U);
  EXPECT_NE(this->lowerOf(store, rows[1]), 0U);
  EXPECT_EQ(this->lowerOf(store, rows[2]), 0U);
  EXPECT_EQ(store.hotRows(), 2);
}

/// Rows come, become hot, are written and leave, beside a map.
TYPED_TEST_P(HotRowsConformance, AgreeWithTheRulesAsTheyRead) {
  struct Case {
    int64_t dim;
    RowRules rules;
  };
  for (const auto &[dim, rules] :
       {Case{1, {}}, Case{7, {.ttl = 3}}, Case{40, {.bound = 25, .admitAfter = 2}},
        Case{6, {.bound = 30, .eviction = Eviction::lfu, .ttl = 5}}}) {
    TypeParam store(hotConfig(dim, this->kHotAfter, rules));
    NaiveRows expected(rules);
    typename TestFixture::Values written;
    std::mt19937_64 random(static_cast<uint64_t>(dim));
    for (int64_t step = 1; step <= 16; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      std::vector<int64_t> ids(40);
      for (int64_t &id : ids)
        id = static_cast<int64_t>(random() % (random() % 2 ? 12 : 60));
      expected.train(ids, step);
      const auto found = store.train(ids, step);
      std::map<int64_t, typename TypeParam::Row> rowOf;
      for (size_t i = 0; i < ids.size(); ++i)
        if (found[i])
          rowOf[ids[i]] = found[i];
      this->write(store, rowOf, expected, random, written);
      expected.evict(step);
      store.evict(step);
      if (step % 7 == 0) {
        expected.erase({1, 2, 3});
        store.erase({1, 2, 3});
      }
      std::erase_if(written, [&](const auto &row) { return !expected.rows.count(row.first); });
      const auto hot =
          std::count_if(expected.rows.begin(), expected.rows.end(),
                        [&](const auto &row) { return row.second.steps >= this->kHotAfter; });
      ASSERT_EQ(store.hotRows(), hot);
      if (step % 4 == 0)
        this->expectValues(store, written, hot);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(HotRowsConformance, TheAddressOfLowerHalvesLiesBetweenValueAndStates,
                            AreThoseThatEnoughStepsSaw, SearchingAndInsertingSeeNothing,
                            SplitAndJoinLoseNothing, SettleByTheirSightings,
                            ThatLeaveGiveTheirBlocksBackAndOthersKeepTheirs,
                            TablesThatShareAStoreCountTheirOwn, AgreeWithTheRulesAsTheyRead);

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_HOT_ROWS_CONFORMANCE_H
