//===- args.h - What an attention call on the device is told ------*- C++ -*-===//
//
// The fields are the CPU's, and so is their meaning, masks included
// (genrec_rt/kernels/shared/attention_args.h); on the device values may be bfloat16, and
// the number of heads is known at run time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_ARGS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_ARGS_H

#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/shared/attention_args.h"

namespace genrec::rt::cuda {

using kernels::ScoreKind;

/// What an attention has; a sum of these is a template argument.
enum AttentionFeature : unsigned {
  kCausal = 1,
  kWindow = 2,
  kMasked = 4, ///< rows of context and targets
  kPositionBias = 8,
  kTimeBias = 16,
  kDropout = 32,
  /// With values of bfloat16: out, dQ, dK and dV are float, under their names with `float`.
  kFloatResults = 64,
  /// With values of bfloat16 that are the silu of floats x: dQ, dK and dV are gradients of x,
  /// rounded to factors (factors.h), and never float.
  kOfSilu = 128,
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
  static constexpr bool FloatResults = (Features & kFloatResults) != 0;
  static constexpr bool OfSilu = (Features & kOfSilu) != 0;
};

/// A call; all pointers are to device memory. Lists are shorter than 2^20 rows.
/// Where `domain` says how many lists there are, grids are those of `parents`.
template <class Element> struct AttentionArgs : kernels::AttentionCall<Element> {
  int64_t heads = 1;
  int64_t rows = 0; ///< capacity: the lists have no more
  /// The step in device memory, whose seed and number dropout draws from, so that a call's
  /// arguments do not change between steps; null: those of `random`.
  const genrec_step *step = nullptr;
  float *floatOut = nullptr; ///< kFloatResults: what `out` is without it, `ldOut` apart

  GENREC_HOST_DEVICE kernels::RandomStream draws() const {
    return step ? kernels::randomStream(step, this->random.op) : this->random;
  }
};

template <class Element> struct AttentionGradients : kernels::AttentionCallGradients<Element> {
  /// kFloatResults: what dQ, dK and dV are without it, with their leading dimensions.
  float *floatDQ = nullptr, *floatDK = nullptr, *floatDV = nullptr;
  /// kOfSilu: x of q, k and v, aligned to 16 bytes, with one leading dimension, a multiple of 4.
  const float *xQ = nullptr, *xK = nullptr, *xV = nullptr;
  int64_t ldX = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_ARGS_H
