//===- rank_test.cpp - Top-k and ranks on the device ----------------------===//
//
// Against the CPU's, to the bit.
//
//===----------------------------------------------------------------------===//

#include "cpu_reference.h"
#include "domain_copies.h"
#include "note_copy.h"
#include "scratch.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cpu/rank.h"
#include "genrec_rt/kernels/cuda/item_scores.h"
#include "genrec_rt/kernels/cuda/library_products.h"

#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

using Ids = std::vector<int64_t>;

/// Queries with excluded items, and a catalogue with equal scores. Where it `isKnown`, the host
/// knows how many items there are, and behind the last query lies NaN.
struct Catalogue {
  std::mt19937_64 random;
  int64_t dim, ldQuery, ldItem, itemCount, chunkBytes = 1 << 20;
  bool isKnown;
  std::unique_ptr<HostDomain> queries, excluding;
  DeviceDomain queriesThere, excludingThere;
  genrec_domain itemsView = {};
  std::vector<float> query, item;
  Ids excluded;
  Copy<float> queryThere, itemThere;
  Copy<int64_t> excludedThere;
  Copy<genrec_domain> itemsThere;
  mutable NoteCopy nan;

  /// Without `given` excluded items are drawn. Values are parts of `unit`, those of queries of
  /// `ofQueries` units.
  Catalogue(const Lengths &excludedPerQuery, int64_t itemCount, int64_t dim, bool isKnown = false,
            const Ids &given = {}, float unit = 1, float ofQueries = 1)
      : random(5), dim(dim), ldQuery(dim + 1), ldItem(dim + 2), itemCount(itemCount),
        isKnown(isKnown), queries(makeRoot(static_cast<int64_t>(excludedPerQuery.size()), random)),
        excluding(makeLists(*queries, excludedPerQuery, random)), queriesThere(*queries),
        excludingThere(*excluding, &queriesThere),
        query(values(queries->view.count * ldQuery, unit * ofQueries)),
        item(values(itemCount * ldItem, unit)),
        excluded(given.empty() ? items(excluding->view.count) : given),
        queryThere(withRoom(query, isKnown ? 5 * ldQuery : 0)), itemThere(item),
        excludedThere(excluded),
        itemsThere(std::vector{genrec_domain{itemCount, itemCount + 70, nullptr, nullptr, nullptr,
                                             nullptr, itemCount, nullptr}}) {}

  static std::vector<float> withRoom(std::vector<float> values, int64_t room) {
    values.resize(values.size() + static_cast<size_t>(room), __builtin_nanf(""));
    return values;
  }
  /// Few different values, so that scores are equal now and then.
  std::vector<float> values(int64_t count, float unit = 1) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float &value : result)
      value = static_cast<float>(static_cast<int>(random() % 7) - 3) / 3 * unit;
    return result;
  }
  /// Items, some of them twice, some that there are not.
  Ids items(int64_t count) {
    Ids result(static_cast<size_t>(count));
    for (int64_t &value : result)
      value = static_cast<int64_t>(random() % static_cast<uint64_t>(itemCount + 6)) - 3;
    return result;
  }
  int64_t queryCount() const { return queries->view.count; }

  kernels::RankArgs onHost(bool excludes) const {
    kernels::RankArgs args;
    args.queries = query.data(), args.ldQueries = ldQuery, args.queryCount = queryCount();
    args.items = item.data(), args.ldItems = ldItem, args.itemCount = itemCount, args.dim = dim;
    args.excludedOffsets = excludes ? excluding->view.offsets : nullptr;
    args.excluded = excluded.data();
    return args;
  }
  /// With bounds above what there is.
  RankedItems onDevice(bool excludes) {
    RankedItems r;
    r.queries = queriesThere.get(), r.queryCapacity = queryCount() + 5;
    r.query = queryThere.data(), r.ldQuery = ldQuery;
    r.items = itemsThere.data(), r.itemCapacity = itemCount + (isKnown ? 0 : 70);
    r.areItemsKnown = isKnown;
    r.item = itemThere.data(), r.ldItem = ldItem, r.dim = dim;
    r.excluding = excludes ? excludingThere.get() : nullptr;
    r.excludedCapacity = excluding->view.count + 3;
    r.excluded = excludedThere.data();
    r.chunkBytes = chunkBytes;
    r.nanNote = nan.data();
    return r;
  }
};

void expectTop(Catalogue &c, int64_t k, bool excludes) {
  const int64_t rows = c.queryCount() + 5;
  Ids expected(static_cast<size_t>(rows * k));
  std::vector<float> expectedScores(expected.size());
  const kernels::RankArgs args = c.onHost(excludes);
  std::vector<char> memory(static_cast<size_t>(
      kernels::rankScratchBytes(c.dim, static_cast<int64_t>(c.excluded.size()), k, 1)));
  ASSERT_TRUE(
      kernels::topK(nullptr, args, k, expected.data(), expectedScores.data(), memory.data()));
  for (size_t i = 0; i < expected.size(); ++i)
    expectedScores[i] = expected[i] < 0 ? kNoScore : expectedScores[i];
  const RankedItems ranked = c.onDevice(excludes);
  Copy<int64_t> index(Ids(expected.size(), 9));
  Copy<float> score(std::vector<float>(expected.size(), 9));
  Scratch scratch(topItemsScratchBytes(ranked, k));
  topItems(ranked, k, index.data(), score.data(), scratch.data(), testStream());
  EXPECT_EQ(index.fetch(), expected) << "k " << k;
  EXPECT_EQ(score.fetch(), expectedScores) << "k " << k;
  EXPECT_EQ(c.nan.row(), -1);
}

void expectRanks(Catalogue &c, bool excludes) {
  const Ids targets = c.items(c.queryCount());
  Ids expected(static_cast<size_t>(c.queryCount() + 5));
  const kernels::RankArgs args = c.onHost(excludes);
  std::vector<char> memory(static_cast<size_t>(
      kernels::rankScratchBytes(c.dim, static_cast<int64_t>(c.excluded.size()), 0, 1)));
  ASSERT_TRUE(kernels::rankOf(nullptr, args, targets.data(), expected.data(), memory.data()));
  const RankedItems ranked = c.onDevice(excludes);
  Copy<int64_t> targetsThere(targets), ranks(Ids(expected.size(), 9));
  Scratch scratch(rankTargetsScratchBytes(ranked));
  rankTargets(ranked, targetsThere.data(), ranks.data(), scratch.data(), testStream());
  EXPECT_EQ(ranks.fetch(), expected);
}

void expectListedRanks(Catalogue &c, const Lengths &lengths, bool excludes) {
  auto listed = makeLists(*c.queries, lengths, c.random);
  DeviceDomain listedThere(*listed, &c.queriesThere);
  const Ids targets = c.items(listed->view.count);
  Ids expected(targets.size() + 7);
  const kernels::RankArgs args = c.onHost(excludes);
  const kernels::TargetLists lists{listed->view.offsets, listed->view.parent, targets.data(),
                                   listed->view.count};
  std::vector<char> memory(static_cast<size_t>(kernels::rankListsScratchBytes(
      c.dim, static_cast<int64_t>(c.excluded.size()), listed->view.count, 1)));
  ASSERT_TRUE(kernels::rankLists(nullptr, args, lists, expected.data(), memory.data()));
  const RankedItems ranked = c.onDevice(excludes);
  Copy<int64_t> targetsThere(targets), ranks(Ids(expected.size(), 9));
  const int64_t capacity = static_cast<int64_t>(expected.size());
  Scratch scratch(rankListsScratchBytes(ranked, capacity));
  rankLists(ranked, listedThere.get(), capacity, targetsThere.data(), ranks.data(), scratch.data(),
            testStream());
  EXPECT_EQ(ranks.fetch(), expected);
}

TEST(Rank, TopItems) {
  for (int64_t k : {1, 4, 33}) {
    Catalogue many({0, 5, 1, 40, 3}, 190, 5), few({2, 0, 9}, 12, 3), none({}, 20, 4),
        empty({1, 2}, 0, 4);
    for (Catalogue *c : {&many, &few, &none, &empty})
      for (bool excludes : {false, true})
        expectTop(*c, k, excludes);
  }
}

TEST(Rank, TopItemsOfChunks) {
  // Three chunks of items; the last queries are a tile of their own.
  Catalogue c({3, 1, 400}, 2300, 2), many(Lengths(70, 0), 9, 1);
  c.chunkBytes = 1;
  expectTop(c, 5, true);
  expectTop(c, 1500, true);
  expectTop(many, 2, false);
}

TEST(Rank, OfTargets) {
  Catalogue many(Lengths(70, 3), 190, 5), few({2, 0, 200, 90, 80, 70}, 12, 3), none({}, 20, 4),
      empty({1, 2}, 0, 4);
  for (Catalogue *c : {&many, &few, &none, &empty})
    for (bool excludes : {false, true})
      expectRanks(*c, excludes);
}

TEST(Rank, OfListedTargets) {
  Catalogue c({0, 5, 1, 40, 3}, 60, 3);
  for (const Lengths &lengths :
       {Lengths{0, 0, 0, 0, 0}, Lengths{1, 7, 0, 90, 2}, Lengths{0, 0, 30, 0, 0}})
    for (bool excludes : {false, true})
      expectListedRanks(c, lengths, excludes);
}

/// cuBLASLt computes the scores, and not one bit of a result shows it: many are equal, and those of
/// copies of the target that come in another chunk must be, too.
TEST(Rank, ByTheLibrary) {
  Catalogue many({0, 5, 1, 700, 3}, 2300, 64, true), few({2, 0, 9}, 40, 65, true),
      none({}, 64, 64, true);
  many.chunkBytes = 1;
  for (Catalogue *c : {&many, &few, &none})
    for (bool excludes : {false, true}) {
      for (int64_t k : {1, 33})
        expectTop(*c, k, excludes);
      expectRanks(*c, excludes);
    }
  expectTop(many, 1500, true);
  expectListedRanks(many, {1, 7, 0, 90, 2}, true);
  Catalogue wide(Lengths(70, 1), 40, 64, true); // several chunks of queries
  expectTop(wide, 3, true);
  expectRanks(wide, true);
  Catalogue small(Lengths(60, 1), 2300, 64, true, {}, 0x1p-10f); // norms are far less than one
  expectTop(small, 33, true);
  expectRanks(small, true);
  Catalogue least(Lengths(60, 1), 2300, 64, true, {}, 1, 0x1p-76f); // squares are 0
  expectTop(least, 33, true);
  expectRanks(least, true);
  Catalogue lost(Lengths(60, 1), 2300, 64, true, {}, 0x1.8p-74f); // halves of the least float
  expectTop(lost, 33, true);
  expectRanks(lost, true);
}

/// Excluded items that all belong into the last slot of their list's set, in each list the same.
TEST(Rank, ExcludedItemsThatMeet) {
  Ids meeting, given;
  for (int64_t item = 0; meeting.size() < 3; ++item)
    if (splitMix64(static_cast<uint64_t>(item)) >> 61 == 7)
      meeting.push_back(item);
  for (int query = 0; query < 30; ++query)
    given.insert(given.end(), meeting.begin(), meeting.end());
  Catalogue c(Lengths(30, 3), 60, 3, false, given);
  ASSERT_LT(meeting.back(), c.itemCount);
  expectRanks(c, true);
}

/// A catalogue of one column whose items are given, and three queries of one value.
struct OneColumn {
  std::mt19937_64 random{5};
  std::unique_ptr<HostDomain> queries = makeRoot(3, random);
  DeviceDomain queriesThere{*queries};
  Copy<float> query, item;
  Copy<genrec_domain> items;
  NoteCopy nan;
  RankedItems ranked;

  OneColumn(float query, const std::vector<float> &item)
      : query(std::vector<float>(3, query)), item(item), items(std::vector{describe(item)}) {
    ranked.queries = queriesThere.get(), ranked.queryCapacity = 3;
    ranked.query = this->query.data(), ranked.ldQuery = 1;
    ranked.items = items.data(), ranked.itemCapacity = static_cast<int64_t>(item.size());
    ranked.item = this->item.data(), ranked.ldItem = ranked.dim = 1;
    ranked.chunkBytes = 1 << 20;
    ranked.nanNote = nan.data();
  }
  static genrec_domain describe(const std::vector<float> &item) {
    genrec_domain domain = {};
    domain.count = domain.capacity = static_cast<int64_t>(item.size());
    return domain;
  }
};

/// Nor is one of an item that there is not, by whose zeros it is multiplied in a tile.
TEST(Rank, AnInfiniteScoreIsNoNaN) {
  OneColumn c(std::numeric_limits<float>::infinity(), {1, -1, 2, 0.5f});
  Copy<int64_t> targets(Ids{0, 1, 2}), ranks(Ids(3)), index(Ids(6));
  Copy<float> score{std::vector<float>(6)};
  Scratch scratch(std::max(rankTargetsScratchBytes(c.ranked), topItemsScratchBytes(c.ranked, 2)));
  rankTargets(c.ranked, targets.data(), ranks.data(), scratch.data(), testStream());
  EXPECT_EQ(ranks.fetch(), (Ids{3, 4, 3}));
  topItems(c.ranked, 2, index.data(), score.data(), scratch.data(), testStream());
  EXPECT_EQ(index.fetch(), (Ids{0, 2, 0, 2, 0, 2}));
  EXPECT_EQ(c.nan.row(), -1);
}

/// A product that is too small for a float may be -0: no less than 0.
TEST(Rank, ZerosOfBothSignsAreEqual) {
  OneColumn c(1e-30f, {-1e-30f, 0, 1e-30f, -1});
  Copy<int64_t> index(Ids(9));
  Copy<float> score{std::vector<float>(9)};
  Scratch scratch(topItemsScratchBytes(c.ranked, 3));
  topItems(c.ranked, 3, index.data(), score.data(), scratch.data(), testStream());
  EXPECT_EQ(index.fetch(), (Ids{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(Rank, NaNIsSeen) {
  for (int variant = 0; variant < 8; ++variant) {
    const bool excludes = variant & 1, isKnown = variant & 2, hasTargets = variant & 4;
    Catalogue c({2, 2}, isKnown ? 1100 : 80, isKnown ? 64 : 3, isKnown);
    c.chunkBytes = 1;
    std::vector<float> item = c.item;
    // In the second chunk of the library's.
    item[static_cast<size_t>((isKnown ? 1071 : 71) * c.ldItem + 1)] = __builtin_nanf("");
    Copy<float> itemThere(item);
    RankedItems ranked = c.onDevice(excludes);
    ranked.item = itemThere.data();
    Copy<int64_t> targets(hasTargets ? Ids{1, 2} : Ids{-1, -1}), ranks(Ids(7)), index(Ids(21));
    Copy<float> score{std::vector<float>(21)};
    Scratch scratch(std::max(rankTargetsScratchBytes(ranked), topItemsScratchBytes(ranked, 3)));
    rankTargets(ranked, targets.data(), ranks.data(), scratch.data(), testStream());
    EXPECT_EQ(c.nan.row(), 0);
    NoteCopy again;
    ranked.nanNote = again.data();
    topItems(ranked, 3, index.data(), score.data(), scratch.data(), testStream());
    EXPECT_EQ(again.row(), 0);
  }
}

void expectNear(const std::vector<float> &got, const std::vector<float> &expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2e-5) << i;
}

/// Scores of items from `first` on, which have the CPU's bits unless the library computes them.
void expectScores(Catalogue &c, int64_t first, int64_t width) {
  const int64_t count = std::clamp<int64_t>(c.itemCount - first, 0, width);
  std::vector<float> expected(static_cast<size_t>((c.queryCount() + 5) * width));
  std::fill_n(expected.begin(), c.queryCount() * width, kNoScore);
  multiplyOnCpu(c.queryCount(), c.dim, count, c.query.data(), c.ldQuery,
                c.item.data() + (count ? first * c.ldItem : 0), c.ldItem, expected.data(), width);
  Copy<float> out(std::vector<float>(expected.size(), 9));
  NoteCopy tooMany;
  const RankedItems ranked = c.onDevice(false);
  Scratch scratch(scoresScratchBytes(ranked, {first, width}, out.data()));
  scoreItems(ranked, {first, width}, out.data(), tooMany.data(), scratch.data(), testStream());
  if (c.isKnown && c.dim >= kLeastLibrarySize && count >= kLeastLibrarySize)
    expectNear(out.fetch(), expected);
  else
    EXPECT_EQ(out.fetch(), expected);
  EXPECT_EQ(tooMany.row(), c.itemCount > first + width ? 0 : -1);
}

/// Their gradients, with what is added onto or without.
void expectScoreGradients(Catalogue &c, int64_t first, int64_t width, bool onto) {
  const int64_t queries = c.queryCount(), dim = c.dim, ld = width + 1;
  const int64_t count = std::clamp<int64_t>(c.itemCount - first, 0, width);
  const RankedItems ranked = c.onDevice(false);
  // Nothing lies past the last query, or NaN.
  const auto gradient = c.values(queries * ld);
  auto query = c.values((queries + 5) * dim), item = c.values(ranked.itemCapacity * dim);
  Copy<float> ontoQuery(query), ontoItem(item);
  for (size_t i = 0; i < query.size(); ++i)
    query[i] = onto && i < static_cast<size_t>(queries * dim) ? query[i] : 0;
  for (size_t i = 0; i < item.size(); ++i)
    item[i] = onto && i < static_cast<size_t>(c.itemCount * dim) ? item[i] : 0;
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t j = 0; j < count; ++j)
      for (int64_t e = 0; e < dim; ++e) {
        auto at = [](const std::vector<float> &x, int64_t i) { return x[static_cast<size_t>(i)]; };
        const float g = at(gradient, q * ld + j);
        query[static_cast<size_t>(q * dim + e)] += g * at(c.item, (first + j) * c.ldItem + e);
        item[static_cast<size_t>((first + j) * dim + e)] += g * at(c.query, q * c.ldQuery + e);
      }
  Copy<float> gradientThere(Catalogue::withRoom(gradient, c.isKnown ? 5 * ld : 0)),
      dQuery(std::vector<float>(query.size(), 9)), dItem(std::vector<float>(item.size(), 9));
  const ScoreGradients gradients{gradientThere.data(),
                                 ld,
                                 onto ? ontoQuery.data() : nullptr,
                                 onto ? ontoItem.data() : nullptr,
                                 dQuery.data(),
                                 dItem.data()};
  Scratch scratch(scoreGradientsScratchBytes(ranked, {first, width}, gradients));
  scoreItemsGradient(ranked, {first, width}, gradients, scratch.data(), testStream());
  expectNear(dQuery.fetch(), query);
  expectNear(dItem.fetch(), item);
}

TEST(Rank, Scores) {
  Catalogue some(Lengths(9, 0), 71, 5), none({}, 20, 4), empty({0, 0}, 0, 4);
  for (auto [c, first, width] : {std::tuple(&some, 0, 4),
                                 {&some, 0, 71},
                                 {&some, 0, 150},
                                 {&some, 30, 20},
                                 {&some, 60, 200},
                                 {&some, 80, 5},
                                 {&none, 0, 30},
                                 {&none, 3, 5},
                                 {&empty, 0, 30}}) {
    expectScores(*c, first, width);
    expectScoreGradients(*c, first, width, false);
    expectScoreGradients(*c, first, width, true);
  }
  Catalogue deep(Lengths(3, 0), 5, 4100); // longer than what products are cut at
  expectScores(deep, 0, 5);
}

TEST(Rank, ScoresByTheLibrary) {
  Catalogue some(Lengths(9, 0), 71, 40, true), none({}, 40, 32, true);
  for (auto [c, first, width] : {std::tuple(&some, 0, 71),
                                 {&some, 0, 150},
                                 {&some, 30, 41},
                                 {&some, 20, 35},
                                 {&some, 60, 40}, // 11 items: tiles
                                 {&none, 0, 40}}) {
    expectScores(*c, first, width);
    expectScoreGradients(*c, first, width, false);
    expectScoreGradients(*c, first, width, true);
  }
}

/// Scores with equal ones, labels, some rows not valid; `bad` rows that cannot be ranked.
void expectRanksInLists(const Lengths &lengths, bool hasValid, const Ids &bad) {
  std::mt19937_64 random(9);
  auto users = makeRoot(static_cast<int64_t>(lengths.size()), random);
  auto rows = makeLists(*users, lengths, random);
  DeviceDomain usersThere(*users), rowsThere(*rows, &usersThere);
  const auto count = static_cast<size_t>(rows->view.count);
  std::vector<float> score(count), label(count);
  std::vector<uint8_t> valid(count);
  for (size_t i = 0; i < count; ++i) {
    score[i] = static_cast<float>(random() % 5) - 2;
    label[i] = random() % 3 == 0;
    valid[i] = random() % 4 != 0;
  }
  for (size_t i = 0; i < bad.size(); ++i) {
    const auto row = static_cast<size_t>(bad[i]);
    (i % 2 ? score[row] : label[row]) = i % 2 ? __builtin_nanf("") : 0.5f;
    valid[row] = 1;
  }
  Ids expected(count + 9), order(count + 1);
  int64_t expectedBad = 0;
  const auto found = kernels::rankScored(nullptr,
                                         {users->view.count, rows->view.offsets, score.data(),
                                          label.data(), hasValid ? valid.data() : nullptr},
                                         expected.data(), order.data(), &expectedBad);
  Copy<float> scoreThere(score), labelThere(label);
  Copy<uint8_t> validThere(valid);
  Copy<int64_t> ranks(Ids(expected.size(), 9));
  NoteCopy unranked;
  rankScoredLists(rowsThere.get(), static_cast<int64_t>(expected.size()), scoreThere.data(),
                  labelThere.data(), hasValid ? validThere.data() : nullptr, ranks.data(),
                  unranked.data(), testStream());
  EXPECT_EQ(found == kernels::UnrankedRow::none, bad.empty());
  if (bad.empty()) {
    EXPECT_EQ(ranks.fetch(), expected);
    EXPECT_EQ(unranked.row(), -1);
    return;
  }
  EXPECT_EQ(unranked.row(), expectedBad);
  EXPECT_EQ(unranked.root(), rows->view.parent[expectedBad]);
  EXPECT_EQ(unranked.reason(), found == kernels::UnrankedRow::label ? kNoLabel : kNaNScore);
}

TEST(Rank, InLists) {
  for (const Lengths &lengths : listShapes())
    if (lengths.size() < 1000)
      for (bool hasValid : {false, true})
        expectRanksInLists(lengths, hasValid, {});
  for (bool hasValid : {false, true}) {
    expectRanksInLists({3, 0, 9, 5}, hasValid, {14, 5});
    expectRanksInLists({3, 0, 9, 5}, hasValid, {16, 11, 4});
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
