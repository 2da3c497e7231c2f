//===- step_attention.h - Attention as emitted stages call it -----*- C++ -*-===//
//
// The calls of cpu/step_attention.h: attention in fp32 without tensor cores, and cross attention.
// Lists and rows are counted on the device; grids follow from the longest list that there may be.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H

#include "genrec_rt/kernels/cuda/attention/attention.h"
#include "genrec_rt/kernels/cuda/cross_attention.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

namespace detail {

template <int Heads>
cuda::AttentionArgs<float> attentionOnDevice(const genrec_step *step, const AttentionArgs &args) {
  cuda::AttentionArgs<float> result;
  static_cast<AttentionArgs &>(result) = args;
  result.random = {0, 0, args.random.op};
  result.step = step->device;
  result.domain = args.domain->device;
  result.parents = args.domain->parent_domain->capacity;
  result.maxLength = args.domain->max_length;
  result.heads = Heads;
  result.rows = args.domain->capacity;
  return result;
}

/// In the order of the calls' template arguments.
constexpr unsigned attentionFeatures(bool causal, bool window, bool positionBias, bool timeBias,
                                     bool dropout, bool masked) {
  return (causal ? cuda::kCausal : 0u) | (window ? cuda::kWindow : 0u) |
         (positionBias ? cuda::kPositionBias : 0u) | (timeBias ? cuda::kTimeBias : 0u) |
         (dropout ? cuda::kDropout : 0u) | (masked ? cuda::kMasked : 0u);
}

template <int Qk, int V, ScoreKind Score, bool... Features>
using PlainAttention = cuda::AttentionConfig<float, Qk, V, Score, attentionFeatures(Features...)>;

} // namespace detail

/// `args->domain` is the rows' domain of the host's step.
template <int Heads, int Qk, int V, ScoreKind Score, bool... Features>
void attention(genrec_step *step, const AttentionArgs *args) {
  using Config = detail::PlainAttention<Qk, V, Score, Features...>;
  cuda::attentionForward<Config, cuda::AttentionLevel::plain>(
      detail::attentionOnDevice<Heads>(step, *args), streamOf(step));
}

template <int Heads, int Qk, int V, ScoreKind Score, bool... Features>
void attentionGradient(genrec_step *step, const AttentionArgs *args,
                       const AttentionGradients *gradients) {
  using Config = detail::PlainAttention<Qk, V, Score, Features...>;
  constexpr auto kLevel = cuda::AttentionLevel::plain;
  const cuda::AttentionArgs<float> all = detail::attentionOnDevice<Heads>(step, *args);
  void *scratch = scratchOf(step, cuda::attentionBackwardBytes<Config, kLevel>(all));
  cuda::attentionBackward<Config, kLevel>(all, *gradients, scratch, streamOf(step));
}

/// As cpu/cross_attention.h has it; domains of the host's step.
struct CrossAttentionArgs {
  const genrec_domain *queries = nullptr;
  const genrec_domain *keys = nullptr;
  const float *q = nullptr;
  int64_t ldQ = 0;
  const float *k = nullptr;
  int64_t ldK = 0;
  const float *v = nullptr;
  int64_t ldV = 0;
  float scale = 1;

  cuda::CrossAttention onDevice() const {
    return {queries->device,
            queries->capacity,
            keys->device,
            keys->capacity,
            q,
            ldQ,
            k,
            ldK,
            v,
            ldV,
            scale};
  }
};

template <int Heads, int Qk, int V>
void crossAttention(genrec_step *step, const CrossAttentionArgs *args, float *out) {
  cuda::crossAttentionForward<Heads, Qk, V>(args->onDevice(), out, streamOf(step));
}

template <int Heads, int Qk, int V>
void crossAttentionGradient(genrec_step *step, const CrossAttentionArgs *args, const float *dOut,
                            int64_t ldDOut, float *dQ, float *dK, float *dV) {
  const cuda::CrossAttention all = args->onDevice();
  cuda::crossAttentionBackward<Heads, Qk, V>(
      all, {dOut, ldDOut, dQ, dK, dV},
      scratchOf(step, cuda::crossAttentionBackwardBytes<Heads>(all)), streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H
