// The Hopper attention kernels against the reference; on the host the same producer and consumers
// run with TMA, mbarriers and wgmma emulated from the PTX ISA (Simt/include/simt_bulk.h,
// simt_wgmma.h).

#include "attention_testing.h"

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr AttentionLevel kHopper = AttentionLevel::hopper;
constexpr unsigned kBiases = kPositionBias + kTimeBias;

template <unsigned Features, ScoreKind Score, int Qk = 64, int V = 64>
using Config = AttentionConfig<Bf16, Qk, V, Score, Features>;

TEST(AttentionHopper, TilesAndMasks) {
  // One below, at and above a warpgroup's rows, a block's, two blocks'.
  checkAttention<Config<kCausal, ScoreKind::silu>, kHopper>(1, {0, 1, 63, 64, 65, 0, 127, 128, 257},
                                                            1);
  checkAttention<Config<0, ScoreKind::softmax>, kHopper>(1, {65, 129}, 2);
}

TEST(AttentionHopper, BiasesAndDropout) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu, 128, 128>, kHopper>(
      2, {0, 1, 17, 0, 150}, 3);
  checkAttention<
      Config<kCausal + kMasked + kWindow + kBiases + kDropout, ScoreKind::softmax, 32, 40>,
      kHopper>(2, {0, 1, 2, 33, 150, 0}, 4);
}

TEST(AttentionHopper, WideHeadsTakeTwoLaunches) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu, 256, 256>, kHopper>(1, {90}, 5);
  checkAttention<Config<kCausal, ScoreKind::softmax, 72, 192>, kHopper>(1, {70}, 6);
}

/// More tiles than stages, so that a stage is filled again.
TEST(AttentionHopper, StagesAreUsedAgain) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu>, kHopper>(1, {420}, 9);
}
TEST(AttentionHopper, StagesAreUsedAgainByWideHeads) {
  checkAttention<Config<kCausal + kPositionBias, ScoreKind::silu, 256, 256>, kHopper>(1, {200}, 10);
}

/// On the host blocks run in another order, on a device they do from run to run.
TEST(AttentionHopper, SameBitsInAnyOrderOfBlocks) {
  using C = Config<kCausal + kBiases, ScoreKind::silu>;
  Random random(7);
  const ReferenceInputs in = inputsOf<C>(2, {200, 140}, random);
  auto run = [&](uint64_t seed) {
#if defined(GENREC_SIMT)
    simt::options().seed = seed;
#endif
    return std::make_unique<DeviceRun<C, kHopper>>(2, in, 0, 200);
  };
  auto a = run(1), b = run(99);
  auto bits = [](auto &matrix) {
    std::vector<float> values;
    for (auto x : matrix.memory.read())
      values.push_back(toFloat(x));
    return values;
  };
  EXPECT_EQ(bits(a->dQ), bits(b->dQ));
  EXPECT_EQ(bits(a->dK), bits(b->dK));
  EXPECT_EQ(bits(a->dPositionBias), bits(b->dPositionBias));
  EXPECT_EQ(bits(a->dTimeBias), bits(b->dTimeBias));
}

TEST(AttentionHopper, WhatIsNotFiniteIsSeenInEveryGradient) {
  using C = Config<kCausal + kBiases, ScoreKind::silu>;
  for (bool inQuery : {true, false}) {
    Random random(8);
    ReferenceInputs in = inputsOf<C>(1, {40}, random);
    (inQuery ? in.q : in.dOut)[static_cast<size_t>(64 * 39)] = NAN; // of the last query
    DeviceRun<C, kHopper> got(1, in, 0, 40);
    EXPECT_TRUE(std::isnan(toFloat(got.dQ.memory.read()[64 * 39])));
    EXPECT_FALSE(std::isnan(toFloat(got.dQ.memory.read()[64 * 3])));
    EXPECT_TRUE(std::isnan(got.dPositionBias.memory.read()[0]));
    EXPECT_TRUE(std::isnan(got.dTimeBias.memory.read()[0]));
  }
}

} // namespace
