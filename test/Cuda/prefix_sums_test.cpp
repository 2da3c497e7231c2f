//===- prefix_sums_test.cpp - Prefix sums of an array ---------------------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/prefix_sums.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Numbers = std::vector<uint32_t>;

// One tile, a few, and more than a warp looks back at.
TEST(PrefixSums, OfEveryNumberOfTiles) {
  std::mt19937 draw(3);
  for (int64_t count : {0, 1, 255, 2048, 2049, 5 * 2048 - 1, 70 * 2048 + 17}) {
    Numbers numbers(static_cast<size_t>(count)), expected(numbers.size());
    for (uint32_t &number : numbers)
      number = draw() % 1000;
    std::exclusive_scan(numbers.begin(), numbers.end(), expected.begin(), uint32_t(0));
    Copy<uint32_t> onDevice(numbers);
    Copy<Word> states{std::vector<Word>(static_cast<size_t>(prefixSumWords(count)))};
    addBefore(onDevice.data(), count, states.data(), nullptr);
    EXPECT_EQ(onDevice.fetch(), expected) << count;
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
