// What the build compiles of attention: all levels and both directions of five configurations, so
// that registers, spills and machine code of the device are checked where no device is. Models
// instantiate what they need themselves.

#include "genrec_rt/kernels/cuda/attention/attention.h"

namespace genrec::rt::cuda {

#define GENREC_INSTANTIATE(Config, Level)                                                          \
  template void attentionForward<Config, AttentionLevel::Level>(const AttentionArgs<Bf16> &,       \
                                                                void *, cudaStream_t);             \
  template void attentionBackward<Config, AttentionLevel::Level>(                                  \
      const AttentionArgs<Bf16> &, const AttentionGradients<Bf16> &, void *, cudaStream_t);

/// HSTU with both biases.
using Biased =
    AttentionConfig<Bf16, 128, 128, ScoreKind::silu, kCausal + kPositionBias + kTimeBias>;
GENREC_INSTANTIATE(Biased, plain)
GENREC_INSTANTIATE(Biased, mma)
GENREC_INSTANTIATE(Biased, hopper)

/// HSTU of a model's floats without times.
using Positioned =
    AttentionConfig<Bf16, 128, 128, ScoreKind::silu, kCausal + kPositionBias + kFloatResults>;
GENREC_INSTANTIATE(Positioned, hopper)

/// The same, whose gradients go on to what q, k and v are the silu of.
using OfSilu = AttentionConfig<Bf16, 128, 128, ScoreKind::silu,
                               kCausal + kPositionBias + kFloatResults + kOfSilu>;
template void attentionBackward<OfSilu, AttentionLevel::hopper>(const AttentionArgs<Bf16> &,
                                                                const AttentionGradients<Bf16> &,
                                                                void *, cudaStream_t);

/// Its products alone.
using Bare = AttentionConfig<Bf16, 128, 128, ScoreKind::silu, kCausal>;
GENREC_INSTANTIATE(Bare, hopper)

/// Softmax rescales between products.
using Softmaxed = AttentionConfig<Bf16, 128, 128, ScoreKind::softmax, kCausal>;
GENREC_INSTANTIATE(Softmaxed, hopper)

} // namespace genrec::rt::cuda
