// Attention whose factors are rounded to bfloat16, against the reference that rounds likewise.

#include "kernels_attention_harness.h"

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::AttentionConfig;
using k::ScoreKind;

const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 0, 33, 48, 97, 3, 0};

//                              heads qk  v   score            causal window pos   time  drop masked
//                              bf16
using Hstu =
    AttentionConfig<1, 50, 50, ScoreKind::silu, true, false, true, true, false, false, true>;
using Softmax =
    AttentionConfig<2, 16, 33, ScoreKind::softmax, true, false, true, false, true, false, true>;
using Masked =
    AttentionConfig<1, 20, 7, ScoreKind::softmax, false, true, false, true, false, true, true>;
using Dropped =
    AttentionConfig<3, 33, 64, ScoreKind::silu, false, true, false, true, true, false, true>;

KERNEL_TEST(KernelsAttentionBf16, AgreesWithTheReference) {
  checkAttention<Hstu>(kLengths, 1);
  checkAttention<Softmax>(kLengths, 2);
  checkAttention<Masked>(kLengths, 3);
  checkAttention<Dropped>(kLengths, 4);
}

/// A list that is cut into pieces.
KERNEL_TEST(KernelsAttentionBf16, Giants) { checkAttention<Softmax>({3, 1100, 17}, 5, 3); }

} // namespace
