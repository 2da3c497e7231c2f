//===- calibrate_test.cpp - What a device reaches -------------------------===//

#include "device_copy.h"

#include "kernels/cuda/calibrate.h"

#include <gtest/gtest.h>

using namespace genrec::rt;
using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::test;

namespace {

void expectRates(const std::vector<Bandwidth> &rates) {
  double before = 0;
  for (const Bandwidth &rate : rates) {
    EXPECT_GT(rate.bytes, before);
    EXPECT_GT(rate.bytesPerSecond, 0);
    before = rate.bytes;
  }
}

TEST(Calibrate, EveryLimit) {
  const Roofline limits = calibrate("a device", testStream());
  EXPECT_EQ(limits.processor, "a device");
  EXPECT_EQ(limits.threads, 0);
  EXPECT_GT(limits.flops, 0);
  EXPECT_GT(limits.productFlops, 0);
  EXPECT_GT(limits.bf16Flops, 0);
  EXPECT_GT(limits.launchSeconds, 0);
  EXPECT_GE(limits.copies.size(), 2u);
  EXPECT_EQ(limits.gathers.size(), limits.copies.size());
  expectRates(limits.copies);
  expectRates(limits.gathers);
  EXPECT_TRUE(limits.isMeasured());
}

#if defined(GENREC_SIMT)
TEST(Calibrate, WorkingSetsThatHaveRoom) {
  calibrate("a device", testStream()); // memory that products keep
  simt::options().deviceBytes = simt::bytesInUse() + 4 * 131072 - 4;
  const Roofline limits = calibrate("a device", testStream());
  simt::options() = {};
  ASSERT_EQ(limits.copies.size(), 1u);
  EXPECT_EQ(limits.copies.front().bytes, 4096);
}
#endif

} // namespace
