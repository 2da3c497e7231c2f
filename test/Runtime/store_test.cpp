//===- store_test.cpp - The embedding store -------------------------------===//

#include "host_side.h"
#include "hot_rows_conformance.h"
#include "row_rules_conformance.h"
#include "test_pool.h"

#include "genrec_rt/buffer.h"
#include "genrec_rt/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace genrec::rt::test {
namespace {

std::vector<float *> insertAll(EmbeddingStore &store, genrec_rt_pool *pool,
                               const std::vector<int64_t> &ids,
                               const std::vector<uint8_t> &valid = {}) {
  std::vector<float *> rows(ids.size());
  store.findOrInsert(pool, ids.data(), valid.empty() ? nullptr : valid.data(),
                     static_cast<int64_t>(ids.size()), rows.data());
  return rows;
}

/// EmbeddingStore as the conformance suites see a store.
class CpuStore : public HostSide {
public:
  static constexpr int64_t kMany = 200000;

  explicit CpuStore(const StoreConfig &config) : HostSide(store), store(config) {}

  int64_t slots() const { return store.slots(); }

private:
  EmbeddingStore store;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, StoreConformance, CpuStore);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, RowRulesConformance, CpuStore);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, HotRowsConformance, CpuStore);

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

/// Slots of a table of `rows` rows that doubles at load 0.75.
int64_t leastSlots(const EmbeddingStore &empty, int64_t rows) {
  int64_t slots = empty.slots();
  while (rows * 4 > slots * 3)
    slots *= 2;
  return slots;
}

// A batch makes room for its new ids at once, in few allocations, but for no more than there are,
// in whatever order they come.
TEST(Store, BatchGrowsToItsNewIds) {
  constexpr int64_t kBatch = 200000;
  TestPool four(4);
  std::mt19937_64 random(3);
  for (genrec_rt_pool *pool : {static_cast<genrec_rt_pool *>(nullptr), four.pool})
    for (int64_t different : {500, 3000, 20000, 50000, 200000})
      for (bool areMixed : {false, true}) {
        EmbeddingStore store(configOf(1, 0));
        int64_t expected = leastSlots(store, different), allocations = alignedAllocations();
        std::vector<int64_t> ids(kBatch);
        for (int64_t i = 0; i < kBatch; ++i)
          ids[static_cast<size_t>(i)] =
              7919 * (i < different ? i : static_cast<int64_t>(random() % different));
        if (areMixed)
          std::shuffle(ids.begin(), ids.end(), random);
        insertAll(store, pool, ids);
        ASSERT_EQ(store.size(), different);
        EXPECT_EQ(store.slots(), expected) << different << ", " << areMixed;
        // Of chunks of rows and of ids, and of keys, which would double 11 times.
        if (different == kBatch) {
          EXPECT_LE(alignedAllocations() - allocations, 10);
        }
      }
}

TEST(Store, SameRowsAtAnyNumberOfThreads) {
  std::mt19937_64 random(11);
  std::vector<int64_t> ids(100000);
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % 30000);
  EmbeddingStore one(configOf(8, 1)), many(configOf(8, 1));
  TestPool four(4);
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

// Ids come again while the search of the first is under way, and the table grows in between.
TEST(Store, IdsRepeatWhileTheyAreSearched) {
  TestPool four(4);
  for (genrec_rt_pool *pool : {static_cast<genrec_rt_pool *>(nullptr), four.pool})
    for (int64_t distance : {1, 2, 15, 16, 17, 31, 32, 33, 64}) {
      std::vector<int64_t> ids;
      std::vector<uint8_t> valid;
      for (int64_t base = 0; base < 3000; base += distance)
        for (int64_t i = 0; i < 2 * distance; ++i) {
          ids.push_back((base + i % distance) * 7919);
          valid.push_back(ids.size() % 5 != 0);
        }
      EmbeddingStore store(configOf(2, 0));
      float untouched;
      std::vector<float *> rows(ids.size(), &untouched), found(ids.size());
      auto count = static_cast<int64_t>(ids.size());
      store.findOrInsert(pool, ids.data(), valid.data(), count, rows.data());
      std::vector<int64_t> order;
      for (size_t i = 0; i < ids.size(); ++i) {
        auto known = std::find(order.begin(), order.end(), ids[i]);
        if (valid[i] && known == order.end())
          known = order.insert(known, ids[i]);
        ASSERT_EQ(rows[i], valid[i] ? store.row(known - order.begin()) : &untouched) << i;
      }
      ASSERT_EQ(store.size(), static_cast<int64_t>(order.size()));
      int64_t missing = 0;
      store.find(pool, ids.data(), nullptr, count, found.data(), &missing);
      EXPECT_EQ(missing, std::count(found.begin(), found.end(), nullptr));
      for (size_t i = 0; i < ids.size(); ++i) {
        auto known = std::find(order.begin(), order.end(), ids[i]);
        ASSERT_EQ(found[i], known == order.end() ? nullptr : store.row(known - order.begin())) << i;
      }
    }
}

// Ids of a few buckets, so that most go past full ones, with slots of erased ids between them.
TEST(Store, IdsComeAndGoAsInAMap) {
  std::vector<int64_t> pool;
  for (int64_t i = 0; i < 300; ++i)
    pool.push_back(i - 10); // 0 and negative ones, too
  for (uint64_t i = 0; i < 600; ++i)
    pool.push_back(idOfHash(i % 40 << 59 | i << 20 | i % 3));
  std::mt19937_64 random(5);
  EmbeddingStore store(configOf(2, 0));
  std::set<int64_t> known;
  std::vector<int64_t> ids(400);
  std::vector<float *> rows(ids.size());
  for (int round = 0; round < 200; ++round) {
    for (int64_t &id : ids)
      id = pool[random() % pool.size()];
    if (round % 3 == 2) {
      store.erase({}, ids.data(), 200);
      for (int64_t i = 0; i < 200; ++i)
        known.erase(ids[static_cast<size_t>(i)]);
    } else {
      store.findOrInsert(nullptr, ids.data(), nullptr, 400, rows.data());
      known.insert(ids.begin(), ids.end());
    }
    ASSERT_EQ(store.size(), static_cast<int64_t>(known.size()));
    std::map<int64_t, float *> expected;
    for (int64_t number = 0; number < store.size(); ++number)
      expected[store.id(number)] = store.row(number);
    std::vector<float *> found(pool.size());
    store.find(nullptr, pool.data(), nullptr, static_cast<int64_t>(pool.size()), found.data());
    for (size_t i = 0; i < pool.size(); ++i) {
      ASSERT_EQ(found[i] != nullptr, known.contains(pool[i])) << round << ", " << pool[i];
      if (found[i]) {
        ASSERT_EQ(found[i], expected[pool[i]]) << round << ", " << pool[i];
      }
    }
  }
  EXPECT_LE(store.slots(), 4096) << "slots of erased ids are not taken again";
}

TEST(Store, RulesGiveTheSameRowsAtAnyNumberOfThreads) {
  RowRules rules{.bound = 5000, .eviction = Eviction::lfu, .ttl = 20, .admitAfter = 2};
  EmbeddingStore one(ruledConfig(rules, 8)), many(ruledConfig(rules, 8));
  TestPool four(4);
  std::mt19937_64 random(12);
  std::vector<int64_t> ids(20000);
  std::vector<float *> rows(ids.size());
  for (int64_t step = 1; step <= 30; ++step) {
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 3000 * (random() % 10));
    one.findOrAdmit({}, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    many.findOrAdmit(four.pool, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    one.evict({}, step, -1);
    many.evict(four.pool, step, -1);
    ASSERT_EQ(one.size(), many.size());
  }
  EXPECT_GT(one.size(), 1000);
  for (int64_t row = 0; row < one.size(); ++row) {
    ASSERT_EQ(one.id(row), many.id(row));
    ASSERT_EQ(std::memcmp(one.row(row), many.row(row), static_cast<size_t>(one.rowStride()) * 4),
              0);
  }
}

TEST(Store, ErasingOfTablesThatShareAStoreListsEachAnew) {
  StoreConfig config = configOf(2, 0);
  config.members.assign(2, config.initializer);
  config.keyBits = 40;
  EmbeddingStore store(config);
  const int64_t second = int64_t(1) << 40;
  insertAll(store, nullptr, {5, second | 5, 6, second | 7, 8});
  HostSide host(store);
  EXPECT_EQ(host.exported(0)[2].second, store.row(4));
  host.erase({5, second | 7});
  ASSERT_EQ(host.exported(0).size(), 2u);
  ASSERT_EQ(host.exported(1).size(), 1u);
  EXPECT_EQ(host.exported(0)[0].first, 8) << "the last row took the place of the first";
  EXPECT_EQ(host.exported(0)[1].first, 6);
  EXPECT_EQ(host.exported(1)[0].first, second | 5);
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

/// The rules of tables that share a store are each table's own: bounds count its rows, and
/// what waits or passes by in one is nothing to the other.
TEST(EmbeddingStore, TablesThatShareAStoreHaveRulesEachForItself) {
  for (const RowRules &rules :
       {RowRules{.bound = 20}, RowRules{.bound = 5, .eviction = Eviction::lfu, .admitAfter = 2},
        RowRules{.ttl = 3}, RowRules{.bound = 40, .ttl = 17, .admitAfter = 3}}) {
    constexpr int64_t kBits = 40, kMembers = 3;
    StoreConfig config = ruledConfig(rules);
    config.members.resize(kMembers);
    config.keyBits = kBits;
    EmbeddingStore store(config);
    std::vector<NaiveRows> naive(kMembers, NaiveRows(rules));
    std::mt19937 random(7);
    for (int64_t step = 1; step <= 60; ++step) {
      std::vector<int64_t> keys;
      for (int64_t member = 0; member < kMembers; ++member) {
        std::vector<int64_t> ids;
        // The first table sees many ids, the last one few.
        for (int64_t n = 0; n < 12 / (member + 1); ++n)
          ids.push_back(static_cast<int64_t>(random() % 30) + step / 2);
        naive[member].train(ids, step);
        for (int64_t id : ids)
          keys.push_back(member << kBits | id);
      }
      HostSide(store).train(keys, step);
      store.evict({}, step, -1);
      for (int64_t member = 0; member < kMembers; ++member) {
        naive[member].evict(step);
        auto expect = [&](TableStore &actual, const std::map<int64_t, Sighting> &wanted) {
          HostSide host(actual);
          ASSERT_EQ(host.exported(member).size(), wanted.size());
          for (auto [key, address] : host.exported(member)) {
            auto row = wanted.find(key ^ member << kBits);
            ASSERT_NE(row, wanted.end());
            EXPECT_EQ(host.sighting(key).lastStep, row->second.lastStep);
            EXPECT_EQ(host.sighting(key).steps, row->second.steps);
          }
        };
        expect(store, naive[member].rows);
        if (store.waiting())
          expect(*store.waiting(), naive[member].waiting);
      }
    }
  }
}

} // namespace
} // namespace genrec::rt::test
