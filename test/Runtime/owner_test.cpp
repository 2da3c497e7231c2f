//===- owner_test.cpp - which rank owns a row -----------------------------===//

#include "genrec_rt/owner.h"

#include <gtest/gtest.h>
#include <vector>

using namespace genrec::rt;

namespace {

TEST(Owner, RanksOwnRunsOfSlices) {
  for (int32_t ranks : {1, 2, 3, 5, 64, 4096}) {
    std::vector<int32_t> owned(ranks);
    int32_t last = 0;
    for (int32_t slice = 0; slice < kSlices; ++slice) {
      int32_t owner = getOwner(slice, ranks);
      ASSERT_TRUE(owner == last || owner == last + 1) << slice;
      last = owner;
      ++owned[owner];
    }
    auto [least, most] = std::minmax_element(owned.begin(), owned.end());
    EXPECT_GE(*least, 1);
    EXPECT_LE(*most - *least, 1) << ranks << " ranks";
  }
}

TEST(Owner, RowsSpreadEvenly) {
  // Ids as they come: small ones in a row, and multiples of a power of two.
  for (int64_t stride : {int64_t(1), int64_t(1) << 32}) {
    std::vector<int64_t> rows(8);
    uint64_t table = hashTableName("item");
    for (int64_t i = 0; i < 80000; ++i)
      ++rows[getOwner(getSlice(table, i * stride), 8)];
    for (int64_t count : rows)
      EXPECT_NEAR(count, 10000, 500);
  }
}

TEST(Owner, TablesAreIndependent) {
  int64_t same = 0;
  for (int64_t id = 0; id < 40960; ++id)
    same += getSlice(hashTableName("item"), id) == getSlice(hashTableName("user"), id);
  EXPECT_LT(same, 40);
}

TEST(Owner, SlicesAreWrittenToFiles) {
  // What a checkpoint is sorted by never changes.
  EXPECT_EQ(hashTableName("item"), XXH3_64bits("item", 4));
  EXPECT_EQ(getSlice(hashTableName("item"), 0), 2811);
  EXPECT_EQ(getSlice(hashTableName("item"), 1), 675);
  EXPECT_EQ(getSlice(hashTableName(""), -1), 879);
}

} // namespace
