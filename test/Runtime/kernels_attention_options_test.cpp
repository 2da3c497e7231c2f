// Attention against the naive reference with every combination of options.

#include "kernels_attention_harness.h"

#include <bit>
#include <utility>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::testing;

template <int Mask, int Heads, int Qk, int V, bool Masked>
using Options =
    k::AttentionConfig<Heads, Qk, V, (Mask & 1) ? k::ScoreKind::softmax : k::ScoreKind::silu,
                       (Mask & 2) != 0, (Mask & 4) != 0, (Mask & 8) != 0, (Mask & 16) != 0,
                       (Mask & 32) != 0, Masked>;

#ifdef __AVX512F__
// A kernel takes seconds to compile, and other vectors change no option: of masks with an even
// number of options, where any five of the six are in every combination.
constexpr bool kEvenOnly = true;
#else
constexpr bool kEvenOnly = false;
#endif

/// Lists from 1 to 70 rows: below, at and above a tile, a vector and a block.
template <int Mask, bool Masked> void checkOptions() {
  if constexpr (!kEvenOnly || std::popcount(static_cast<unsigned>(Mask)) % 2 == 0)
    checkAttention<Options<Mask, 2, 18, 12, Masked>>({3, 0, 17, 70, 1, 49}, Mask);
}
template <int First, bool Masked = false, int... Masks>
void checkOptions(std::integer_sequence<int, Masks...>) {
  (checkOptions<First + Masks, Masked>(), ...);
}

KERNEL_TEST(KernelsAttentionOptions, WithoutDropout) {
  checkOptions<0>(std::make_integer_sequence<int, 32>());
}
KERNEL_TEST(KernelsAttentionOptions, WithDropout) {
  checkOptions<32>(std::make_integer_sequence<int, 32>());
}

// A prefix of context and targets at the end: with every score, with and without causal and a
// window, without biases and with both.
KERNEL_TEST(KernelsAttentionOptions, Masked) {
  checkOptions<0, true>(std::make_integer_sequence<int, 8>());
}
KERNEL_TEST(KernelsAttentionOptions, MaskedWithBiasesAndDropout) {
  checkOptions<56, true>(std::make_integer_sequence<int, 8>());
}
KERNEL_TEST(KernelsAttentionOptions, MaskedLists) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    checkAttention<Options<2, 1, 8, 8, true>>({100, 48, 0, 1, 2, 97}, seed);
  }
}

} // namespace
