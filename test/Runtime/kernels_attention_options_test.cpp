// Attention against the naive reference, any three options in every combination.

#include "attention_options.h"
#include "kernels_attention_harness.h"

#include <utility>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;

template <unsigned Number> constexpr AttentionOptions kSet = attentionOptions(Number);
template <unsigned Number>
using Options =
    k::AttentionConfig<2, 18, 12, kSet<Number>.softmax ? k::ScoreKind::softmax : k::ScoreKind::silu,
                       kSet<Number>.causal, kSet<Number>.window, kSet<Number>.positionBias,
                       kSet<Number>.timeBias, kSet<Number>.dropout, kSet<Number>.masked>;

/// Lists from 1 to 70 rows: below, at and above a tile, a vector and a block. Four times, as a
/// window, targets or a prefix of context may be none.
template <unsigned... Numbers> void checkOptions(std::integer_sequence<unsigned, Numbers...>) {
  for (uint64_t round = 0; round < 4; ++round)
    (checkAttention<Options<Numbers>>({3, 0, 17, 70, 1, 49}, 16 * round + Numbers), ...);
}

KERNEL_TEST(KernelsAttentionOptions, EveryThreeInEveryCombination) {
  checkOptions(std::make_integer_sequence<unsigned, kOptionSets>());
}

// A prefix of context and targets at the end, under a causal mask and without.
KERNEL_TEST(KernelsAttentionOptions, MaskedLists) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    checkAttention<Options<5>>({100, 48, 0, 1, 2, 97}, seed);
    checkAttention<Options<4>>({100, 48, 0, 1, 2, 97}, seed);
  }
}

} // namespace
