//===- step_attention.h - Attention as emitted stages call it -----*- C++ -*-===//
//
// The calls of cpu/step_attention.h: attention in fp32 without tensor cores or with factors of
// bfloat16, and cross attention.
// Lists and rows are counted on the device; grids follow from the longest list that there may be.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H

#include "genrec_rt/kernels/cuda/attention/bf16_attention.h"
#include "genrec_rt/kernels/cuda/cross_attention.h"
#include "genrec_rt/kernels/cuda/rounded_factors.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

namespace detail {

/// What a call has on the device, but for pointers to q, k, v and out.
template <class Element>
cuda::AttentionArgs<Element> attentionOnDevice(const genrec_step *step, const AttentionArgs &args,
                                               int64_t heads) {
  cuda::AttentionArgs<Element> result;
  result.domain = args.domain->device;
  result.parents = args.domain->parent_domain->capacity;
  result.offsets = args.offsets;
  result.maxLength = args.domain->max_length;
  result.logSumExp = args.logSumExp;
  result.scale = args.scale;
  result.fixedLength = args.fixedLength;
  result.window = args.window;
  result.contextual = args.contextual;
  result.targets = args.targets;
  result.positionBias = args.positionBias;
  result.positionBuckets = args.positionBuckets;
  result.timeBias = args.timeBias;
  result.timeBuckets = args.timeBuckets;
  result.timestamps = args.timestamps;
  result.ticksPerSecond = args.ticksPerSecond;
  result.nextEventTime = args.nextEventTime;
  result.identity = args.identity;
  result.random = {0, 0, args.random.op};
  result.dropProbability = args.dropProbability;
  result.heads = heads;
  result.rows = args.domain->capacity;
  result.step = step->device;
  return result;
}

/// In the order of the calls' template arguments.
constexpr unsigned attentionFeatures(bool causal, bool window, bool positionBias, bool timeBias,
                                     bool dropout, bool masked) {
  return (causal ? cuda::kCausal : 0u) | (window ? cuda::kWindow : 0u) |
         (positionBias ? cuda::kPositionBias : 0u) | (timeBias ? cuda::kTimeBias : 0u) |
         (dropout ? cuda::kDropout : 0u) | (masked ? cuda::kMasked : 0u);
}

} // namespace detail

/// q, k, v and the gradient of the result where they were rounded before, instead of the floats of
/// AttentionArgs and AttentionGradients, whose leading dimensions these have.
struct RoundedFactors {
  const Bf16 *q = nullptr, *k = nullptr, *v = nullptr, *dOut = nullptr;

  cuda::RoundedBefore onDevice() const {
    return {asFactors(q), asFactors(k), asFactors(v), asFactors(dOut)};
  }
};

/// `args->domain` is the rows' domain of the host's step. With Bf16 factors are rounded to bfloat16
/// (bf16_attention.h).
template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
void attention(genrec_step *step, const AttentionArgs *args,
               const RoundedFactors *rounded = nullptr) {
  constexpr unsigned kFeatures =
      detail::attentionFeatures(Causal, Window, PositionBias, TimeBias, Dropout, Masked);
  if constexpr (Bf16) {
    using Call = cuda::Bf16Attention<Heads, Qk, V, Score, kFeatures>;
    const auto all = detail::attentionOnDevice<cuda::Bf16>(step, *args, Heads);
    const auto factors = rounded ? rounded->onDevice() : cuda::RoundedBefore{};
    const auto *before = rounded ? &factors : nullptr;
    Call::forward(all, *args, scratchOf(step, Call::forwardBytes(all, before)), streamOf(step),
                  before);
  } else {
    using Config = cuda::AttentionConfig<float, Qk, V, Score, kFeatures>;
    auto all = detail::attentionOnDevice<float>(step, *args, Heads);
    cuda::takeMatrices(all, *args);
    cuda::attentionForward<Config, cuda::AttentionLevel::plain>(all, nullptr,
                                                                streamOf(step)); // wants no memory
  }
}

template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
void attentionGradient(genrec_step *step, const AttentionArgs *args,
                       const AttentionGradients *gradients,
                       const RoundedFactors *rounded = nullptr) {
  constexpr unsigned kFeatures =
      detail::attentionFeatures(Causal, Window, PositionBias, TimeBias, Dropout, Masked);
  if constexpr (Bf16) {
    using Call = cuda::Bf16Attention<Heads, Qk, V, Score, kFeatures>;
    const auto all = detail::attentionOnDevice<cuda::Bf16>(step, *args, Heads);
    const auto factors = rounded ? rounded->onDevice() : cuda::RoundedBefore{};
    const auto *before = rounded ? &factors : nullptr;
    Call::backward(all, *args, *gradients, scratchOf(step, Call::backwardBytes(all, before)),
                   streamOf(step), before);
  } else {
    using Config = cuda::AttentionConfig<float, Qk, V, Score, kFeatures>;
    constexpr auto kLevel = cuda::AttentionLevel::plain;
    auto all = detail::attentionOnDevice<float>(step, *args, Heads);
    cuda::takeMatrices(all, *args);
    void *scratch = scratchOf(step, cuda::attentionBackwardBytes<Config, kLevel>(all));
    cuda::attentionBackward<Config, kLevel>(all, {*gradients}, scratch, streamOf(step));
  }
}

/// The gradient of x of joinedAttentionGradient, as cuda::JoinedGradients has it.
struct JoinedGradients {
  const float *x = nullptr;
  int64_t ldX = 0;
  Bf16 *dx = nullptr;
  int64_t width = 0, q = 0, k = 0, v = 0;
  const Bf16 *rest = nullptr;
  int64_t ldRest = 0, restWidth = 0;

  cuda::JoinedGradients onDevice() const {
    return {x, ldX, asFactors(dx), width, q, k, v, asFactors(rest), ldRest, restWidth};
  }
};

/// attentionGradient with factors that were rounded before, of columns of x that q, k and v are the
/// silu of: `gradients` has no dQ, dK and dV.
template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16>
void joinedAttentionGradient(genrec_step *step, const AttentionArgs *args,
                             const AttentionGradients *gradients, const RoundedFactors *rounded,
                             const JoinedGradients *joined) {
  static_assert(Bf16);
  constexpr unsigned kFeatures =
      detail::attentionFeatures(Causal, Window, PositionBias, TimeBias, Dropout, Masked);
  using Call = cuda::Bf16Attention<Heads, Qk, V, Score, kFeatures>;
  const auto all = detail::attentionOnDevice<cuda::Bf16>(step, *args, Heads);
  const auto before = rounded->onDevice();
  Call::joinedBackward(all, *args, *gradients, joined->onDevice(),
                       scratchOf(step, Call::backwardBytes(all, &before)), streamOf(step), before);
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

/// With Bf16 factors are rounded to bfloat16.
template <int Heads, int Qk, int V, bool Bf16 = false>
void crossAttention(genrec_step *step, const CrossAttentionArgs *args, float *out) {
  cuda::crossAttentionForward<Heads, Qk, V, Bf16>(args->onDevice(), out, streamOf(step));
}

template <int Heads, int Qk, int V, bool Bf16 = false>
void crossAttentionGradient(genrec_step *step, const CrossAttentionArgs *args, const float *dOut,
                            int64_t ldDOut, float *dQ, float *dK, float *dV) {
  const cuda::CrossAttention all = args->onDevice();
  cuda::crossAttentionBackward<Heads, Qk, V, Bf16>(
      all, {dOut, ldDOut, dQ, dK, dV},
      scratchOf(step, cuda::crossAttentionBackwardBytes<Heads>(all)), streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_STEP_ATTENTION_H
