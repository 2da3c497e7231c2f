// The plain attention kernels against the reference, run on the host.

#include "attention_testing.h"

#include <utility>

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr AttentionLevel kPlain = AttentionLevel::plain;
const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 0, 33, 47, 0};

template <unsigned Features, ScoreKind Score = ScoreKind::silu, class Element = float, int Qk = 18,
          int V = 12>
using Config = AttentionConfig<Element, Qk, V, Score, Features>;

template <ScoreKind Score, unsigned... Features> void checkFeatures() {
  (checkAttention<Config<Features, Score>, kPlain>(2, kLengths, Features), ...);
}

constexpr unsigned kBiases = kPositionBias + kTimeBias;

TEST(AttentionPlain, EveryMask) {
  checkFeatures<ScoreKind::silu, 0, kCausal, kWindow, kCausal + kWindow, kCausal + kMasked, kMasked,
                kCausal + kMasked + kWindow>();
  checkFeatures<ScoreKind::softmax, 0, kCausal + kWindow, kCausal + kMasked>();
}

TEST(AttentionPlain, BiasesAndDropout) {
  checkFeatures<ScoreKind::silu, kPositionBias, kCausal + kBiases, kBiases + kDropout + kMasked>();
  checkFeatures<ScoreKind::softmax, kCausal + kTimeBias, kCausal + kWindow + kDropout,
                kCausal + kMasked + kWindow + kBiases + kDropout>();
}

TEST(AttentionPlain, ElementTypesAndSizes) {
  constexpr unsigned kHstu = kCausal + kBiases;
  checkAttention<Config<kHstu, ScoreKind::silu, Bf16, 32, 32>, kPlain>(2, kLengths, 1);
  checkAttention<Config<kHstu, ScoreKind::softmax, Bf16, 50, 50>, kPlain>(1, kLengths, 2);
  checkAttention<Config<kHstu, ScoreKind::silu, float, 1, 40>, kPlain>(3, kLengths, 3);
  checkAttention<Config<kHstu, ScoreKind::silu, float, 256, 256>, kPlain>(1, {3, 18}, 4);
}

TEST(AttentionPlain, NoListsAndOnlyEmptyLists) {
  checkAttention<Config<kCausal + kBiases>, kPlain>(2, {0}, 1);
  checkAttention<Config<kCausal + kBiases, ScoreKind::softmax>, kPlain>(1, {0, 0, 0}, 2);
}

TEST(AttentionPlain, ManyLists) {
  Random random(11);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 60; ++i)
    lengths.push_back(random.below(24));
  checkAttention<Config<kCausal + kBiases, ScoreKind::silu, float, 8, 8>, kPlain>(2, lengths, 12);
}

} // namespace
