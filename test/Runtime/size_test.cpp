//===- size_test.cpp - Sizes that do not wrap around ----------------------===//

#include "genrec_rt/size.h"

#include "../../runtime/session/arena.h"
#include "genrec_rt/buffer.h"
#include "genrec_rt/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>

namespace genrec::rt::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(SizeTest, WhatLeavesTheRangeStaysOut) {
  EXPECT_EQ((Size(3) * 4 + 5).saturated(), 17);
  EXPECT_EQ((Size(3) * 4u + size_t(5)).value("it"), 17);
  for (Size wrong : {Size(-1), Size(kMost), Size(~uint64_t(0)), Size(int64_t(1) << 40) * (1 << 20),
                     Size(int64_t(1) << 32) * (int64_t(1) << 32), Size(kLargestSize) + 1}) {
    EXPECT_FALSE(wrong.fits());
    for (Size later : {wrong + 0, wrong * 1, wrong * 0, Size(2) * wrong, Size(2) + wrong})
      EXPECT_FALSE(later.fits());
    EXPECT_EQ(wrong.saturated(), kLargestSize);
  }
  try {
    (void)Size(-1).value("the table");
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "the table would be larger than any machine can hold");
  }
}

TEST(SizeTest, MemoryOfSuchSizesIsRefused) {
  for (int64_t bytes : {int64_t(-1), std::numeric_limits<int64_t>::min(), kLargestSize + 1, kMost})
    EXPECT_THROW(allocateAligned(bytes), std::bad_alloc) << bytes;
  GrowBuffer<uint64_t> buffer;
  for (int64_t count : {kMost, kMost / 8, int64_t(1) << 61, kLargestSize})
    EXPECT_THROW(buffer.ensure(count), Error) << count;
  EXPECT_EQ(buffer.capacity(), 0);
  buffer.ensure(3)[2] = 1; // and can be used after that
  for (int64_t count : {kMost, kLargestSize + 1})
    EXPECT_GT(capacityBucket(count), kLargestSize);
}

TEST(SizeTest, BuffersOfABatchAreChecked) {
  genrec_buffer_desc buffer{0, int64_t(1) << 30, 0, 0, 1, "wide"};
  const int64_t capacities[] = {int64_t(1) << 35};
  try {
    layOut({&buffer, 1}, capacities);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("buffer 'wide' of a batch, 34359738368 rows of "
                                                 "1073741824 bytes, would be larger"));
  }
}

} // namespace
} // namespace genrec::rt::test
