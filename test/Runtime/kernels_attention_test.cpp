// Attention against the naive reference at the sizes of models and at edges;
// the reference's own gradients against central differences.

#include "kernels_attention_harness.h"

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::AttentionConfig;
using k::ScoreKind;

const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 0, 33, 47, 48, 49, 97, 200, 3, 0};

//                                heads qk  v   score              causal window pos    time   drop
using Hstu = AttentionConfig<1, 50, 50, ScoreKind::silu, true, false, true, false, false>;
using HstuTime = AttentionConfig<1, 50, 50, ScoreKind::silu, true, false, true, true, false>;
using Sasrec = AttentionConfig<1, 50, 50, ScoreKind::softmax, true, false, false, false, true>;
using Many = AttentionConfig<4, 8, 16, ScoreKind::softmax, true, true, true, false, true>;
using Odd = AttentionConfig<3, 20, 7, ScoreKind::softmax, false, false, true, true, false>;
using Wide = AttentionConfig<1, 128, 128, ScoreKind::silu, true, false, false, false, false>;
using Mixed = AttentionConfig<2, 33, 64, ScoreKind::silu, false, true, false, true, true>;
using MixedBack = AttentionConfig<2, 64, 33, ScoreKind::softmax, false, true, false, false, false>;
using One = AttentionConfig<1, 1, 1, ScoreKind::silu, true, false, false, false, false>;
using Tail = AttentionConfig<1, 36, 52, ScoreKind::softmax, true, true, true, true, true>;

KERNEL_TEST(KernelsAttention, SizesOfModels) {
  checkAttention<Hstu>(kLengths, 1);
  checkAttention<HstuTime>(kLengths, 2);
  checkAttention<Sasrec>(kLengths, 3);
}
KERNEL_TEST(KernelsAttention, HeadsAndUnequalSizes) {
  for (uint64_t seed : {4, 5}) {
    checkAttention<Many>(kLengths, seed);
    checkAttention<Odd>(kLengths, seed);
    checkAttention<Mixed>(kLengths, seed);
    checkAttention<MixedBack>(kLengths, seed);
    checkAttention<Tail>(kLengths, seed);
  }
  checkAttention<Wide>(kLengths, 6);
  checkAttention<One>(kLengths, 7);
}
KERNEL_TEST(KernelsAttention, NoListsAndOnlyEmptyLists) {
  checkAttention<Hstu>({0}, 8);
  checkAttention<Hstu>({0, 0, 0}, 9);
  checkAttention<Odd>({0, 0, 0}, 10);
}
KERNEL_TEST(KernelsAttention, ManyLists) {
  // More lists and heads than chunks, so that chunks hold several.
  Random random(11);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 150; ++i)
    lengths.push_back(random.below(40));
  checkAttention<Many>(lengths, 12, 3);
  checkAttention<HstuTime>(lengths, 13, 3);
}

KERNEL_TEST(KernelsAttention, SameBitsAtAnyNumberOfThreads) {
  Random random(14);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 90; ++i)
    lengths.push_back(random.below(60));
  ReferenceInputs in = randomInputs(referenceConfig<HstuTime>(), lengths, random);
  Pool one(1), four(4);
  KernelRun<HstuTime> a(one, in, 0, 60), b(four, in, 0, 60);
  EXPECT_EQ(a.out.values, b.out.values);
  EXPECT_EQ(a.dQ.values, b.dQ.values);
  EXPECT_EQ(a.dK.values, b.dK.values);
  EXPECT_EQ(a.dV.values, b.dV.values);
  EXPECT_EQ(a.dPositionBias.values, b.dPositionBias.values);
  EXPECT_EQ(a.dTimeBias.values, b.dTimeBias.values);
}

//                                 heads qk  v  score              causal window pos    time   drop
using GiantSilu = AttentionConfig<2, 18, 12, ScoreKind::silu, true, false, true, true, true>;
using GiantSoftmax = AttentionConfig<1, 18, 12, ScoreKind::softmax, false, false, true, false, false>;
using GiantWindow = AttentionConfig<1, 8, 17, ScoreKind::softmax, true, true, true, true, false>;
using GiantBothWays = AttentionConfig<1, 17, 8, ScoreKind::silu, false, true, false, false, true>;

/// Two lists that are cut into pieces, one of them just so, among others that are not.
const std::vector<int64_t> kGiantLengths = {3, 1447, 0, 17, 961, 960};

KERNEL_TEST(KernelsAttention, GiantsAreTheLongestLists) {
  auto piecesOf = [](const std::vector<int64_t> &lengths) {
    std::vector<int64_t> offsets = {0};
    for (int64_t length : lengths)
      offsets.push_back(offsets.back() + length);
    k::AttentionArgs args;
    args.parents = static_cast<int64_t>(lengths.size());
    args.offsets = offsets.data();
    std::vector<std::pair<int64_t, int64_t>> found;
    k::detail::GiantLists(args).forEach(
        [&](int64_t list, int64_t pieces) { found.emplace_back(list, pieces); });
    return found;
  };
  using Found = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(piecesOf(kGiantLengths), (Found{{1, 4}, {4, 3}}));
  EXPECT_EQ(piecesOf(std::vector<int64_t>(33, 2000)), Found());
  EXPECT_EQ(piecesOf({}), Found());
}

KERNEL_TEST(KernelsAttention, Giants) {
  checkAttention<GiantSilu>(kGiantLengths, 17, 3);
  checkAttention<GiantSoftmax>(kGiantLengths, 18, 3);
  checkAttention<GiantWindow>(kGiantLengths, 19, 3);
  checkAttention<GiantBothWays>(kGiantLengths, 20, 3);
}

KERNEL_TEST(KernelsAttention, GiantsHaveTheSameBitsAtAnyNumberOfThreads) {
  Random random(23);
  ReferenceInputs in = randomInputs(referenceConfig<GiantSilu>(), kGiantLengths, random);
  Pool one(1), five(5);
  KernelRun<GiantSilu> a(one, in, 0, 1447), b(five, in, 0, 1447);
  EXPECT_EQ(a.out.values, b.out.values);
  EXPECT_EQ(a.dQ.values, b.dQ.values);
  EXPECT_EQ(a.dK.values, b.dK.values);
  EXPECT_EQ(a.dV.values, b.dV.values);
  EXPECT_EQ(a.dPositionBias.values, b.dPositionBias.values);
  EXPECT_EQ(a.dTimeBias.values, b.dTimeBias.values);
}

KERNEL_TEST(KernelsAttention, DropoutOfEverythingYieldsZeros) {
  Random random(15);
  ReferenceInputs in = randomInputs(referenceConfig<Sasrec>(), {5, 20}, random);
  in.dropProbability = 1;
  KernelRun<Sasrec> run(nullptr, in, 0, 20);
  for (int64_t i = 0; i < 25 * 50; ++i) {
    EXPECT_EQ(run.out.values[static_cast<size_t>(i)], 0);
    EXPECT_EQ(run.dV.values[static_cast<size_t>(i)], 0);
  }
}

KERNEL_TEST(KernelsAttention, LargeScoresStayFinite) {
  Random random(16);
  ReferenceInputs in = randomInputs(referenceConfig<Sasrec>(), {40}, random);
  for (double &x : in.q)
    x *= 1000;
  ReferenceResults expected = Reference(referenceConfig<Sasrec>(), in).run(true);
  KernelRun<Sasrec> run(nullptr, in, 0, 40);
  run.out.expectNear(expected.out, 1e-3, "out");
  for (float x : run.dK.values)
    EXPECT_TRUE(std::isfinite(x));
}

/// The sum of dOut * out: what the gradients are of.
double objective(const ReferenceConfig &config, const ReferenceInputs &in) {
  ReferenceResults r = Reference(config, in).run(false);
  double total = 0;
  for (size_t i = 0; i < r.out.size(); ++i)
    total += r.out[i] * in.dOut[i];
  return total;
}

void checkDifferences(const ReferenceConfig &config, ReferenceInputs &in,
                      std::vector<double> &x, const std::vector<double> &gradient,
                      Random &random) {
  ASSERT_EQ(x.size(), gradient.size());
  for (int round = 0; round < 12; ++round) {
    size_t i = static_cast<size_t>(random.below(static_cast<int64_t>(x.size())));
    const double kStep = 1e-5, before = x[i];
    x[i] = before + kStep;
    double above = objective(config, in);
    x[i] = before - kStep;
    double below = objective(config, in);
    x[i] = before;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << i;
  }
}

KERNEL_TEST(KernelsAttention, ReferenceGradientsAreDerivatives) {
  for (int mask = 0; mask < 128; ++mask) {
    ReferenceConfig config{2,
                           3,
                           4,
                           (mask & 1) != 0,
                           (mask & 2) != 0,
                           (mask & 4) != 0,
                           (mask & 8) != 0,
                           (mask & 16) != 0,
                           (mask & 32) != 0,
                           (mask & 64) != 0};
    Random random(100 + static_cast<uint64_t>(mask));
    ReferenceInputs in = randomInputs(config, {4, 0, 7}, random);
    ReferenceResults r = Reference(config, in).run(true);
    SCOPED_TRACE(::testing::Message() << "options " << mask);
    checkDifferences(config, in, in.q, r.dQ, random);
    checkDifferences(config, in, in.k, r.dK, random);
    checkDifferences(config, in, in.v, r.dV, random);
    if (config.positionBias)
      checkDifferences(config, in, in.positionBias, r.dPositionBias, random);
    if (config.timeBias)
      checkDifferences(config, in, in.timeBias, r.dTimeBias, random);
  }
}

KERNEL_TEST(KernelsAttention, TimeBucketsAreTheFormula) {
  for (int64_t ticks : {1, 7, 1000, 1000000}) {
    for (int64_t buckets : {1, 2, 30, 128, 200}) {
      k::TimeBucketTable table;
      k::fillTimeBuckets(buckets, ticks, &table);
      auto check = [&](int64_t delta) {
        int64_t now = 1000, then = now - delta;
        int32_t got;
        k::timeBucketsOf(table, now, &then, 1, &got);
        int64_t seconds = std::max<int64_t>(1, delta / ticks);
        double bucket = std::floor(std::log(static_cast<double>(seconds)) / 0.301);
        ASSERT_EQ(got, std::min<int64_t>(static_cast<int64_t>(bucket), buckets - 1))
            << delta << " ticks, " << ticks << " a second";
      };
      for (int64_t delta = -5; delta < 20000; ++delta)
        check(delta);
      for (int64_t delta = 20000; delta < (int64_t(1) << 52); delta += delta / 1000)
        for (int64_t near : {-1, 0, 1})
          check(delta + near);
      check(int64_t(1) << 60);
    }
  }
  k::TimeBucketTable table;
  k::fillTimeBuckets(128, 1, &table);
  // A difference beyond 64 bits is the longest one.
  int64_t then = INT64_MIN;
  int32_t got;
  k::timeBucketsOf(table, INT64_MAX, &then, 1, &got);
  EXPECT_EQ(got, 127);
}

} // namespace
