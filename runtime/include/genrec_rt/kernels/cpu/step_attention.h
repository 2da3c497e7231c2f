//===- step_attention.h - Attention as emitted stages call it ---*- C++ -*-===//
//
// attention.h and cross_attention.h with scratch from the step; attention for blocks of
// rows as well.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_STEP_ATTENTION_H
#define GENREC_RT_KERNELS_CPU_STEP_ATTENTION_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/attention.h"
#include "genrec_rt/kernels/cpu/cross_attention.h"
#include "genrec_rt/kernels/cpu/row_blocks.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Arguments of the template: those of AttentionConfig.
template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
inline void attention(genrec_step *step, const AttentionArgs *args) {
  using Config = AttentionConfig<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias,
                                 Dropout, Masked, Bf16>;
  int32_t workers = genrec_rt_pool_threads(step->pool);
  int64_t bytes = attentionForwardScratchBytes<Config>(args->maxLength, workers);
  attentionForward<Config>(step->pool, *args, genrec_rt_thread_scratch(step, bytes));
}

template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
inline void attentionGradient(genrec_step *step, const AttentionArgs *args,
                              const AttentionGradients *gradients) {
  using Config = AttentionConfig<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias,
                                 Dropout, Masked, Bf16>;
  int32_t workers = genrec_rt_pool_threads(step->pool);
  int64_t bytes = attentionBackwardScratchBytes<Config>(args->maxLength, workers,
                                                        args->positionBuckets, args->timeBuckets);
  attentionBackward<Config>(step->pool, *args, *gradients, genrec_rt_thread_scratch(step, bytes));
}

/// The same for blocks of rows, where no list is a giant.
template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
inline void attention(RowBlock *block, const AttentionArgs *args) {
  using Config = AttentionConfig<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias,
                                 Dropout, Masked, Bf16>;
  if (block->isWhole())
    return attention<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias, Dropout, Masked,
                     Bf16>(block->all, args);
  int64_t bytes = detail::SharedTables<Config>(nullptr, args->maxLength).bytes();
  detail::SharedTables<Config> tables(block->keep<char>(bytes), args->maxLength);
  char *scratch = block->useScratch(detail::forwardBytes<Config>(*args));
  if (block->phase == BlockPhase::prepare)
    tables.fill(*args);
  else if (block->phase == BlockPhase::rows)
    detail::forwardUnits<Config>(*args, detail::GiantLists(*args, /*mayCut=*/false), tables,
                                 scratch, 0, args->parents * Heads);
}

template <int Heads, int Qk, int V, ScoreKind Score, bool Causal, bool Window, bool PositionBias,
          bool TimeBias, bool Dropout, bool Masked, bool Bf16 = false>
inline void attentionGradient(RowBlock *block, const AttentionArgs *args,
                              const AttentionGradients *gradients) {
  using Config = AttentionConfig<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias,
                                 Dropout, Masked, Bf16>;
  if (block->isWhole())
    return attentionGradient<Heads, Qk, V, Score, Causal, Window, PositionBias, TimeBias, Dropout,
                             Masked, Bf16>(block->all, args, gradients);
  int64_t bytes = detail::SharedTables<Config>(nullptr, args->maxLength).bytes();
  detail::SharedTables<Config> tables(block->keep<char>(bytes), args->maxLength);
  bytes = detail::biasPartialBytes<Config>(args->positionBuckets, args->timeBuckets);
  detail::BiasPartials<Config> partials(block->keep<char>(bytes), *args);
  char *scratch = block->useScratch(detail::backwardBytes<Config>(*args));
  if (block->phase == BlockPhase::prepare) {
    tables.fill(*args);
  } else if (block->phase == BlockPhase::rows) {
    detail::backwardUnits<Config>(*args, detail::GiantLists(*args, /*mayCut=*/false), *gradients,
                                  tables, partials, scratch, 0, args->parents * Heads, block->chunk,
                                  block->startsChunk);
  } else if (block->phase == BlockPhase::finish) {
    partials.clear(*args, *gradients);
    partials.addUp(block->chunks, *gradients);
  }
}

/// Per list of `args->keys`; arguments of the template: heads, sizes of q and v per head.
template <int Heads, int Qk, int V, bool Bf16 = false>
inline void crossAttention(genrec_step *step, const CrossAttentionArgs *args, float *out) {
  int64_t bytes = crossAttentionScratchBytes(args->keys, genrec_rt_pool_threads(step->pool));
  crossAttentionForward<Heads, Qk, V, Bf16>(step->pool, *args, out,
                                            genrec_rt_thread_scratch(step, bytes));
}

template <int Heads, int Qk, int V, bool Bf16 = false>
inline void crossAttentionGradient(genrec_step *step, const CrossAttentionArgs *args,
                                   const float *dOut, int64_t ldDOut, float *dQ, float *dK,
                                   float *dV) {
  int64_t bytes = crossAttentionScratchBytes(args->keys, genrec_rt_pool_threads(step->pool));
  crossAttentionBackward<Heads, Qk, V, Bf16>(step->pool, *args, dOut, ldDOut, dQ, dK, dV,
                                             genrec_rt_thread_scratch(step, bytes));
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_ATTENTION_H
