//===- row_rules_conformance.h - Rows that come and leave by rule *- C++ -*-===//
//
// One suite for all stores, beside store_conformance.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_ROW_RULES_CONFORMANCE_H
#define GENREC_TEST_RUNTIME_ROW_RULES_CONFORMANCE_H

#include "genrec_rt/step_clock.h"
#include "naive_rows.h"
#include "store_conformance.h"

namespace genrec::rt::test {

inline StoreConfig ruledConfig(const RowRules &rules, int64_t dim = 2, int32_t states = 1) {
  StoreConfig config = configOf(dim, states);
  config.rules = rules;
  return config;
}

template <class Store> class RowRulesConformance : public testing::Test {
protected:
  using Ids = std::vector<int64_t>;
  static Ids range(int64_t first, int64_t count) {
    Ids ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  static Ids sorted(Ids ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  }
};
TYPED_TEST_SUITE_P(RowRulesConformance);

TYPED_TEST_P(RowRulesConformance, ExactlyFullStaysAndOneMoreLetsTheLowestLeave) {
  TypeParam store(ruledConfig({.bound = 8}));
  store.train(this->range(100, 8), 1);
  store.evict(1);
  EXPECT_EQ(this->sorted(store.ids()), this->range(100, 8));
  store.train({200}, 2);
  EXPECT_EQ(store.size(), 9) << "nothing leaves within a step";
  store.evict(2);
  EXPECT_EQ(this->sorted(store.ids()),
            (std::vector<int64_t>{101, 102, 103, 104, 105, 106, 107, 200}));
}

TYPED_TEST_P(RowRulesConformance, ALargerTableMakesRoomForASixteenth) {
  TypeParam store(ruledConfig({.bound = 64}));
  store.train(this->range(0, 65), 1);
  store.evict(1);
  EXPECT_EQ(this->sorted(store.ids()), this->range(5, 60));
  store.train(this->range(100, 4), 2);
  store.evict(2);
  EXPECT_EQ(store.size(), 64);
}

TYPED_TEST_P(RowRulesConformance, TheLeastRecentlySeenLeaveFirst) {
  TypeParam store(ruledConfig({.bound = 3}));
  store.train({1, 2, 3}, 1);
  store.evict(1);
  store.train({1}, 2);
  store.evict(2);
  store.train({4, 3}, 3);
  store.evict(3);
  EXPECT_EQ(this->sorted(store.ids()), (std::vector<int64_t>{1, 3, 4}));
}

TYPED_TEST_P(RowRulesConformance, TheLeastOftenSeenLeaveFirstAndAStepCountsOnce) {
  TypeParam store(ruledConfig({.bound = 2, .eviction = Eviction::lfu}));
  store.train({1, 2}, 1);
  store.train({1}, 1); // a second lookup of the step
  store.evict(1);
  EXPECT_EQ(store.sighting(1).steps, 1);
  store.train({2}, 2);
  store.evict(2);
  store.train({1, 1, 1, 1}, 3);
  store.train({3, 3, 3, 3, 3, 3}, 3);
  store.evict(3); // 3 was seen in one step, 1 and 2 in two
  EXPECT_EQ(this->sorted(store.ids()), (std::vector<int64_t>{1, 2}));
}

TYPED_TEST_P(RowRulesConformance, AllIdsEqualAreOneRowSeenOnce) {
  TypeParam store(ruledConfig({.bound = 1}));
  std::vector<int64_t> ids(3000, 42);
  auto rows = store.train(ids, 7);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), rows[0]), 3000);
  store.evict(7);
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{42}));
  EXPECT_EQ(store.sighting(42).lastStep, 7);
  EXPECT_EQ(store.sighting(42).steps, 1);
}

TYPED_TEST_P(RowRulesConformance, AStepMayHaveMoreIdsThanTheBound) {
  TypeParam store(ruledConfig({.bound = 10}));
  auto ids = this->range(0, 1000);
  auto rows = store.train(ids, 1);
  EXPECT_EQ(store.find(ids), rows) << "all are there until the step ends";
  store.evict(1);
  EXPECT_EQ(this->sorted(store.ids()), this->range(990, 10));
}

TYPED_TEST_P(RowRulesConformance, WhatLeavesTakesItsStatesAndComesBackNew) {
  TypeParam store(ruledConfig({.bound = 1}));
  auto fresh = store.values(store.train({1}, 1)[0]);
  store.evict(1);
  store.write(store.find({1})[0], 0, 99);
  store.write(store.find({1})[0], 2, 99);
  store.train({2}, 2);
  store.evict(2);
  EXPECT_EQ(store.find({1})[0], nullptr);
  auto again = store.values(store.train({1}, 3)[0]);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(again[i], fresh[i]);
  EXPECT_EQ(store.sighting(1).steps, 1);
}

TYPED_TEST_P(RowRulesConformance, WhatStaysKeepsItsValues) {
  TypeParam store(ruledConfig({.bound = 4}));
  auto rows = store.train({1, 2, 3, 4}, 1);
  for (size_t i = 0; i < 4; ++i)
    store.write(rows[i], 0, static_cast<float>(10 + i));
  store.evict(1);
  store.train({3, 5, 4}, 2);
  store.evict(2); // 1 leaves
  rows = store.find({2, 3, 4});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(store.values(rows[i])[0], static_cast<float>(11 + i));
}

TYPED_TEST_P(RowRulesConformance, RowsNotSeenForTtlStepsLeave) {
  TypeParam store(ruledConfig({.ttl = 2}));
  for (int64_t step : {1, 2, 3}) {
    store.train({step, 100}, step);
    store.evict(step);
  }
  EXPECT_EQ(this->sorted(store.ids()), (std::vector<int64_t>{2, 3, 100}));
  TypeParam given(ruledConfig({.ttl = 2})); // a row that no step has seen
  given.insert({1});
  given.evict(1);
  EXPECT_EQ(given.size(), 1);
  given.evict(2);
  EXPECT_EQ(given.size(), 0);
  TypeParam slow(ruledConfig({.ttl = 64})); // looked at every fourth step
  slow.train({1}, 1);
  slow.evict(1);
  slow.evict(65);
  EXPECT_EQ(slow.size(), 1);
  slow.evict(68);
  EXPECT_EQ(slow.size(), 0);
}

TYPED_TEST_P(RowRulesConformance, RowsOfExpiredStepsLeave) {
  TypeParam store(ruledConfig({.admitAfter = 2, .ttlSeconds = 60}));
  for (int64_t step : {1, 2, 3, 4}) {
    store.train({step, step - 1, 100 + step}, step); // a row in the second step
    store.evict(step);
  }
  EXPECT_EQ(this->sorted(store.ids()), (std::vector<int64_t>{1, 2, 3}));
  store.evict(5, 1); // of the clock: nothing with a row
  EXPECT_EQ(store.size(), 3);
  store.evict(6, 3);
  EXPECT_EQ(this->sorted(store.ids()), (std::vector<int64_t>{3}));
  EXPECT_EQ(store.train({103}, 7)[0], nullptr) << "what waits leaves, too";
  EXPECT_NE(store.train({104}, 7)[0], nullptr);
}

TYPED_TEST_P(RowRulesConformance, IdsAreAdmittedInTheStepThatSeesThemOftenEnough) {
  TypeParam store(ruledConfig({.admitAfter = 3}));
  for (int64_t step : {1, 2}) {
    auto rows = store.train({1, 1, 1, 1}, step);
    EXPECT_EQ(std::count(rows.begin(), rows.end(), nullptr), 4) << step;
    store.evict(step);
  }
  auto rows = store.train({2, 1, 2, 1}, 3);
  EXPECT_EQ(rows[0], nullptr);
  ASSERT_NE(rows[1], nullptr);
  EXPECT_EQ(rows[1], rows[3]);
  EXPECT_EQ(store.sighting(1).steps, 1) << "since the row came";
  store.erase({1});
  EXPECT_EQ(store.train({1}, 4)[0], nullptr) << "an id that left starts anew";
  store.train({2}, 4);
  store.erase({2});
  EXPECT_EQ(store.train({2}, 5)[0], nullptr) << "and so does one that waited";
}

TYPED_TEST_P(RowRulesConformance, InvalidEntriesAreNotSeen) {
  TypeParam store(ruledConfig({.bound = 9, .admitAfter = 2}));
  for (int64_t step : {1, 2})
    store.train({1, 2}, step, {1, 0});
  EXPECT_EQ(store.train({2}, 3)[0], nullptr) << "seen for the first time";
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{1}));
}

TYPED_TEST_P(RowRulesConformance, SearchingSeesNothing) {
  TypeParam store(ruledConfig({.bound = 4, .admitAfter = 2}));
  store.train({1, 2}, 1);
  store.train({1}, 2);
  store.find({1, 2, 3});
  EXPECT_EQ(store.sighting(1).lastStep, 2);
  EXPECT_EQ(store.sighting(1).steps, 1);
  EXPECT_EQ(store.train({3}, 3)[0], nullptr);
}

TYPED_TEST_P(RowRulesConformance, ErasedIdsAreGoneAndOthersAreFound) {
  TypeParam store(configOf(2, 1)); // without rules
  auto ids = this->range(0, std::min<int64_t>(TypeParam::kMany, 3000));
  store.insert(ids);
  std::vector<int64_t> erased, kept;
  for (int64_t id : ids)
    (id % 3 == 0 ? erased : kept).push_back(id);
  erased.push_back(-5);
  erased.push_back(3);
  store.erase(erased);
  EXPECT_EQ(this->sorted(store.ids()), kept);
  int64_t missing = 0;
  store.find(kept, &missing);
  EXPECT_EQ(missing, 0);
  store.find(erased, &missing);
  EXPECT_EQ(missing, static_cast<int64_t>(erased.size()));
  store.erase({});
  store.erase(kept);
  EXPECT_EQ(store.size(), 0);
  store.insert({7});
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{7}));
}

TYPED_TEST_P(RowRulesConformance, ErasingFromFullGroupsHidesNobody) {
  // All hashes agree in group, digest and step: several full groups, one after another.
  std::vector<int64_t> ids, erased, kept;
  for (uint64_t i = 0; i < 300; ++i)
    ids.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x123) << 32 | i << 20 | 0x777));
  for (size_t i = 0; i < ids.size(); ++i)
    (i % 3 == 0 ? erased : kept).push_back(ids[i]);
  TypeParam store(configOf(2, 0));
  store.insert(ids);
  store.erase(erased);
  int64_t missing = 0;
  store.find(kept, &missing);
  EXPECT_EQ(missing, 0);
  store.find(erased, &missing);
  EXPECT_EQ(missing, static_cast<int64_t>(erased.size()));
}

TYPED_TEST_P(RowRulesConformance, IdsThatComeAndGoNeedNoMoreSlots) {
  TypeParam store(configOf(1, 0));
  int64_t slots = store.slots();
  for (int64_t round = 0; round < 40; ++round) {
    store.insert(this->range(round * 1000, 90));
    store.erase(this->range(round * 1000, 90));
  }
  EXPECT_EQ(store.size(), 0);
  EXPECT_EQ(store.slots(), slots);
}

TYPED_TEST_P(RowRulesConformance, AgreesWithTheRulesAsTheyRead) {
  for (const RowRules &rules :
       {RowRules{.bound = 40}, RowRules{.bound = 40, .eviction = Eviction::lfu}, RowRules{.ttl = 3},
        RowRules{.ttl = 40}, RowRules{.admitAfter = 2},
        RowRules{.bound = 30, .eviction = Eviction::lfu, .ttl = 5, .admitAfter = 2},
        RowRules{.bound = 5000, .ttl = 7, .admitAfter = 3}, RowRules{.ttlSeconds = 9},
        RowRules{.ttlSeconds = 200}, RowRules{.admitAfter = 2, .ttlSeconds = 40},
        RowRules{.bound = 25, .eviction = Eviction::lfu, .ttlSeconds = 60}}) {
    TypeParam store(ruledConfig(rules));
    NaiveRows expected(rules);
    StepClock clock;
    if (rules.ttlSeconds)
      clock.watch(rules.ttlSeconds);
    int64_t seconds = 1'700'000'000;
    std::mt19937_64 random(9);
    // Of several bytes and of both signs: rows of one step leave in the order of their ids.
    auto idOf = [](uint64_t number) {
      return (static_cast<int64_t>(number) - 30) * 0x3F5'1234'5677;
    };
    constexpr int64_t kFirstStep = 70'001;
    for (int64_t step = kFirstStep; step < kFirstStep + 50; ++step) {
      for (int lookup = 0; lookup < 2; ++lookup) {
        std::vector<int64_t> ids(20);
        for (int64_t &id : ids)
          id = idOf(random() % (random() % 2 ? 20 : 100));
        store.train(ids, step);
        expected.train(ids, step);
      }
      seconds += static_cast<int64_t>(random() % 7) - 2 + (step % 20 == 0 ? 50 : 0);
      clock.end(step, seconds);
      store.evict(step, clock.expired(rules.ttlSeconds));
      expected.evict(step, seconds);
      if (step % 17 == 0) {
        store.erase({idOf(1), idOf(2), idOf(40)});
        expected.erase({idOf(1), idOf(2), idOf(40)});
      }
      std::vector<int64_t> ids;
      for (const auto &[id, sighting] : expected.rows)
        ids.push_back(id);
      ASSERT_EQ(this->sorted(store.ids()), ids)
          << "step " << step << ", bound " << rules.bound << ", ttl " << rules.ttl
          << ", ttlSeconds " << rules.ttlSeconds << ", admitAfter " << rules.admitAfter;
    }
    for (const auto &[id, sighting] : expected.rows) {
      EXPECT_EQ(store.sighting(id).lastStep, sighting.lastStep);
      EXPECT_EQ(store.sighting(id).steps, sighting.steps);
    }
  }
}

TYPED_TEST_P(RowRulesConformance, TablesThatShareAStoreAreBoundedEach) {
  constexpr int64_t kKeyBits = 40;
  for (const RowRules &rules :
       {RowRules{.bound = 3}, RowRules{.bound = 6, .eviction = Eviction::lfu, .admitAfter = 2}}) {
    StoreConfig config = ruledConfig(rules);
    config.keyBits = kKeyBits;
    config.members.assign(3, config.initializer);
    TypeParam store(config);
    std::vector<NaiveRows> expected(3, NaiveRows(rules));
    std::mt19937_64 random(4);
    for (int64_t step = 1; step <= 9; ++step) {
      // The first table has many ids, the last has few, and not in all steps.
      const std::vector<uint64_t> below = {20, 8, step % 3 ? 4u : 0u};
      std::vector<int64_t> keys;
      for (size_t member = 0; member < below.size(); ++member) {
        std::vector<int64_t> ids(below[member]);
        for (int64_t &id : ids) {
          id = static_cast<int64_t>(random() % below[member]);
          keys.push_back(static_cast<int64_t>(member) << kKeyBits | id);
        }
        expected[member].train(ids, step);
      }
      std::shuffle(keys.begin(), keys.end(), random);
      store.train(keys, step);
      store.evict(step);
      if (step % 4 == 0)
        store.erase({1, int64_t(1) << kKeyBits | 1});
      for (size_t member = 0; member < below.size(); ++member) {
        expected[member].evict(step);
        if (step % 4 == 0 && member < 2)
          expected[member].erase({1});
        std::vector<int64_t> left, right;
        for (const auto &[key, row] : store.exported(static_cast<int64_t>(member)))
          left.push_back(key & ((int64_t(1) << kKeyBits) - 1));
        for (const auto &[id, sighting] : expected[member].rows)
          right.push_back(id);
        ASSERT_EQ(this->sorted(left), right)
            << "step " << step << ", table " << member << ", bound " << rules.bound;
      }
    }
    store.clear();
    store.train({7, int64_t(2) << kKeyBits | 7}, 10);
    store.train({7, int64_t(2) << kKeyBits | 7}, 11);
    store.evict(11);
    EXPECT_EQ(store.exported(0).size(), 1u);
    EXPECT_EQ(store.exported(2).size(), 1u);
  }
}

REGISTER_TYPED_TEST_SUITE_P(RowRulesConformance, ExactlyFullStaysAndOneMoreLetsTheLowestLeave,
                            ALargerTableMakesRoomForASixteenth, TheLeastRecentlySeenLeaveFirst,
                            TheLeastOftenSeenLeaveFirstAndAStepCountsOnce,
                            AllIdsEqualAreOneRowSeenOnce, AStepMayHaveMoreIdsThanTheBound,
                            WhatLeavesTakesItsStatesAndComesBackNew, WhatStaysKeepsItsValues,
                            RowsNotSeenForTtlStepsLeave, RowsOfExpiredStepsLeave,
                            IdsAreAdmittedInTheStepThatSeesThemOftenEnough,
                            InvalidEntriesAreNotSeen, SearchingSeesNothing,
                            ErasedIdsAreGoneAndOthersAreFound, ErasingFromFullGroupsHidesNobody,
                            IdsThatComeAndGoNeedNoMoreSlots, AgreesWithTheRulesAsTheyRead,
                            TablesThatShareAStoreAreBoundedEach);

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_ROW_RULES_CONFORMANCE_H
