// The Hopper attention kernels against the reference; on the host the same producer and consumers
// run with TMA, mbarriers and wgmma emulated from the PTX ISA (Simt/include/simt_bulk.h,
// simt_wgmma.h).

#include "attention_testing.h"

#include <bit>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace of_hopper {
namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr AttentionLevel kHopper = AttentionLevel::hopper;
constexpr unsigned kBiases = kPositionBias + kTimeBias;

template <unsigned Features, ScoreKind Score, int Qk = 64, int V = 64>
using Config = AttentionConfig<Bf16, Qk, V, Score, Features>;
using Wide = Config<kCausal + kBiases, ScoreKind::silu, 256, 256>; // backward in two launches

TEST(AttentionHopper, TilesAndMasks) {
  // One below, at and above a warpgroup's rows, a block's, two blocks'.
  checkAttention<Config<kCausal, ScoreKind::silu>, kHopper>(1, {0, 1, 63, 64, 65, 0, 127, 128, 257},
                                                            1);
  checkAttention<Config<kWindow, ScoreKind::softmax>, kHopper>(1, {65, 129}, 2);
}

TEST(AttentionHopper, BiasesAndDropout) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu, 128, 128>, kHopper>(
      2, {0, 1, 17, 0, 150}, 3);
  checkAttention<
      Config<kCausal + kMasked + kWindow + kBiases + kDropout, ScoreKind::softmax, 32, 40>,
      kHopper>(2, {0, 1, 2, 33, 150, 0}, 4);
}

TEST(AttentionHopper, WideHeadsTakeTwoLaunches) {
  checkAttention<Wide, kHopper>(1, {90}, 5);
  checkAttention<Config<kCausal, ScoreKind::softmax, 72, 192>, kHopper>(1, {70}, 6);
}

/// More tiles than stages, so that a stage is filled again.
TEST(AttentionHopper, StagesAreUsedAgain) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu>, kHopper>(1, {420}, 9);
}
/// Scores of the next tile are started behind a tile's products: heads of 65 to 128 columns without
/// time bias. Blocks take several tiles of keys, of one tile of queries or of many.
TEST(AttentionHopper, ScoresAreStartedEarly) {
  checkAttention<Config<kCausal, ScoreKind::silu, 128, 128>, kHopper>(2, {1, 0, 64, 65, 200}, 13);
}
TEST(AttentionHopper, PositionSumsAreAddedLate) {
  checkAttention<Config<kCausal + kPositionBias, ScoreKind::silu, 128, 128>, kHopper>(
      1, {1, 330, 90}, 14);
  checkAttention<
      Config<kCausal + kMasked + kWindow + kPositionBias + kDropout, ScoreKind::softmax, 72, 128>,
      kHopper>(2, {150, 0, 40}, 15);
}
/// Rows of the context see keys that nobody else sees: tiles are left out behind theirs, by more
/// diagonals than slots; and where there are few buckets, tiles at both ends have one.
TEST(AttentionHopper, PositionSumsInContext) {
  const auto inContext = [](size_t buckets, int64_t window) {
    return [=](ReferenceInputs &in) {
      in.contextual = 10;
      in.window = window;
      in.targets = {0};
      in.positionBias.resize(buckets, 0.25);
    };
  };
  checkAttention<Config<kCausal + kMasked + kWindow + kPositionBias, ScoreKind::silu, 128, 128>,
                 kHopper>(1, {400}, 16, inContext(1025, 60));
  checkAttention<Config<kCausal + kMasked + kPositionBias, ScoreKind::silu, 128, 128>, kHopper>(
      1, {330}, 17, inContext(65, 0));
}
/// Sums are rescaled where a later tile has a greater score: from the third on, while the product
/// of the weights before may run. The window is wider than a tile.
TEST(AttentionHopper, SoftmaxOverManyTiles) {
  checkAttention<Config<kWindow, ScoreKind::softmax>, kHopper>(
      1, {420}, 12, [](ReferenceInputs &in) { in.window = 300; });
}
/// A warp's last row alone does not see a tile's first column.
TEST(AttentionHopper, WindowsThatEndWithAWarp) {
  checkAttention<Config<kWindow, ScoreKind::softmax>, kHopper>(
      1, {140}, 13, [](ReferenceInputs &in) { in.window = 79; });
}
TEST(AttentionHopper, StagesAreUsedAgainByWideHeads) {
  checkAttention<Wide, kHopper>(1, {200}, 10);
}

/// More tiles of queries than blocks.
TEST(AttentionHopper, BlocksTakeSeveralTilesOfWideHeads) {
  checkAttention<Wide, kHopper>(6, {66}, 11);
}

/// All that a run writes, as bits: what a configuration has no gradient of keeps the NaN that it
/// was filled with.
std::vector<std::vector<uint32_t>> resultsOf(DeviceRun<Bf16> &run) {
  std::vector<std::vector<uint32_t>> results;
  auto add = [&](auto &matrix) {
    results.emplace_back();
    for (auto x : matrix.memory.read())
      results.back().push_back(std::bit_cast<uint32_t>(toFloat(x)));
  };
  add(run.out), add(run.dQ), add(run.dK), add(run.dV);
  add(run.dPositionBias), add(run.dTimeBias);
  return results;
}

/// `inputs` random inputs, each computed `runs` times. Sums are in fixed point or in one order, so
/// a bit that changes is a race.
void expectSameBits(const AttentionCalls<Bf16> &calls, int64_t heads, int inputs, int runs) {
  for (int input = 0; input < inputs; ++input) {
    Random random(7 + static_cast<uint64_t>(input));
    std::vector<int64_t> lengths = {200, 140};
    for (int list = 0; inputs > 1 && list < 16; ++list)
      lengths.push_back(static_cast<int64_t>(random.below(200)));
    const ReferenceInputs in = inputsOf(calls, heads, lengths, random);
    std::vector<std::vector<uint32_t>> first;
    for (int run = 0; run < runs; ++run) {
#if defined(GENREC_SIMT)
      simt::options().seed = run ? 99 : 1;
#endif
      DeviceRun<Bf16> got(calls, heads, in, 0, 200);
      if (run == 0)
        first = resultsOf(got);
      else
        ASSERT_TRUE(resultsOf(got) == first) << "input " << input << ", run " << run;
    }
  }
}

/// On the host blocks run in another order, on a device they do from run to run: GENREC_RUNS says
/// how many runs there are in all. Without it there are two of each, of one input.
TEST(AttentionHopper, SameBitsInAnyOrderOfBlocks) {
  constexpr unsigned kAll = kCausal + kMasked + kWindow + kBiases + kDropout;
  const std::pair<AttentionCalls<Bf16>, int64_t> configs[] = {
      {kCallsOf<Config<kCausal + kBiases, ScoreKind::silu>, kHopper>, 4},
      {kCallsOf<Config<kCausal + kBiases, ScoreKind::silu, 128, 128>, kHopper>, 2},
      {kCallsOf<Config<kCausal + kPositionBias, ScoreKind::silu, 128, 128>, kHopper>, 2},
      {kCallsOf<Wide, kHopper>, 2},
      {kCallsOf<Config<kAll, ScoreKind::softmax, 32, 40>, kHopper>, 4},
  };
  constexpr int kInputs = 10, kResults = kInputs * static_cast<int>(std::size(configs));
  const char *asked = std::getenv("GENREC_RUNS");
  const int runs = asked ? std::atoi(asked) / kResults : 0;
  for (const auto &[calls, heads] : configs)
    if (runs < 2)
      expectSameBits(calls, heads / 2, 1, 2);
    else
      expectSameBits(calls, heads, kInputs, runs);
}

TEST(AttentionHopper, WhatIsNotFiniteIsSeenInEveryGradient) {
  checkNotFinite<Config<kCausal + kBiases, ScoreKind::silu>, kHopper>();
}

TEST(AttentionHopper, NoRows) {
  checkNoRows<Config<kCausal + kBiases, ScoreKind::silu>, kHopper>();
}

} // namespace
} // namespace of_hopper
