//===- global_bound_test.cpp - Bounded tables on several ranks ------------===//

#include "naive_rows.h"

#include "../../runtime/embedding/global_bound.h"
#include "genrec_rt/owner.h"

#include <gtest/gtest.h>
#include <mutex>
#include <random>

namespace genrec::rt::test {
namespace {

constexpr int64_t kKeyBits = 40;

/// Two tables in one store, whose rows leave by rule.
StoreConfig twoTables(const RowRules &rules) {
  StoreConfig config;
  config.dim = 2;
  config.states = 1;
  config.members.resize(2);
  config.keyBits = kKeyBits;
  config.rules = rules;
  return config;
}

/// Ids and sightings of a table, and of the ids that wait for a row.
struct Content {
  std::map<int64_t, Sighting> rows, waiting;
};

void addRows(TableStore &store, int64_t member, std::map<int64_t, Sighting> &to) {
  int64_t count = store.memberSize({}, member);
  std::vector<int64_t> keys(count);
  std::vector<float *> rows(count);
  std::vector<Sighting> sightings(count);
  store.exportRows({}, member, 0, count, keys.data(), rows.data());
  store.readRows({}, rows.data(), count, store.sightingOffset(), sizeof(Sighting) / 4,
                 reinterpret_cast<float *>(sightings.data()));
  for (int64_t i = 0; i < count; ++i)
    EXPECT_TRUE(to.emplace(keys[i] ^ member << kKeyBits, sightings[i]).second) << "on two ranks";
}

/// What `steps` of ids by member leave on so many ranks.
using Steps = std::vector<std::array<std::vector<int64_t>, 2>>;
std::array<Content, 2> trainOn(int32_t ranks, const RowRules &rules, const Steps &steps) {
  std::array<Content, 2> all;
  std::mutex mutex;
  runThreadRanks(ranks, [&](Communicator &comm) {
    std::unique_ptr<TableStore> store = makeHostStore(twoTables(GlobalBound::rulesOfRank(rules)));
    GlobalBound bound(comm);
    bound.add(*store, rules);
    for (size_t step = 0; step < steps.size(); ++step) {
      std::vector<int64_t> keys;
      for (int64_t member : {0, 1})
        for (int64_t id : steps[step][member])
          if (getOwner(getSlice(static_cast<uint64_t>(member), id), ranks) == comm.getRank())
            keys.push_back(id | member << kKeyBits);
      std::vector<float *> rows(keys.size());
      auto number = static_cast<int64_t>(step) + 1;
      store->findOrAdmit({}, keys.data(), nullptr, static_cast<int64_t>(keys.size()), number,
                         rows.data(), nullptr);
      store->evict({}, number, -1);
      bound.evict({});
    }
    std::lock_guard lock(mutex);
    for (int64_t member : {0, 1}) {
      addRows(*store, member, all[member].rows);
      if (store->waiting())
        addRows(*store->waiting(), member, all[member].waiting);
    }
  });
  return all;
}

std::vector<std::tuple<int64_t, int64_t, int64_t>> listOf(const std::map<int64_t, Sighting> &rows) {
  std::vector<std::tuple<int64_t, int64_t, int64_t>> list;
  for (const auto &[id, sighting] : rows)
    list.emplace_back(id, sighting.lastStep, sighting.steps);
  return list;
}

Steps randomSteps(int64_t count, uint64_t seed, int64_t idsPerStep, bool oneOwner) {
  std::mt19937_64 random(seed);
  Steps steps(count);
  for (auto &step : steps)
    for (size_t member : {0, 1})
      for (int64_t i = 0; i < idsPerStep; ++i) {
        // Large and small ids, so that all bytes of a rank decide at times.
        auto id = static_cast<int64_t>(random() % (random() % 2 ? 40 : 2000));
        if (member == 1)
          id = id * 0x10000193 % (int64_t(1) << kKeyBits);
        if (!oneOwner || getSlice(member, id) < kSlices / 4)
          step[member].push_back(id);
      }
  return steps;
}

TEST(GlobalBound, TheRowsThatLeaveDoNotDependOnRanks) {
  const RowRules rules[] = {{.bound = 1},
                            {.bound = 40},
                            {.bound = 64, .eviction = Eviction::lfu},
                            {.bound = 40, .ttl = 3},
                            {.bound = 30, .eviction = Eviction::lfu, .ttl = 5, .admitAfter = 2},
                            {.bound = 100, .admitAfter = 3},
                            {.ttl = 4, .admitAfter = 2},
                            {.bound = 100000}};
  for (const RowRules &each : rules)
    for (bool oneOwner : {false, true}) {
      Steps steps = randomSteps(40, 17 + each.bound, 50, oneOwner);
      NaiveRows expected[] = {NaiveRows(each), NaiveRows(each)};
      for (size_t step = 0; step < steps.size(); ++step)
        for (size_t member : {0, 1}) {
          expected[member].train(steps[step][member], static_cast<int64_t>(step) + 1);
          expected[member].evict(static_cast<int64_t>(step) + 1);
        }
      for (int32_t ranks : {1, 2, 3, 4}) {
        std::array<Content, 2> actual = trainOn(ranks, each, steps);
        for (size_t member : {0, 1}) {
          EXPECT_EQ(listOf(actual[member].rows), listOf(expected[member].rows))
              << ranks << " ranks, bound " << each.bound;
          EXPECT_EQ(listOf(actual[member].waiting), listOf(expected[member].waiting))
              << ranks << " ranks, bound " << each.bound;
        }
      }
    }
}

TEST(GlobalBound, EveryByteOfARankMayDecide) {
  // Steps and ids around the borders of bytes; id 0 is one.
  std::vector<int64_t> ids = {0, 1, 254, 255, 256, 257, 65535, 65536, (int64_t(1) << 40) - 1};
  Steps steps(300);
  for (size_t step = 0; step < steps.size(); ++step)
    for (size_t i = 0; i < ids.size(); ++i)
      if (step % (i + 1) == 0 || step == 256)
        steps[step][0].push_back(ids[i]);
  for (Eviction eviction : {Eviction::lru, Eviction::lfu})
    for (int64_t bound = 1; bound < 9; ++bound) {
      RowRules rules{.bound = bound, .eviction = eviction};
      NaiveRows expected(rules);
      for (size_t step = 0; step < steps.size(); ++step) {
        expected.train(steps[step][0], static_cast<int64_t>(step) + 1);
        expected.evict(static_cast<int64_t>(step) + 1);
      }
      for (int32_t ranks : {2, 4})
        EXPECT_EQ(listOf(trainOn(ranks, rules, steps)[0].rows), listOf(expected.rows))
            << ranks << " ranks, bound " << bound;
    }
}

TEST(GlobalBound, NoRankLetsRowsLeaveAlone) {
  // Rank 0 has more rows than the bound, and would keep 60; 8 rows of both leave.
  Steps steps(1);
  int64_t counts[] = {65, 3};
  for (int64_t id = 0; counts[0] + counts[1] > 0; ++id)
    if (counts[getOwner(getSlice(0, id), 2)]-- > 0)
      steps[0][0].push_back(id);
    else
      ++counts[getOwner(getSlice(0, id), 2)];
  ASSERT_EQ(steps[0][0].size(), 68U);
  std::map<int64_t, Sighting> rows = trainOn(2, {.bound = 64}, steps)[0].rows;
  EXPECT_EQ(rows.size(), 60U);
  EXPECT_EQ(rows.begin()->first, steps[0][0][8]);
}

TEST(GlobalBound, ARowOnTwoRanksIsAnError) {
  RowRules rules{.bound = 1};
  EXPECT_THROW(runThreadRanks(2,
                              [&](Communicator &comm) {
                                std::unique_ptr<TableStore> store =
                                    makeHostStore(twoTables(GlobalBound::rulesOfRank(rules)));
                                GlobalBound bound(comm);
                                bound.add(*store, rules);
                                int64_t id = 7;
                                float *row;
                                store->findOrAdmit({}, &id, nullptr, 1, 1, &row, nullptr);
                                bound.evict({});
                              }),
               Error);
}

TEST(GlobalBound, NothingBoundedExchangesNothing) {
  runThreadRanks(2, [&](Communicator &comm) {
    comm.setPatience(std::chrono::seconds(2));
    std::unique_ptr<TableStore> store = makeHostStore(twoTables({.ttl = 3}));
    GlobalBound bound(comm);
    bound.add(*store, {.ttl = 3});
    if (comm.getRank() == 0)
      bound.evict({}); // would wait for rank 1
  });
}

} // namespace
} // namespace genrec::rt::test
