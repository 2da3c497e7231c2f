//===- attention_args.h - What an attention call is told --------*- C++ -*-===//
//
// Rows are grouped by parent: parent p owns the rows [offsets[p],
// offsets[p + 1]). A row attends to rows of its own parent only. With i the
// query's and j the key's position in their list of length n, per head:
//
//   s(i, j) = scale * dot(q_i, k_j) + positionBias[clamp(j - i + (B-1)/2, 0, B-1)]
//                                   + timeBias[bucket(t_i - t_j)]
//   silu:     a(i, j) = silu(s(i, j)) / norm      norm = fixedLength, or n when that is 0
//   softmax:  a(i, j) = softmax over the keys that i sees of s(i, j)
//   out_i   = sum over the keys that i sees of drop(a(i, j)) * v_j
//
// Query i sees key j when j <= i (Causal) and |i - j| < window (HasWindow and
// window > 0). With Masked: rows i < contextual are a prefix that sees all rows but targets
// and that all rows see; the last targets[parent] rows of a list are targets, which
// only they themselves see. bucket(dt) = min(T - 1, floor(ln(max(1, dt in seconds)) / 0.301)), as
// in the public HSTU code; with nextEventTime, t_i is that of row i + 1 (the
// last row: its own). drop keeps with probability 1 - p and divides by it; the
// draw of (i, j, head h) is element h * 2^20 + j of the row identity[i].
//
// Heads lie side by side in a row: head h of q is columns [h * Qk, (h+1) * Qk).
// Empty lists yield nothing. Lists are shorter than 2^20 rows.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_ATTENTION_ARGS_H
#define GENREC_RT_KERNELS_SHARED_ATTENTION_ARGS_H

#include "genrec_rt/kernels/shared/random.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

enum class ScoreKind { silu, softmax };

/// What is known when a model is compiled. Qk and V are sizes per head.
template <int HeadCount, int QkSize, int VSize, ScoreKind Kind, bool IsCausal, bool WithWindow,
          bool WithPositionBias, bool WithTimeBias, bool WithDropout, bool IsMasked = false,
          bool RoundsFactors = false>
struct AttentionConfig {
  static constexpr int Heads = HeadCount;
  static constexpr int Qk = QkSize;
  static constexpr int V = VSize;
  static constexpr ScoreKind Score = Kind;
  static constexpr bool Causal = IsCausal;
  static constexpr bool HasWindow = WithWindow;
  static constexpr bool PositionBias = WithPositionBias;
  static constexpr bool TimeBias = WithTimeBias;
  static constexpr bool Dropout = WithDropout;
  static constexpr bool Masked = IsMasked;
  static constexpr bool Bf16 = RoundsFactors; ///< factors of products are rounded to bfloat16
};

/// What a call needs, on the CPU and on devices. Fields of features that the
/// configuration lacks are not read. Leading dimensions are in elements; q, k, v
/// and out may be strided views of one buffer. Matrices have a row per row of a
/// list and their heads side by side.
template <class Element> struct AttentionCall {
  /// Devices: the rows' domain, in device memory, where the number of lists is known; `parents`
  /// bounds it then. Null: there are `parents`.
  const genrec_domain *domain = nullptr;
  int64_t parents = 0;
  const int64_t *offsets = nullptr; ///< [parents + 1], first not below 0
  int64_t maxLength = 0;            ///< no list is longer
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
  RandomStream random = {};
  double dropProbability = 0;
};

/// Gradients. dQ, dK, dV and the bias gradients are written, not accumulated,
/// dQ, dK and dV for the rows of lists only. They may be strided views of one
/// buffer and must not overlap q, k, v, out or dOut.
template <class Element> struct AttentionCallGradients {
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

using AttentionArgs = AttentionCall<float>;
using AttentionGradients = AttentionCallGradients<float>;

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_ATTENTION_ARGS_H
