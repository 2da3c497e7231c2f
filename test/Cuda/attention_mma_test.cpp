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

TEST(AttentionMma, BiasesAndDropout) {
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu>, kMma>(2, {0, 1, 17, 64, 150}, 5);
  checkAttention<Config<kBiases + kDropout + kMasked, ScoreKind::silu>, kMma>(1, {33, 70}, 6);
  checkAttention<Config<kCausal + kMasked + kWindow + kBiases + kDropout, ScoreKind::softmax>,
                 kMma>(2, {2, 40, 90}, 7);
}

TEST(AttentionMma, Sizes) {
  checkAttention<Config<kCausal + kPositionBias, ScoreKind::silu, 40, 72>, kMma>(2, {17, 65}, 8);
  checkAttention<Config<kCausal, ScoreKind::silu, 128, 128>, kMma>(1, {70}, 9);
  checkAttention<Config<kCausal, ScoreKind::softmax, 256, 160>, kMma>(1, {40}, 10);
}

} // namespace
} // namespace of_mma
