// The plain attention kernels against the reference, run on the host.

#include "../Runtime/attention_options.h"
#include "attention_testing.h"

#include <utility>

namespace of_plain {
namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;
using namespace genrec::rt::kernels::test;

constexpr AttentionLevel kPlain = AttentionLevel::plain;
const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 0, 33, 70, 0};

template <unsigned Features, ScoreKind Score, class Element, int Qk, int V>
using Config = AttentionConfig<Element, Qk, V, Score, Features>;

constexpr unsigned kBiases = kPositionBias + kTimeBias;

constexpr unsigned featuresOf(const AttentionOptions &o) {
  return o.causal * kCausal + o.window * kWindow + o.masked * kMasked +
         o.positionBias * kPositionBias + o.timeBias * kTimeBias + o.dropout * kDropout;
}
template <unsigned Number, AttentionOptions Set = attentionOptions(Number)>
using Options =
    Config<featuresOf(Set), Set.softmax ? ScoreKind::softmax : ScoreKind::silu, float, 6, 5>;
using Hstu = Options<9>;
static_assert(Hstu::Causal && Hstu::PositionBias && Hstu::TimeBias && !Hstu::Softmax);

template <unsigned... Numbers> void checkOptions(std::integer_sequence<unsigned, Numbers...>) {
  for (uint64_t round = 0; round < 2; ++round) // a window, targets or context may be none
    (checkAttention<Options<Numbers>, kPlain>(2, kLengths, 16 * round + Numbers), ...);
}

TEST(AttentionPlain, EveryThreeOptionsInEveryCombination) {
  checkOptions(std::make_integer_sequence<unsigned, kOptionSets>());
}

TEST(AttentionPlain, ElementTypesAndSizes) {
  constexpr unsigned kHstu = kCausal + kBiases;
  checkAttention<Config<kHstu, ScoreKind::silu, Bf16, 32, 32>, kPlain>(2, kLengths, 1);
  checkAttention<Config<kHstu, ScoreKind::softmax, Bf16, 50, 50>, kPlain>(1, kLengths, 2);
  checkAttention<Config<kHstu, ScoreKind::silu, float, 1, 40>, kPlain>(3, kLengths, 3);
  checkAttention<Config<kHstu, ScoreKind::silu, float, 256, 256>, kPlain>(1, {3, 18}, 4);
  checkAttention<Config<kHstu + kDropout, ScoreKind::softmax, float, 18, 12>, kPlain>(2, kLengths,
                                                                                      5);
}

TEST(AttentionPlain, NoListsAndOnlyEmptyLists) {
  checkAttention<Hstu, kPlain>(2, {0}, 1);
  checkAttention<Options<15>, kPlain>(1, {0, 0, 0}, 2);
  checkNoRows<Config<kCausal + kBiases, ScoreKind::silu, float, 16, 16>, kPlain>();
}

TEST(AttentionPlain, ManyLists) {
  Random random(11);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 60; ++i)
    lengths.push_back(random.below(24));
  checkAttention<Hstu, kPlain>(2, lengths, 12);
}

} // namespace
} // namespace of_plain
