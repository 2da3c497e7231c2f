//===- prefix_sums_test.cpp - Prefix sums of an array, ranks of flags -----===//

#include "device_copy.h"
#include "scratch.h"

#include "kernels/cuda/length_scan.h"
#include "kernels/cuda/look_back.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/prefix_sums.h"
#include "genrec_rt/kernels/cuda/ranks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Numbers = std::vector<uint32_t>;

// One tile, a few, and more than a warp looks back at. What a call leaves is what the next one
// begins with: a call that begins with other states may wait for ever, so the first wrong one ends
// the test.
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
    ASSERT_EQ(onDevice.fetch(), expected) << count;
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
      ASSERT_EQ(ranks.fetch(), expected) << count << ", one of " << of;
      ASSERT_EQ(total.fetch()[0], set) << count << ", one of " << of;
    }
}

__global__ void lookBackOnce(LookBackTiles tiles, int64_t tile, uint32_t own, int64_t sum,
                             uint32_t *before) {
  const uint32_t found = tiles.lookBack(tile, own, sum);
  if (threadIdx.x == 0)
    *before = found;
}

// Of many tiles that have all shown their own sums, and few those of all up to them: a warp looks
// back over several rounds, and adds nothing from before the first whole one it comes to. A block
// of the emulator is seldom far ahead of others, so other tests go back one round.
TEST(LookBack, OverManyTiles) {
  constexpr int64_t kTiles = 900, kSums = 3;
  for (int64_t whole : {0, 5, 500, 899})
    for (int64_t tile : {1, 31, 33, 193, 577, 899}) {
      std::vector<Word> states(static_cast<size_t>(LookBackTiles::words(kTiles, kSums)));
      Copy<uint32_t> before{Numbers{77}};
      uint32_t expected = 0;
      for (int64_t sum = 0; sum < kSums; ++sum) {
        uint32_t upTo = 0;
        for (int64_t at = 0; at < kTiles; ++at) {
          const auto own = static_cast<uint32_t>(at * at % 1000 + sum);
          if (at == tile && sum == 1)
            expected = upTo;
          upTo += own;
          const bool isWhole = at == 0 || at == whole;
          // What its tile shows: look_back.h.
          states[static_cast<size_t>(1 + sum * kTiles + at)] =
              isWhole ? Word(2) << 32 | upTo : Word(1) << 32 | own;
        }
      }
      Copy<Word> onDevice(states);
      GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{1, 32}), lookBackOnce,
                         LookBackTiles{onDevice.data(), kTiles, kSums}, tile, 4u, int64_t(1),
                         before.data());
      EXPECT_EQ(before.fetch()[0], expected) << tile << " of " << whole;
      EXPECT_EQ(onDevice.fetch()[static_cast<size_t>(1 + kTiles + tile)],
                Word(2) << 32 | (expected + 4));
    }
}

/// Lists by themselves: of 0 to 2 rows but one.
struct Given {
  int64_t count, longest; ///< of lists; the number of the longest one

  __host__ __device__ int64_t lists() const { return count; }
  __host__ __device__ int64_t length(int64_t list) const { return list == longest ? 9 : list % 3; }
};

/// The number of lists, of their rows, and the longest.
struct Note {
  int64_t *to;

  __device__ void operator()(int64_t lists, int64_t total, int64_t longest) const {
    to[0] = lists, to[1] = total, to[2] = longest;
  }
};

void expectScan(const Given &lists) {
  Copy<int64_t> begins(std::vector<int64_t>(static_cast<size_t>(lists.count), -1)),
      found(std::vector<int64_t>(3, -1));
  Scratch scratch(kListScratchBytes);
  scan::run(lists, lists.count + 7, begins.data(), Note{found.data()}, scratch.data(),
            testStream());
  int64_t total = 0;
  const std::vector<int64_t> got = begins.fetch();
  for (int64_t list = 0; list < lists.count; total += lists.length(list), ++list)
    ASSERT_EQ(got[static_cast<size_t>(list)], total) << list << " of " << lists.count;
  EXPECT_EQ(found.fetch(), (std::vector<int64_t>{lists.count, total, 9}));
}

// By one block and by several, the longest list in the first and in the last round of a block.
TEST(LengthScan, BeginsAndTheLongest) {
  for (const Given &lists : {Given{600, 3}, {600, 599}, {5000, 2}, {5000, 4999}})
    expectScan(lists);
}

// Of as many blocks as there may be, more than a block has threads, each with more than 1,024.
TEST(LengthScan, OfMoreBlocksThanABlockHasThreads) { expectScan({525500, 1500}); }

} // namespace
} // namespace genrec::rt::cuda::test
