//===- weights.h - From scores to weights and back, in fragments --*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_WEIGHTS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_WEIGHTS_H

#include "genrec_rt/kernels/cuda/attention/tile_terms.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

namespace genrec::rt::cuda {

constexpr float kLog2e = 1.44269504f;

/// What hidden scores are set to: the weight, and the gradient, of such a score is 0.
/// For silu any number whose tanh is -1.
template <class C> constexpr float kHiddenScore = C::Softmax ? -INFINITY : -1e30f;

/// silu of twice `half` without its factor, and as much of its derivative as it takes.
struct SiluParts {
  float weight, sigmoid;
  /// silu'(s) = sigmoid + silu (1 - sigmoid)
  __device__ float derivative() const { return __fmaf_rn(weight, 1.0f - sigmoid, sigmoid); }
};
__device__ inline SiluParts siluParts(float half) {
  const float t = tanhApprox(half);
  return {__fmaf_rn(half, t, half), __fmaf_rn(0.5f, t, 0.5f)};
}

/// The running maximum and sum of softmax over the columns of two rows.
struct SoftmaxRows {
  float most[2] = {-INFINITY, -INFINITY}; ///< of the scores, over the quad's columns
  float total[2] = {0, 0};                ///< of this lane's weights
};

template <class C, int N>
__device__ __forceinline__ void dropWeights(Fragment<N> &weights,
                                            const uint32_t (&kept)[(N + 63) / 64]) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (!(kept[n / 8] >> (4 * n + i) % 32 & 1))
        weights.d[n][i] = 0;
}

/// Scores (times kScoreFactor) become weights, up to the factor at the end; what `out` holds
/// already is to be multiplied by `rescale`.
template <class C, int N>
__device__ __forceinline__ void forwardWeights(Fragment<N> &scores, SoftmaxRows &softmax,
                                               float (&rescale)[2]) {
  if constexpr (!C::Softmax) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        scores.d[n][i] = siluParts(scores.d[n][i]).weight;
  } else {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float most = softmax.most[h];
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
        most = fmaxf(most, fmaxf(scores.d[n][2 * h], scores.d[n][2 * h + 1]));
      most = mostOfLanes<4>(most);
      const float shift = most == -INFINITY ? 0.0f : most * kLog2e;
      rescale[h] = exp2Approx(__fmaf_rn(softmax.most[h], kLog2e, -shift));
      softmax.most[h] = most;
      float total = softmax.total[h] * rescale[h];
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
#pragma unroll
        for (int x = 0; x < 2; ++x) {
          float &s = scores.d[n][2 * h + x];
          s = exp2Approx(__fmaf_rn(s, kLog2e, -shift));
          total += s;
        }
      softmax.total[h] = total;
    }
  }
}

/// The factors of the two rows at the end, and log sum exp.
template <class C>
__device__ __forceinline__ void finishRows(const BlockTerms<C> &terms, SoftmaxRows &softmax,
                                           float (&factor)[2], float (&logSumExp)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    factor[h] = weightFactor<C>(terms.args, terms.mask.length) * keptFactor<C>(terms.args);
    logSumExp[h] = 0;
    if constexpr (C::Softmax) {
      float total = softmax.total[h];
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      factor[h] = total > 0 ? factor[h] / total : 0.0f;
      logSumExp[h] = softmax.most[h] + kernels::log(total);
    }
  }
}

/// What is left out of the gradients of scores in backwardWeights, and of weights.
template <class C> __device__ float gradientFactor(const BlockTerms<C> &terms) {
  return C::Softmax ? 1.0f
                    : weightFactor<C>(terms.args, terms.mask.length) * keptFactor<C>(terms.args);
}

/// Which elements of a fragment dropout keeps.
template <class C, int N> struct Kept {
  uint32_t bits[C::Dropout ? (N + 63) / 64 : 1];

  __device__ __forceinline__ Kept(const BlockTerms<C> &terms, const LaneRows<C, false> &rows,
                                  int columnBegin) {
    if constexpr (C::Dropout)
      keptElements<N>(bits, terms, rows, columnBegin);
  }
  __device__ __forceinline__ void drop(Fragment<N> &values) const {
    if constexpr (C::Dropout)
      dropWeights<C>(values, bits);
  }
};

/// Backward, first: `weights` are those of the scores (times kScoreFactor; softmax: with dropout's
/// factor left out), and `scores` become what scoreGradients takes.
template <class C, int N, class Tile>
__device__ __forceinline__ void backwardWeights(Fragment<N> &scores, Fragment<N> &weights,
                                                const Kept<C, N> &kept, const Tile &tile) {
  forFragment<N>([&](int n, int i, int, int column) {
    float &score = scores.d[n][i];
    if constexpr (!C::Softmax) {
      const SiluParts silu = siluParts(score);
      weights.d[n][i] = silu.weight;
      score = silu.derivative();
    } else {
      score = exp2Approx(__fmaf_rn(score, kLog2e, -tile.logSumExp[column]));
      weights.d[n][i] = score;
    }
  });
  kept.drop(weights);
}

/// Then: `dots` (dOut . v) become the gradients of the scores, without gradientFactor.
template <class C, int N, class Tile>
__device__ __forceinline__ void scoreGradients(const Fragment<N> &scores, Fragment<N> &dots,
                                               const Kept<C, N> &kept, const BlockTerms<C> &terms,
                                               const Tile &tile) {
  kept.drop(dots);
  const float factor = keptFactor<C>(terms.args);
  forFragment<N>([&](int n, int i, int, int column) {
    float &dot = dots.d[n][i];
    if constexpr (C::Softmax) {
      if constexpr (C::Dropout)
        dot *= factor;
      dot -= tile.rowProduct[column];
    }
    dot *= scores.d[n][i];
  });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_WEIGHTS_H
