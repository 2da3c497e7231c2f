//===- roofline_test.cpp - bounds that no measurement may beat ------------===//

#include "genrec_rt/roofline.h"

#include <gtest/gtest.h>

using namespace genrec::rt;

namespace {

// Two caches and memory, as they are measured: 256 KB, 4 MB, 16 MB.
const std::vector<Bandwidth> kRates = {{262144, 40e9}, {4194304, 20e9}, {16777216, 5e9}};

TEST(Roofline, BetweenTwoSizesTheRateIsThatOfTheSmaller) {
  // A second-level cache of 1 to 2 MB holds 1 MB, and one of 512 KB does not.
  EXPECT_EQ(Roofline::rateFor(kRates, 1e6), 40e9);
  EXPECT_EQ(Roofline::rateFor(kRates, 262144), 40e9);
  EXPECT_EQ(Roofline::rateFor(kRates, 10e6), 20e9);
  EXPECT_EQ(Roofline::rateFor(kRates, 1e9), 5e9);
  EXPECT_EQ(Roofline::rateFor({}, 1e6), 0);
}

TEST(Roofline, ALargerSetThatWasFasterRaisesTheRateOfSmallerOnes) {
  EXPECT_EQ(Roofline::rateFor({{100, 1e9}, {1000, 3e9}, {10000, 2e9}}, 50), 3e9);
}

TEST(Roofline, StreamsOfMemoryAndArithmeticMayOverlap) {
  Roofline machine{"test", 1, 1e9, 1e9, 1e-6, kRates, {{262144, 1e9}, {16777216, 1e8}}};
  Work work;
  work.bytes = 4e4;         // 1 us
  work.gatheredBytes = 2e6; // rows picked from 1 MB: 2 ms
  work.sourceBytes = 1e6;
  work.flops = 1e6; // 1 ms
  EXPECT_DOUBLE_EQ(machine.seconds(work), 1e-6 + 2e-3);
  work.flops = 3e6;
  EXPECT_DOUBLE_EQ(machine.seconds(work), 1e-6 + 3e-3);
  EXPECT_STREQ(machine.bound(work), "arithmetic");
}

TEST(Roofline, ProductsOfBf16HaveARateOfTheirOwn) {
  Roofline machine{"test", 0, 1e9, 2e9, 0, {{1e12, 1e12}}, {}};
  Work work;
  work.productFlops = 2e6; // 1 ms
  work.bf16Flops = 4e6;
  EXPECT_DOUBLE_EQ(machine.seconds(work), 3e-3);
  machine.bf16Flops = 8e9;
  EXPECT_DOUBLE_EQ(machine.seconds(work), 1.5e-3);
  EXPECT_STREQ(machine.bound(work), "arithmetic");
  Work twice = work;
  twice.add(work);
  EXPECT_DOUBLE_EQ(twice.allFlops(), 12e6);
}

TEST(Roofline, ADeviceHasAFileOfItsOwn) {
  ASSERT_EQ(unsetenv("GENREC_MACHINE"), 0);
  const char *before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(rooflinePath(false), "/cache/genrec/machine.json");
  EXPECT_EQ(rooflinePath(true), "/cache/genrec/device.json");
  setenv("GENREC_MACHINE", "given.json", 1);
  EXPECT_EQ(rooflinePath(true), "given.json");
  unsetenv("GENREC_MACHINE");
  before ? setenv("XDG_CACHE_HOME", kept.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
}

} // namespace
