//===- cache_test.cpp - A cache of rows on a device -----------------------===//

#include "../Runtime/store_conformance.h"
#include "cache_reference.h"
#include "cuda_store.h"

#include "genrec_rt/cuda/memory.h"

#include <gmock/gmock.h>

#include <set>

namespace genrec::rt::test {
namespace {

class CudaCache : public testing::Test {
protected:
  using Ids = std::vector<int64_t>;

  static Ids range(int64_t first, int64_t count) {
    Ids ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  static std::set<int64_t> idsOf(CudaStore &store) {
    const Ids ids = store.ids();
    std::set<int64_t> all(ids.begin(), ids.end());
    EXPECT_EQ(all.size(), ids.size()) << "an id has two rows";
    return all;
  }
  /// Up to 4,096 ids whose hashes have all but bits 4 to 15 in common: one bucket, one digest.
  static Ids colliding(int64_t count) {
    Ids ids;
    for (int64_t i = 0; i < count; ++i)
      ids.push_back(
          idOfHash(uint64_t(0x5A) << 56 | uint64_t(0x777) << 44 | static_cast<uint64_t>(i) << 4));
    return ids;
  }
  /// Random calls of a store and the reference: inserts with a skew, erasing, searches.
  static void agree(int64_t rows, CacheScore score, int rounds, uint64_t seed) {
    SCOPED_TRACE(std::to_string(rows) +
                 (score == CacheScore::recency ? " rows by recency" : " rows by frequency"));
    CudaStore store(configOf(2, 0), CacheLimit{rows, score});
    CacheReference reference(rows, score);
    std::mt19937_64 random(seed);
    for (int round = 0; round < rounds; ++round) {
      Ids ids(random() % 150 + 1);
      for (int64_t &id : ids) {
        const auto wide = static_cast<double>(random() % 1000) / 1000;
        id = static_cast<int64_t>(wide * wide * wide * static_cast<double>(3 * rows + 20));
      }
      if (round % 5 == 4) {
        store.erase(ids);
        for (int64_t id : ids)
          reference.erase(id);
      } else {
        auto places = store.insert(ids);
        reference.insert(ids);
        for (size_t i = 0; i < ids.size(); ++i)
          ASSERT_EQ(places[i] != nullptr, reference.has(ids[i])) << "id " << ids[i];
        ASSERT_EQ(store.find(ids), places);
      }
      ASSERT_EQ(idsOf(store), reference.ids()) << "after round " << round;
      ASSERT_LE(store.size(), rows);
    }
  }
};
TEST_F(CudaCache, ExactlyFullAndOneMore) {
  CudaStore store(configOf(2, 0), CacheLimit{100});
  const Ids all = range(0, 100);
  const std::set<int64_t> everyId(all.begin(), all.end());
  auto rows = store.insert(range(0, 50));
  EXPECT_TRUE(store.insert({}).empty());
  store.insert(range(50, 50));
  EXPECT_EQ(store.size(), 100);
  EXPECT_EQ(idsOf(store), everyId);
  store.insert(range(1, 49)); // 0 is the one that was touched longest ago
  auto more = store.insert({500});
  EXPECT_EQ(store.size(), 100);
  EXPECT_EQ(more[0], rows[0]) << "the new id has the row of the one that left";
  EXPECT_EQ(store.find({0})[0], nullptr);
}

TEST_F(CudaCache, RowsAreSlots) {
  CudaStore store(configOf(2, 0), CacheLimit{300}); // three buckets of 100
  const auto rows = store.insert(range(0, 250));
  EXPECT_EQ(store.slots(), 384);
  EXPECT_EQ(store.keyBytes(), 384 * (1 + 8 + 1)) << "a digest, a key and a mark, no row number";
  EXPECT_EQ(CudaStore(configOf(2, 0), CacheLimit{300, CacheScore::frequency}).keyBytes(),
            384 * (1 + 8 + 1 + 1 + 8))
      << "a score and a count besides";
  const auto [least, greatest] = std::minmax_element(rows.begin(), rows.end());
  EXPECT_LT(*greatest - *least, 384 * store.rowStride());
  EXPECT_EQ(std::set<float *>(rows.begin(), rows.end()).size(), 250u);
  const int64_t bytes = store.valueBytes();
  store.insert(range(300, 300));
  EXPECT_EQ(store.valueBytes(), bytes) << "memory for all rows is there from the start";
}

TEST_F(CudaCache, KeysThatHaveNoRoomAtHomeAreFound) {
  // One bucket of 128, of whose four sectors one is the home of all.
  const auto ids = colliding(128);
  CudaStore store(configOf(2, 0), CacheLimit{1280});
  const auto rows = store.insert(ids);
  EXPECT_EQ(store.find(ids), rows);
  store.erase({ids.begin(), ids.begin() + 64}); // empty slots at home end no search
  EXPECT_EQ(store.size(), 64);
  const std::vector<int64_t> kept(ids.begin() + 64, ids.end());
  EXPECT_EQ(store.find(kept), (std::vector<float *>(rows.begin() + 64, rows.end())));
  store.erase({ids[64], ids[64], ids[65]});
  EXPECT_EQ(store.size(), 62) << "an id that is named twice is one row less";
}

TEST_F(CudaCache, TheLongestUntouchedLeavesFirst) {
  CudaStore store(configOf(2, 0), CacheLimit{4});
  for (int64_t id : {1, 2, 3, 4})
    store.insert({id});
  store.insert({1});
  store.insert({3});
  store.find({2, 4}); // touches nothing
  for (int64_t gone : {2, 4, 1, 3}) {
    store.insert({100 + gone});
    EXPECT_EQ(store.find({gone})[0], nullptr) << gone;
    EXPECT_EQ(store.size(), 4);
  }
}

TEST_F(CudaCache, TheLeastFrequentLeavesFirst) {
  // 40 and 41, 300 and 301: counts that differ by little.
  const std::map<int64_t, int64_t> counts = {{7, 41}, {8, 40}, {9, 2}, {10, 301}, {11, 300}};
  CudaStore store(configOf(2, 0), CacheLimit{5, CacheScore::frequency});
  for (auto [id, count] : counts)
    store.insert(std::vector<int64_t>(static_cast<size_t>(count), id));
  int64_t fresh = 1000;
  for (int64_t gone : {9, 8, 7, 11, 10}) {
    ++fresh;
    store.insert(std::vector<int64_t>(1000, fresh));
    EXPECT_EQ(store.find({gone})[0], nullptr) << gone;
    EXPECT_EQ(store.size(), 5);
  }
}

/// The steps of cache_table.h: eight between powers of two, up to the last that a byte holds.
TEST_F(CudaCache, ScoresOfCounts) {
  for (auto [count, score] : {std::pair<uint64_t, uint32_t>(0, 0),
                              {15, 15},
                              {16, 16},
                              {17, 16},
                              {18, 17},
                              {31, 23},
                              {32, 24},
                              {uint64_t(1) << 33, 248},
                              {uint64_t(1) << 34, 255},
                              {~uint64_t(0), 255}})
    EXPECT_EQ(cuda::frequencyScore(count), score) << count;
}

TEST_F(CudaCache, OfEqualScoresTheLeastHashLeaves) {
  std::vector<int64_t> ids = range(0, 60), byHash = ids;
  auto hash = [](int64_t id) { return splitMix64(static_cast<uint64_t>(id)); };
  std::sort(byHash.begin(), byHash.end(), [&](int64_t a, int64_t b) { return hash(a) < hash(b); });
  for (CacheScore score : {CacheScore::recency, CacheScore::frequency}) {
    CudaStore store(configOf(2, 0), CacheLimit{60, score});
    store.insert(ids);
    for (size_t i = 0; i < 60; ++i) {
      // Touched twice, so that frequency does not take them back.
      store.insert({1000 + static_cast<int64_t>(i), 1000 + static_cast<int64_t>(i)});
      ASSERT_EQ(store.find({byHash[i]})[0], nullptr) << i;
    }
  }
}

TEST_F(CudaCache, WhatACallTouchesStaysUntilTheNext) {
  CudaStore store(configOf(2, 0), CacheLimit{10});
  store.insert(range(0, 10));
  // 0 to 6 stay, three new ones replace the others, the rest is refused, whatever the order.
  float mark = 0;
  auto rows = store.insert({20, 21, 0, 1, 2, 3, 22, 4, 23, 5, 6, 24, 23, 20}, {}, &mark);
  EXPECT_EQ(idsOf(store), (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 20, 21, 22}));
  for (size_t i : {size_t(8), size_t(11), size_t(12)})
    EXPECT_EQ(rows[i], nullptr) << i;
  EXPECT_EQ(rows[0], rows[13]);
  EXPECT_NE(rows[0], nullptr);
  EXPECT_EQ(store.refused(), 3);
  EXPECT_NE(store.insert({23})[0], nullptr) << "room again in the next call";
}

TEST_F(CudaCache, AllIdsInOneBucket) {
  // Ten buckets, one of which gets everything.
  const auto ids = colliding(700);
  CudaStore store(configOf(2, 0), CacheLimit{1280});
  CacheReference reference(1280, CacheScore::recency);
  auto rows = store.insert(ids);
  reference.insert(ids);
  EXPECT_EQ(store.size(), 128);
  EXPECT_EQ(store.refused(), 572);
  for (size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(rows[i] != nullptr, i < 128) << i;
  for (size_t first : {size_t(300), size_t(100), size_t(350)}) {
    const std::vector<int64_t> some(ids.begin() + static_cast<ptrdiff_t>(first),
                                    ids.begin() + static_cast<ptrdiff_t>(first) + 70);
    store.insert(some);
    reference.insert(some);
    ASSERT_EQ(idsOf(store), reference.ids());
  }
}

TEST_F(CudaCache, OneIdManyTimes) {
  CudaStore store(configOf(2, 0), CacheLimit{3});
  store.insert({1, 2, 3});
  auto rows = store.insert(std::vector<int64_t>(1000, 42));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), rows[0]), 1000);
  EXPECT_NE(rows[0], nullptr);
  EXPECT_EQ(store.size(), 3);
}

TEST_F(CudaCache, OrderIsExactOverManyCalls) {
  // More calls than a byte counts; some rows are touched rarely.
  for (CacheScore score : {CacheScore::recency, CacheScore::frequency}) {
    CudaStore store(configOf(2, 0), CacheLimit{12, score});
    CacheReference reference(12, score);
    std::mt19937_64 random(3);
    const int calls = score == CacheScore::recency ? 700 : 300; // only there marks tell the order
    for (int call = 0; call < calls; ++call) {
      std::vector<int64_t> ids(random() % 3 + 1);
      for (int64_t &id : ids)
        id = random() % 16 ? static_cast<int64_t>(random() % 6)
                           : static_cast<int64_t>(random() % 40);
      store.insert(ids);
      reference.insert(ids);
      if (call % 20 == 19 || call > 250)
        ASSERT_EQ(idsOf(store), reference.ids()) << "after call " << call;
    }
  }
}

/// A byte has no more marks than that: those of the rows are cleared, or numbered anew.
TEST_F(CudaCache, MarksOfCallsLongAgoAreNotTheCurrentOne) {
  CudaStore byCount(configOf(2, 0), CacheLimit{2, CacheScore::frequency});
  byCount.insert({1});
  for (uint32_t call = 1; call < cuda::kLastCall; ++call)
    byCount.insert({2});
  byCount.insert({3, 3}); // a call of the number that the first one had
  EXPECT_EQ(idsOf(byCount), (std::set<int64_t>{2, 3}));
  CudaStore byTime(configOf(2, 0), CacheLimit{128});
  for (int64_t call = 0; call < cuda::kLastCall; ++call)
    byTime.insert({std::min<int64_t>(call, 127)});
  byTime.insert(range(1000, 128)); // every row was touched in another call
  EXPECT_EQ(byTime.refused(), 0);
}

/// In more buckets than there are warps: in the emulator, four blocks of eight.
TEST_F(CudaCache, MarksOfAllBucketsAreNumberedAnew) {
  constexpr int64_t kRows = 40 * 128;
  CudaStore store(configOf(2, 0), CacheLimit{kRows});
  CacheReference reference(kRows, CacheScore::recency);
  std::mt19937_64 random(3);
  for (uint32_t call = 0; call < cuda::kLastCall + 10; ++call) {
    Ids ids(20);
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 9000);
    store.insert(ids);
    reference.insert(ids);
  }
  store.insert(range(10000, 4000));
  reference.insert(range(10000, 4000));
  EXPECT_EQ(idsOf(store), reference.ids());
}

TEST_F(CudaCache, AgreesWithTheRuleAtEverySize) {
  uint64_t seed = 0;
  for (CacheScore score : {CacheScore::recency, CacheScore::frequency})
    for (int64_t rows : {1, 31, 127, 128, 129, 300})
      agree(rows, score, 12, ++seed);
}

TEST_F(CudaCache, RowsThatAreTakenOverStartAnew) {
  StoreConfig config = configOf(3, 1);
  config.initialAccumulator = 0.25;
  CudaStore store(config, CacheLimit{2});
  auto rows = store.insert({1, 2});
  store.write(rows[0], 0, 99);
  store.write(rows[0], 3, 99);
  store.insert({2});
  auto row = store.insert({3})[0];
  ASSERT_EQ(row, rows[0]);
  std::vector<float> expected(3);
  config.initializer.fill(3, 3, expected.data());
  auto values = store.values(row);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), values.begin()));
  EXPECT_EQ(values[3], 0.25f);
}

TEST_F(CudaCache, ClearForgetsRowsAndScores) {
  CudaStore store(configOf(2, 0), CacheLimit{3, CacheScore::frequency});
  store.insert({1, 1, 1, 2, 3});
  store.clear();
  EXPECT_EQ(store.size(), 0);
  EXPECT_EQ(store.find({2})[0], nullptr);
  store.insert({1, 2, 2, 3, 3});
  store.insert({4});
  EXPECT_EQ(store.find({1})[0], nullptr) << "1 has occurred once since";
}

using Evicted = std::vector<std::pair<int64_t, std::vector<float>>>;

TEST_F(CudaCache, WhatLeavesIsHandedOver) {
  CudaStore store(configOf(8, 1), CacheLimit{3});
  auto rows = store.insert({1, 2, 3});
  for (size_t i = 0; i < 3; ++i)
    store.write(rows[i], 15, static_cast<float>(i) + 10); // a state, the last float of the row
  store.insert({2});
  store.insert({1});
  Evicted evicted;
  store.insert({8, 9, 8}, evicted); // 3 leaves for 8, 2 for 9
  ASSERT_EQ(evicted.size(), 2u);
  EXPECT_EQ(evicted[0].first, 3);
  EXPECT_EQ(evicted[1].first, 2);
  EXPECT_EQ(evicted[0].second[15], 12);
  EXPECT_EQ(evicted[1].second[15], 11);
  evicted.clear();
  store.insert({8, 9}, evicted);
  EXPECT_TRUE(evicted.empty());
  store.insert({}, evicted);
  EXPECT_TRUE(evicted.empty());
}

TEST_F(CudaCache, EvictedIdsComeInTheOrderOfTheIdsThatTakeTheirPlace) {
  CudaStore store(configOf(2, 0), CacheLimit{300});
  CacheReference reference(300, CacheScore::recency);
  for (int64_t round = 0; round < 4; ++round) {
    std::vector<int64_t> ids(200);
    std::iota(ids.begin(), ids.end(), round * 150);
    Evicted evicted;
    store.insert(ids, evicted);
    std::vector<int64_t> left;
    for (auto &[id, row] : evicted)
      left.push_back(id);
    EXPECT_EQ(left, reference.insert(ids));
  }
}

TEST_F(CudaCache, TablesThatShareACacheAreExportedApart) {
  StoreConfig config = configOf(2, 0);
  config.keyBits = 40;
  config.members.assign(2, config.initializer);
  CudaStore store(config, CacheLimit{128});
  const int64_t second = int64_t(1) << 40;
  const auto rows = store.insert({5, second | 5, second | 7});
  using Exported = std::vector<std::pair<int64_t, float *>>;
  EXPECT_EQ(store.exported(0), (Exported{{5, rows[0]}}));
  EXPECT_EQ(store.exported(1).size(), 2u);
  store.erase({5});
  EXPECT_TRUE(store.exported(0).empty());
}

TEST_F(CudaCache, ASizeOutOfRangeIsAnError) {
  for (int64_t rows : {int64_t(-1), int64_t(1) << 31})
    try {
      CudaStore store(configOf(2, 0), CacheLimit{rows});
      FAIL() << rows;
    } catch (const Error &error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("cache 'movie' of " + std::to_string(rows) +
                                                   " rows: a cache has from 1 to 2147483647"));
    }
}

TEST_F(CudaCache, NothingIsAllocatedInTheSteadyState) {
  CudaStore store(configOf(2, 0), CacheLimit{256, CacheScore::frequency});
  std::vector<int64_t> ids(300);
  std::iota(ids.begin(), ids.end(), 0);
  store.insert(ids);
  const int64_t before = cuda::namedAllocations("movie");
  for (int round = 0; round < 3; ++round) {
    for (int64_t &id : ids)
      id += 100;
    store.insert(ids);
  }
  EXPECT_EQ(cuda::namedAllocations("movie"), before);
  EXPECT_LE(store.size(), 256);
}

#if defined(GENREC_SIMT)
/// Threads in many orders, giving way often: which rows stay, and where, is always the same.
class CacheOrders : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, CacheOrders, testing::Range<uint64_t>(1, 7));

TEST_P(CacheOrders, GiveTheSameRows) {
  auto insertAll = [&](uint64_t seed, uint32_t preemptOneIn) {
    simt::options() = {.seed = seed, .residentBlocks = 4, .preemptOneIn = preemptOneIn};
    CudaStore store(configOf(2, 0), CacheLimit{140, CacheScore::frequency});
    std::mt19937_64 random(2);
    std::vector<std::vector<int64_t>> seen;
    for (int call = 0; call < 3; ++call) {
      std::vector<int64_t> ids(200);
      for (int64_t &id : ids)
        id = static_cast<int64_t>(random() % 220) * 3;
      Evicted evicted;
      store.insert(ids, evicted);
      seen.push_back({});
      for (auto &[id, row] : evicted)
        seen.back().push_back(id);
    }
    simt::options() = {};
    seen.push_back(store.ids());
    return seen;
  };
  EXPECT_EQ(insertAll(GetParam(), 3), insertAll(100, 64));
}
#endif

} // namespace
} // namespace genrec::rt::test
