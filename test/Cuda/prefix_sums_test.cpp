//===- prefix_sums_test.cpp - Prefix sums of an array, ranks of flags -----===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/prefix_sums.h"
#include "genrec_rt/kernels/cuda/ranks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Numbers = std::vector<uint32_t>;

// One tile, a few, and more than a warp looks back at. What a call leaves is what the next one
// begins with.
TEST(PrefixSums, OfEveryNumberOfTiles) {
  std::mt19937 draw(3);
  Copy<Word> states{std::vector<Word>(static_cast<size_t>(prefixSumWords(70 * 2048 + 17)))};
  for (int64_t count : {0, 1, 255, 2048, 2049, 70 * 2048 + 17, 5 * 2048 - 1}) {
    Numbers numbers(static_cast<size_t>(count)), expected(numbers.size());
    for (uint32_t &number : numbers)
      number = draw() % 1000;
    std::exclusive_scan(numbers.begin(), numbers.end(), expected.begin(), uint32_t(0));
    Copy<uint32_t> onDevice(numbers);
    addBefore(onDevice.data(), count, states.data(), testStream());
    EXPECT_EQ(onDevice.fetch(), expected) << count;
  }
}

// Below, at and above a round of a warp, a warp and a tile; growing, then less of what is there.
TEST(FlagRanks, OfEveryNumberOfTiles) {
  std::mt19937 draw(5);
  FlagRanks flagRanks("test");
  for (int64_t count : {0, 1, 31, 33, 511, 513, 4096, 4097, 70 * 4096 + 17, 3 * 4096 - 1, 0})
    for (uint32_t of : {1u, 3u, 1000u}) {
      std::vector<uint8_t> flags(static_cast<size_t>(count));
      Numbers expected;
      uint32_t set = 0;
      for (uint8_t &flag : flags) {
        flag = draw() % of == 0;
        expected.push_back(set);
        set += flag;
      }
      Copy<uint8_t> input(flags);
      Copy<uint32_t> ranks{Numbers(flags.size())}, total{Numbers{77}};
      flagRanks.run(input.data(), count, ranks.data(), total.data(), testStream());
      EXPECT_EQ(ranks.fetch(), expected) << count << ", one of " << of;
      EXPECT_EQ(total.fetch()[0], set) << count << ", one of " << of;
    }
}

} // namespace
} // namespace genrec::rt::cuda::test
