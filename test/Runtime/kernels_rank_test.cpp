// Top-k and ranks against sorting all scores.

#include "kernels_testing.h"

#include "../../runtime/kernels/cpu/rank_impl.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;

/// A catalogue whose rows are small integers, so that every score is exact in
/// any order and ties abound.
struct Case {
  int64_t queries, items, dim, gap;
  std::vector<float> queryRows, itemRows;
  std::vector<int64_t> offsets{0}, excluded, targets;
  k::RankArgs args;

  Case(Random &random, int64_t queries, int64_t items, int64_t dim, int64_t gap)
      : queries(queries), items(items), dim(dim), gap(gap) {
    auto fill = [&](std::vector<float> &rows, int64_t count) {
      for (int64_t i = 0; i < count * (dim + gap); ++i)
        rows.push_back(static_cast<float>(random.below(5) - 2));
    };
    fill(queryRows, queries);
    fill(itemRows, items);
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t n = random.below(30); n > 0; --n)
        excluded.push_back(random.below(8) ? random.below(items) : -1);
      if (random.below(2))
        std::sort(excluded.begin() + offsets.back(), excluded.end());
      offsets.push_back(static_cast<int64_t>(excluded.size()));
      targets.push_back(random.below(items));
    }
    args.queries = queryRows.data(), args.ldQueries = dim + gap;
    args.queryCount = queries;
    args.items = itemRows.data(), args.ldItems = dim + gap;
    args.itemCount = items;
    args.dim = dim;
    args.excludedOffsets = offsets.data(), args.excluded = excluded.data();
  }

  float score(int64_t query, int64_t item) const {
    float total = 0;
    for (int64_t c = 0; c < dim; ++c)
      total += queryRows[static_cast<size_t>(query * (dim + gap) + c)] *
               itemRows[static_cast<size_t>(item * (dim + gap) + c)];
    return total;
  }
  std::set<int64_t> excludedOf(int64_t query) const {
    if (!args.excludedOffsets)
      return {};
    return {excluded.begin() + offsets[static_cast<size_t>(query)],
            excluded.begin() + offsets[static_cast<size_t>(query) + 1]};
  }
};

/// The arguments as this file's own build of the scan wants them.
k::RankArgs sortedArgs(const Case &c, std::vector<int64_t> &excluded) {
  k::RankArgs args = c.args;
  excluded = c.excluded;
  for (size_t i = 0; i + 1 < c.offsets.size(); ++i)
    std::sort(excluded.begin() + c.offsets[i], excluded.begin() + c.offsets[i + 1]);
  args.excluded = excluded.data();
  return args;
}

void checkTopK(const Case &c, int64_t count, genrec_rt_pool *pool) {
  std::vector<int64_t> indices(static_cast<size_t>(c.queries * count), -7);
  std::vector<float> scores(indices.size());
  Scratch scratch(k::rankScratchBytes(c.dim, static_cast<int64_t>(c.excluded.size()), count,
                                      genrec_rt_pool_threads(pool)));
  ASSERT_TRUE(k::topK(pool, c.args, count, indices.data(), scores.data(), scratch.data()));
  EXPECT_TRUE(scratch.guardIsWhole());
  if (count > 0) {
    std::vector<int64_t> sorted, ownIndices(indices.size());
    std::vector<float> ownScores(scores.size());
    Scratch own(k::kRankScan.bytesPerWorker(c.dim, count) * genrec_rt_pool_threads(pool));
    ASSERT_TRUE(k::kRankScan.topK(pool, sortedArgs(c, sorted), count, ownIndices.data(),
                                  ownScores.data(), own.data()));
    EXPECT_EQ(indices, ownIndices);
    EXPECT_EQ(scores, ownScores);
    EXPECT_TRUE(own.guardIsWhole());
  }
  for (int64_t query = 0; query < c.queries; ++query) {
    std::set<int64_t> excluded = c.excludedOf(query);
    std::vector<std::pair<float, int64_t>> all;
    for (int64_t item = 0; item < c.items; ++item)
      if (!excluded.count(item))
        all.push_back({-c.score(query, item), item});
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < count; ++i) {
      size_t at = static_cast<size_t>(query * count + i);
      bool found = i < static_cast<int64_t>(all.size());
      ASSERT_EQ(indices[at], found ? all[static_cast<size_t>(i)].second : -1) << query << ": " << i;
      ASSERT_EQ(scores[at], found ? -all[static_cast<size_t>(i)].first : -INFINITY);
    }
  }
}

void checkRanks(const Case &c, genrec_rt_pool *pool) {
  std::vector<int64_t> ranks(static_cast<size_t>(c.queries), -7);
  Scratch scratch(k::rankScratchBytes(c.dim, static_cast<int64_t>(c.excluded.size()), 0,
                                      genrec_rt_pool_threads(pool)));
  ASSERT_TRUE(k::rankOf(pool, c.args, c.targets.data(), ranks.data(), scratch.data()));
  EXPECT_TRUE(scratch.guardIsWhole());
  std::vector<int64_t> sorted, own(ranks.size());
  Scratch ownScratch(k::kRankScan.bytesPerWorker(c.dim, 0) * genrec_rt_pool_threads(pool));
  ASSERT_TRUE(k::kRankScan.rankOf(pool, sortedArgs(c, sorted), nullptr, c.queries, c.targets.data(),
                                 own.data(), ownScratch.data()));
  EXPECT_EQ(ranks, own);
  EXPECT_TRUE(ownScratch.guardIsWhole());
  for (int64_t query = 0; query < c.queries; ++query) {
    std::set<int64_t> excluded = c.excludedOf(query);
    int64_t target = c.targets[static_cast<size_t>(query)];
    int64_t expected = target < 0 || target >= c.items ? 0 : 1;
    for (int64_t item = 0; expected && item < c.items; ++item)
      expected += item != target && !excluded.count(item) &&
                  c.score(query, item) >= c.score(query, target);
    ASSERT_EQ(ranks[static_cast<size_t>(query)], expected) << query;
  }
}

/// Lists of targets, none to many per query, repeated ones and -1 among them, against one order of
/// all items per query.
void checkLists(const Case &c, Random &random, genrec_rt_pool *pool) {
  std::vector<int64_t> offsets{0}, queryOf, targets;
  for (int64_t query = 0; query < c.queries; ++query) {
    for (int64_t n = random.below(8); n > 0; --n) {
      targets.push_back(random.below(6) ? random.below(c.items) : -1);
      queryOf.push_back(query);
    }
    offsets.push_back(static_cast<int64_t>(targets.size()));
  }
  int64_t count = offsets.back();
  std::vector<int64_t> ranks(targets.size(), -7), expected(targets.size());
  Scratch scratch(k::rankListsScratchBytes(c.dim, static_cast<int64_t>(c.excluded.size()), count,
                                           genrec_rt_pool_threads(pool)));
  ASSERT_TRUE(k::rankLists(pool, c.args, {offsets.data(), queryOf.data(), targets.data(), count},
                           ranks.data(), scratch.data()));
  EXPECT_TRUE(scratch.guardIsWhole());
  for (int64_t query = 0; query < c.queries; ++query) {
    std::set<int64_t> excluded = c.excludedOf(query), seen;
    std::vector<std::tuple<float, int64_t, int64_t>> order; // score, place among targets, row
    for (int64_t row = offsets[static_cast<size_t>(query)];
         row < offsets[static_cast<size_t>(query) + 1]; ++row)
      if (int64_t target = targets[static_cast<size_t>(row)]; target >= 0 && seen.insert(target).second)
        order.emplace_back(-c.score(query, target), row, row);
    for (int64_t item = 0; item < c.items; ++item)
      if (!seen.count(item) && !excluded.count(item))
        order.emplace_back(-c.score(query, item), -1, -1);
    std::sort(order.begin(), order.end());
    for (size_t place = 0; place < order.size(); ++place)
      if (int64_t row = std::get<2>(order[place]); row >= 0)
        expected[static_cast<size_t>(row)] = static_cast<int64_t>(place) + 1;
  }
  EXPECT_EQ(ranks, expected);
}

KERNEL_TEST(KernelsRank, SeveralTargetsAgainstOneOrder) {
  Pool pool(3);
  Random random(5);
  for (int64_t queries : {1, 16, 70, 200})
    for (int64_t items : {1, 2, 13, 145, 700}) {
      Case c(random, queries, items, 1 + random.below(20), random.below(2) * 3);
      checkLists(c, random, pool);
      c.args.excludedOffsets = nullptr;
      checkLists(c, random, nullptr);
    }
}

KERNEL_TEST(KernelsRank, RowsOfListsByScore) {
  // Ties: the rows of label 0 first, then the list's order; a row that is not valid is not there.
  std::vector<float> score = {1, 3, 3, 3, 2, 9, 5, 0}, label = {1, 1, 0, 1, 0, 1, 1, 0};
  std::vector<uint8_t> valid = {1, 1, 1, 1, 1, 0, 1, 1};
  std::vector<int64_t> offsets = {0, 5, 5, 7, 8}, ranks(8, -7), order(8);
  int64_t bad = 0;
  k::ScoredLists lists{4, offsets.data(), score.data(), label.data(), valid.data()};
  EXPECT_EQ(k::rankScored(nullptr, lists, ranks.data(), order.data(), &bad), k::UnrankedRow::none);
  EXPECT_EQ(ranks, (std::vector<int64_t>{5, 2, 0, 3, 0, 0, 1, 0}));
  score[5] = NAN; // not valid: not looked at
  EXPECT_EQ(k::rankScored(nullptr, lists, ranks.data(), order.data(), &bad), k::UnrankedRow::none);
  score[6] = NAN;
  EXPECT_EQ(k::rankScored(nullptr, lists, ranks.data(), order.data(), &bad), k::UnrankedRow::nanScore);
  EXPECT_EQ(bad, 6);
  label[3] = 2;
  EXPECT_EQ(k::rankScored(nullptr, lists, ranks.data(), order.data(), &bad), k::UnrankedRow::label);
  EXPECT_EQ(bad, 3);
}

KERNEL_TEST(KernelsRank, AgainstSorting) {
  Pool pool(3);
  Random random(1);
  for (int64_t queries : {1, 15, 16, 17, 33, 100})
    for (int64_t items : {1, 11, 12, 13, 143, 144, 145, 700}) {
      Case c(random, queries, items, 1 + random.below(60), random.below(2) * 3);
      checkTopK(c, 1, pool);
      checkTopK(c, 10, nullptr);
      checkTopK(c, 200, pool);
      checkRanks(c, pool);
      c.args.excludedOffsets = nullptr;
      checkTopK(c, 10, nullptr);
      checkRanks(c, nullptr);
    }
}

KERNEL_TEST(KernelsRank, NothingToDo) {
  Random random(2);
  Case c(random, 3, 5, 4, 0);
  checkTopK(c, 0, nullptr);
  c.targets = {-1, 5, 1 << 20};
  checkRanks(c, nullptr);
  c.args.queryCount = c.queries = 0;
  checkTopK(c, 3, nullptr);
  checkRanks(c, nullptr);
  c.queries = c.args.queryCount = 3, c.args.itemCount = c.items = 0;
  checkTopK(c, 3, nullptr);
  checkRanks(c, nullptr);
}

KERNEL_TEST(KernelsRank, RealScoresOfTheTargetTieWithItself) {
  // A rank would be off by one if the target's score had other bits in the scan.
  Random random(3);
  const int64_t n = 500, dim = 50;
  std::vector<float> rows = random.reals(n * dim), queries = random.reals(64 * dim);
  k::RankArgs args;
  args.queries = queries.data(), args.ldQueries = dim, args.queryCount = 64;
  args.items = rows.data(), args.ldItems = dim, args.itemCount = n, args.dim = dim;
  std::vector<int64_t> indices(64 * 500), targets(64), ranks(64);
  std::vector<float> scores(64 * 500);
  Scratch scratch(k::rankScratchBytes(dim, 0, n, 1));
  ASSERT_TRUE(k::topK(nullptr, args, n, indices.data(), scores.data(), scratch.data()));
  for (int64_t place : {0, 1, 7, 100, 499}) {
    for (size_t q = 0; q < 64; ++q)
      targets[q] = indices[q * 500 + static_cast<size_t>(place)];
    ASSERT_TRUE(k::rankOf(nullptr, args, targets.data(), ranks.data(), scratch.data()));
    for (size_t q = 0; q < 64; ++q)
      EXPECT_EQ(ranks[q], place + 1);
  }
}

KERNEL_TEST(KernelsRank, NaNScoresFail) {
  Random random(4);
  Case c(random, 17, 100, 8, 0);
  std::vector<int64_t> indices(17 * 2), ranks(17);
  std::vector<float> scores(17 * 2);
  Scratch scratch(k::rankScratchBytes(8, static_cast<int64_t>(c.excluded.size()), 2, 1));
  auto fails = [&] {
    bool top = k::topK(nullptr, c.args, 2, indices.data(), scores.data(), scratch.data());
    bool rank = k::rankOf(nullptr, c.args, c.targets.data(), ranks.data(), scratch.data());
    EXPECT_EQ(top, rank);
    return !top;
  };
  EXPECT_FALSE(fails());
  c.itemRows[8 * 99] = NAN;
  EXPECT_TRUE(fails());
  // An infinite item makes NaN in lanes without a query; that is no failure.
  c.itemRows[8 * 99] = INFINITY;
  for (float &x : c.queryRows)
    x = 1;
  EXPECT_FALSE(fails());
  c.queryRows[16 * 8] = NAN;
  EXPECT_TRUE(fails());
}

} // namespace
