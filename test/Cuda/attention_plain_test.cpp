// The plain attention kernels against the reference, run on the host.

#include "attention_testing.h"

#include <utility>

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr AttentionLevel kPlain = AttentionLevel::plain;
const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 0, 33, 70, 0};

template <unsigned Features, ScoreKind Score = ScoreKind::silu, class Element = float, int Qk = 18,
          int V = 12>
using Config = AttentionConfig<Element, Qk, V, Score, Features>;

constexpr unsigned kMasks = kCausal + kWindow + kMasked, kBiases = kPositionBias + kTimeBias;
static_assert(kMasks == 7 && kBiases == 24, "features are bits, masks below biases");

/// Every mask together with every bias: the features 0 to 31. nvcc, which takes longer for one,
/// gets every mask without biases and with both.
template <unsigned Features, ScoreKind Score> void checkMaskAndBias() {
#if !defined(GENREC_SIMT)
  if constexpr ((Features & kBiases) == 0 || (Features & kBiases) == kBiases)
#endif
    checkAttention<Config<Features, Score, float, 6, 5>, kPlain>(2, {0, 1, 15, 17, 0, 37},
                                                                 Features);
}
template <ScoreKind Score, unsigned... Features>
void checkEveryMaskAndBias(std::integer_sequence<unsigned, Features...>) {
  (checkMaskAndBias<Features, Score>(), ...);
}

TEST(AttentionPlain, EveryMaskWithEveryBias) {
  constexpr std::make_integer_sequence<unsigned, kMasks + kBiases + 1> kAll;
  checkEveryMaskAndBias<ScoreKind::silu>(kAll);
  checkEveryMaskAndBias<ScoreKind::softmax>(kAll);
}

TEST(AttentionPlain, Dropout) {
  checkAttention<Config<kDropout + kBiases + kMasked>, kPlain>(2, kLengths, 61);
  checkAttention<Config<kDropout + kCausal + kWindow, ScoreKind::softmax>, kPlain>(2, kLengths, 62);
  checkAttention<Config<kDropout + kMasks + kBiases, ScoreKind::softmax>, kPlain>(2, kLengths, 63);
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
