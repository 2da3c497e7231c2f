// The mma.sync attention kernels against the reference, run on the host with emulated instructions
// (Simt/include/simt_tensor.h).

#include "attention_testing.h"

namespace of_mma {
namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr AttentionLevel kMma = AttentionLevel::mma;
constexpr unsigned kBiases = kPositionBias + kTimeBias;

template <unsigned Features, ScoreKind Score, int Qk = 32, int V = 32>
using Config = AttentionConfig<Bf16, Qk, V, Score, Features>;

/// One below, at and above a warp's rows, a tile, two tiles.
const std::vector<int64_t> kLengths = {0, 1, 15, 16, 17, 63, 64, 65, 0, 130};

TEST(AttentionMma, Masks) {
  checkAttention<Config<0, ScoreKind::silu>, kMma>(1, kLengths, 1);
  checkAttention<Config<kCausal, ScoreKind::softmax>, kMma>(1, kLengths, 2);
  checkAttention<Config<kWindow + kMasked, ScoreKind::softmax>, kMma>(1, {1, 70}, 3);
  checkAttention<Config<kCausal + kMasked + kWindow, ScoreKind::silu>, kMma>(1, {3, 64, 131}, 4);
}

/// Windows wider than tiles, and counts of rows beyond 32 bits.
TEST(AttentionMma, WideMasks) {
  using Masked = Config<kWindow + kMasked, ScoreKind::softmax>;
  auto check = [](int64_t window, int64_t contextual, const std::vector<int64_t> &lengths) {
    checkAttention<Masked, kMma>(1, lengths, 11, [=](ReferenceInputs &in) {
      in.window = window, in.contextual = contextual;
      std::fill(in.targets.begin(), in.targets.end(), 0);
    });
  };
  check(100, 0, {190});
  check(79, 0, {190}); // a warp's last row alone does not see a tile's first column
  check((int64_t(1) << 32) + 3, 0, {20});
  check(2, (int64_t(1) << 32) + 3, {20});
}

TEST(AttentionMma, BiasesAndDropout) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu>, kMma>(2, {0, 1, 17, 64, 150}, 5);
  checkAttention<Config<kBiases + kDropout + kMasked, ScoreKind::silu>, kMma>(1, {33, 70}, 6);
  // Distances of a warp's keys to a tile's queries share the first bucket, or the last, but for one
  // pair each: that of key 47 and query 64, and of 80 and 63.
  checkAttention<Config<kBiases + kDropout + kMasked, ScoreKind::silu>, kMma>(
      1, {110}, 6, [](ReferenceInputs &in) {
        in.positionBias.resize(37, 0.5);
        in.contextual = in.targets[0] = 0;
        in.dropProbability = 0;
        for (size_t i = 0; i < 32; ++i) {
          for (size_t key : {47, 80})
            in.v[key * 32 + i] *= 32;
          for (size_t query : {63, 64})
            in.dOut[query * 32 + i] *= 32;
        }
      });
  checkAttention<Config<kCausal + kMasked + kWindow + kBiases + kDropout, ScoreKind::softmax>,
                 kMma>(2, {2, 40, 90}, 7);
}

TEST(AttentionMma, Sizes) {
  checkAttention<Config<kCausal + kPositionBias, ScoreKind::silu, 40, 72>, kMma>(2, {17, 65}, 8);
  checkAttention<Config<kCausal, ScoreKind::silu, 128, 128>, kMma>(1, {70}, 9);
  checkAttention<Config<kCausal, ScoreKind::softmax, 160, 256>, kMma>(1, {40}, 10);
}

/// Sums in fixed point are bounded by the greatest key and value of a list, its number of rows and
/// the greatest gradient of all: one row of one list is great, or all gradients have one sign.
TEST(AttentionMma, SumsComeCloseToTheirBounds) {
  using Hstu = Config<kCausal + kBiases, ScoreKind::silu>;
  constexpr size_t kWidth = 2 * Hstu::Qk;
  for (const std::vector<int64_t> &lengths : {std::vector<int64_t>{2, 12, 24}, {20}})
    checkAttention<Hstu, kMma>(2, lengths, 12, [](ReferenceInputs &in) {
      // A column of a key that is great, but no score.
      for (size_t i = 31; i < in.q.size(); i += kWidth)
        in.q[i] /= 4096;
      in.k[8 * kWidth + 31] *= 4096;
      for (size_t i = 0; i < kWidth; ++i)
        in.dOut[8 * kWidth + i] *= 512;
    });
  checkAttention<Hstu, kMma>(2, {100}, 13, [](ReferenceInputs &in) {
    for (std::vector<double> *values : {&in.k, &in.v})
      for (size_t i = kWidth; i < values->size(); ++i)
        (*values)[i] = (*values)[i - kWidth];
    in.dOut = in.v;
    in.scale = -in.scale;
  });
  // With weights of equal size keys and values of two signs make all of the bound, tile by tile.
  using Softmax = Config<kCausal, ScoreKind::softmax>;
  checkAttention<Softmax, kMma>(1, {520}, 14, [](ReferenceInputs &in) {
    std::ranges::fill(in.q, 0);
    std::ranges::fill(in.k, 0);
    std::ranges::fill(in.dOut, 1.375); // 32 * 1.375^2 is just below a power of two
    for (size_t i = 0; i < in.v.size(); ++i)
      in.v[i] = i / Softmax::V % 2 ? 1.375 : -1.375;
    for (size_t i = 5; i < in.k.size(); i += Softmax::Qk)
      in.k[i] = i / Softmax::Qk % 2 ? 1 : -1;
  });
}

TEST(AttentionMma, WhatIsNotFiniteIsSeenInEveryGradient) {
  checkNotFinite<Config<kCausal + kBiases, ScoreKind::silu>, kMma>();
}

TEST(AttentionMma, NoRows) { checkNoRows<Config<kCausal + kBiases, ScoreKind::silu>, kMma>(); }

} // namespace
} // namespace of_mma
