//===- args.h - What an attention call on the device is told ------*- C++ -*-===//
//
// As in genrec_rt/kernels/attention_args.h, with which fields and meaning, masks
// included, are shared; on the device values may be bfloat16, and the number of
// heads is known at run time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_ATTENTION_ARGS_H
#define GENREC_RT_CUDA_ATTENTION_ARGS_H

#include "genrec_rt/cuda/bf16.h"
#include "genrec_rt/kernels/random.h"

namespace genrec::rt::cuda {

enum class ScoreKind { silu, softmax };

/// What an attention has; a sum of these is a template argument.
enum AttentionFeature : unsigned {
  kCausal = 1,
  kWindow = 2,
  kMasked = 4, ///< rows of context and targets
  kPositionBias = 8,
  kTimeBias = 16,
  kDropout = 32,
};

/// What is known when a model is compiled. Sizes are per head.
template <class ElementType, int QkSize, int VSize, ScoreKind Kind, unsigned Features>
struct AttentionConfig {
  using Element = ElementType;
  static constexpr int Qk = QkSize;
  static constexpr int V = VSize;
  static constexpr ScoreKind Score = Kind;
  static constexpr bool Softmax = Kind == ScoreKind::softmax;
  static constexpr bool Causal = (Features & kCausal) != 0;
  static constexpr bool HasWindow = (Features & kWindow) != 0;
  static constexpr bool Masked = (Features & kMasked) != 0;
  static constexpr bool PositionBias = (Features & kPositionBias) != 0;
  static constexpr bool TimeBias = (Features & kTimeBias) != 0;
  static constexpr bool Dropout = (Features & kDropout) != 0;
};

/// What a call needs; all pointers are to device memory. Fields of features
/// that the configuration lacks are not read. Leading dimensions are in elements;
/// q, k, v and out may be strided views of one buffer.
template <class Element> struct AttentionArgs {
  int64_t parents = 0;
  int64_t heads = 1;
  const int64_t *offsets = nullptr; ///< [parents + 1], first not below 0
  int64_t maxLength = 0;            ///< no list is longer; below 2^20
  int64_t rows = 0;                 ///< capacity: offsets[parents] is at most this
  const Element *q = nullptr;       ///< [rows, heads * Qk]
  int64_t ldQ = 0;
  const Element *k = nullptr; ///< [rows, heads * Qk]
  int64_t ldK = 0;
  const Element *v = nullptr; ///< [rows, heads * V]
  int64_t ldV = 0;
  Element *out = nullptr; ///< [rows, heads * V]; softmax backward reads it
  int64_t ldOut = 0;
  float *logSumExp = nullptr; ///< softmax: [rows, heads]; written by forward, read by backward
  float scale = 1;            ///< of q . k
  float fixedLength = 0;      ///< silu: the norm, or 0 for each list's own length
  int64_t window = 0;         ///< 0: none
  int64_t contextual = 0;     ///< rows of context at the start of each list
  const int64_t *targets = nullptr;    ///< [parents], rows at the end of a list; null: none
  const float *positionBias = nullptr; ///< [positionBuckets], shared by all heads
  int64_t positionBuckets = 0;         ///< odd
  const float *timeBias = nullptr;     ///< [timeBuckets], shared by all heads
  int64_t timeBuckets = 0;
  const int64_t *timestamps = nullptr; ///< [rows], in ticks
  int64_t ticksPerSecond = 1;          ///< deltas are divided by it, rounding down
  bool nextEventTime = false;
  const uint64_t *identity = nullptr; ///< [rows], dropout's row identities
  kernels::RandomStream random = {};
  float dropProbability = 0;
};

/// Gradients; dQ, dK, dV and the bias gradients are written, not accumulated,
/// dQ, dK and dV for the rows of lists only. They may be strided views of one
/// buffer and must not overlap q, k, v, out or dOut.
template <class Element> struct AttentionGradients {
  const Element *dOut = nullptr; ///< [rows, heads * V]
  int64_t ldDOut = 0;
  Element *dQ = nullptr; ///< [rows, heads * Qk]
  int64_t ldDQ = 0;
  Element *dK = nullptr; ///< [rows, heads * Qk]
  int64_t ldDK = 0;
  Element *dV = nullptr; ///< [rows, heads * V]
  int64_t ldDV = 0;
  float *dPositionBias = nullptr; ///< [positionBuckets]
  float *dTimeBias = nullptr;     ///< [timeBuckets]
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_ATTENTION_ARGS_H
