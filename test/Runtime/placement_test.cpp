//===- placement_test.cpp - where ranks keep rows -------------------------===//

#include "genrec_rt/placement.h"

#include <gtest/gtest.h>

using namespace genrec::rt;

namespace {

/// A table of `rows` rows that learn, of dimension 16, on four ranks that look up 100 ids each.
PlacedTable learning(double rows) {
  constexpr double kAsked = 100, kDim = 16, kRanks = 4;
  return {.dim = 16,
          .asked = kAsked,
          .shardedBytes = kAsked * (kRanks - 1) / kRanks * (12 + 8 * kDim),
          .replicatedBytes = kAsked * (kRanks - 1) * (12 + 4 * kDim),
          .residentBytes = rows * 200};
}

PlacedTable frozen(double rows) {
  PlacedTable table = learning(rows);
  table.learns = false;
  table.replicatedBytes = 0;
  return table;
}

/// 10 Gbit/s; replicas may take 1 MB.
Placement choose(std::vector<PlacedTable> tables, double roundMicroseconds) {
  return choosePlacement(tables, {.sharded = 2, .replicated = 0},
                         {.ranks = 4,
                          .bytesPerSecond = 1.25e9,
                          .roundSeconds = roundMicroseconds * 1e-6,
                          .replicaBytes = 1e6});
}

std::string describe(const Placement &placement) {
  std::string text;
  for (const PlacementChoice &choice : placement.tables)
    text += choice.isReplicated ? 'r' : 's';
  return text;
}

} // namespace

TEST(Placement, RowsThatLearnAreReplicatedWhereThatSavesDearRounds) {
  Placement cheap = choose({learning(1000), learning(1000)}, 2);
  EXPECT_EQ(describe(cheap), "ss");
  EXPECT_EQ(cheap.seconds, cheap.shardedSeconds);
  ASSERT_TRUE(cheap.replicatedSeconds);
  EXPECT_GT(*cheap.replicatedSeconds, cheap.seconds);
  EXPECT_NE(cheap.tables[0].why.find("would move more bytes; with replicas of all tables"),
            std::string::npos)
      << cheap.tables[0].why;
  Placement dear = choose({learning(1000), learning(1000)}, 100);
  EXPECT_EQ(describe(dear), "rr");
  EXPECT_EQ(dear.seconds, *dear.replicatedSeconds);
  EXPECT_NE(dear.tables[0].why.find("0 rounds of keys and values instead of 2"), std::string::npos);
}

TEST(Placement, ASmallGainMovesNoRows) {
  // Two rounds of so long take as much as replicas cost more, and a little.
  Placement none = choose({learning(1000)}, 0);
  double more = *none.replicatedSeconds - none.shardedSeconds;
  EXPECT_EQ(describe(choose({learning(1000)}, more / 2 * 1e6 * 1.01)), "s");
  EXPECT_EQ(describe(choose({learning(1000)}, more / 2 * 1e6 * 2)), "r");
  PlacedTable moved = learning(1000); // back, only for a gain as large
  moved.isReplicated = true;
  EXPECT_EQ(describe(choose({moved}, more / 2 * 1e6 * 0.99)), "r");
  EXPECT_EQ(describe(choose({moved}, 0)), "s");
}

TEST(Placement, RowsThatDoNotLearnAreReplicatedWhileThereIsMemory) {
  EXPECT_EQ(describe(choose({frozen(1000), learning(1000)}, 0)), "rs");
  Placement large = choose({frozen(4000), frozen(3000), frozen(1500)}, 0);
  EXPECT_EQ(describe(large), "srr"); // the smallest first
  EXPECT_EQ(large.tables[0].why,
            "a replica takes 0.8 MB, of 1.0 MB that replicas may take; replicas of all tables take "
            "1.7 MB, of 1.0 MB that replicas may take");
}

TEST(Placement, OneTableThatMustBeShardedKeepsTheRounds) {
  PlacedTable ruled = learning(10);
  ruled.refusal = "has rules";
  Placement placement = choose({learning(10), ruled, frozen(10)}, 10000);
  EXPECT_EQ(describe(placement), "ssr");
  EXPECT_FALSE(placement.replicatedSeconds);
  EXPECT_EQ(placement.tables[0].why,
            "would move more bytes; as a table must be sharded, it would save no round");
  EXPECT_EQ(placement.tables[1].why, "has rules");
}

TEST(Placement, TablesThatNobodyLooksUpAreReplicatedWithTheOthersOnly) {
  PlacedTable unused{.dim = 4};
  EXPECT_EQ(choose({unused, learning(10)}, 0).tables[0].why.substr(0, 19), "nothing looks it up");
  EXPECT_EQ(describe(choose({unused, learning(10)}, 10000)), "rr");
}

TEST(Placement, AllTablesTooLargeTogetherStaySharded) {
  Placement placement = choose({learning(4000), learning(4000)}, 10000);
  EXPECT_EQ(describe(placement), "ss");
  EXPECT_NE(placement.tables[0].why.find("replicas of all tables take 1.6 MB, of 1.0 MB"),
            std::string::npos)
      << placement.tables[0].why;
}
