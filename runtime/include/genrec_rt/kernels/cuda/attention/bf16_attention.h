//===- bf16_attention.h - Attention of floats with factors of bfloat16 -*- C++ -*-===//
//
// Of a model's floats: q, k, v and the gradient of the result are rounded to bfloat16 in scratch,
// with heads as wide as whole multiples of 8 (zeros add nothing to a product) and zeros in the rows
// that the batch does not have; results are float. The level follows from the device that the
// model is compiled for, and from the sizes: heads wider than 256 have none on tensor cores.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_BF16_ATTENTION_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_BF16_ATTENTION_H

#include "genrec_rt/kernels/cuda/attention/attention.h"
#include "genrec_rt/kernels/cuda/attention/joined_gradients.h"
#include "genrec_rt/kernels/cuda/part_copies.h"

#include <algorithm>
#include <initializer_list>

namespace genrec::rt::cuda {

namespace detail {

/// The level that devices of all `architectures` have, as in 800, 900. A later one may lack what an
/// earlier one has: Blackwell runs no kernels of `hopper`.
constexpr AttentionLevel levelOfAll(std::initializer_list<int> architectures) {
  AttentionLevel level = AttentionLevel::hopper;
  for (const int architecture : architectures)
    level = std::min(level, attentionLevelOf(architecture / 100));
  return level;
}

/// The level of all devices that this unit is compiled for. Emulated models run `mma`, whose
/// barriers cost the host less; tests run all levels.
constexpr AttentionLevel modelLevel() {
#if defined(__CUDA_ARCH_LIST__)
  return levelOfAll({__CUDA_ARCH_LIST__});
#else
  return AttentionLevel::mma;
#endif
}

} // namespace detail

/// Factors that were rounded before (rounded_factors.h), with the leading dimensions of the floats
/// that are not there; null: they are rounded into scratch. dOut is that of a gradient alone.
struct RoundedBefore {
  const Bf16 *q = nullptr, *k = nullptr, *v = nullptr, *dOut = nullptr;
};

/// q, k, v and out of `from`, as they are.
inline void takeMatrices(AttentionArgs<float> &to, const kernels::AttentionArgs &from) {
  to.q = from.q, to.ldQ = from.ldQ;
  to.k = from.k, to.ldK = from.ldK;
  to.v = from.v, to.ldV = from.ldV;
  to.out = from.out, to.ldOut = from.ldOut;
}

/// Forward and backward of an attention whose `Features` lack kFloatResults. `args` has everything
/// but matrices, which `floats` has.
template <int Heads, int Qk, int V, ScoreKind Score, unsigned Features,
          AttentionLevel Level = detail::modelLevel()>
class Bf16Attention {
  static constexpr int kQk = kernels::roundUp(Qk, 8), kV = kernels::roundUp(V, 8);
  using Config = AttentionConfig<Bf16, kQk, kV, Score, Features | kFloatResults>;
  using Args = AttentionArgs<Bf16>;
  static constexpr AttentionLevel kLevel =
      kHasTensorCoreKernels<Config> ? Level : AttentionLevel::plain;
  /// Whether results have other strides than the model's.
  static constexpr bool kPadsQk = kQk != Qk, kPadsV = kV != V;

public:
  static int64_t forwardBytes(const Args &args, const RoundedBefore *before = nullptr) {
    return Scratch(args, nullptr, false, before).bytes +
           attentionForwardBytes<Config, kLevel>(args);
  }

  static void forward(Args args, const kernels::AttentionArgs &floats, void *memory,
                      cudaStream_t stream, const RoundedBefore *before = nullptr) {
    const Scratch scratch(args, memory, false, before);
    setFactors(args, floats, scratch, before, stream);
    setResult(args, floats, scratch);
    attentionForward<Config, kLevel>(args, static_cast<char *>(memory) + scratch.bytes, stream);
    if constexpr (kPadsV)
      unpad<V, kV>(args, scratch.out, floats.out, floats.ldOut, stream);
  }

  static int64_t backwardBytes(const Args &args, const RoundedBefore *before = nullptr) {
    return Scratch(args, nullptr, true, before).bytes +
           attentionBackwardBytes<Config, kLevel>(args);
  }

  static void backward(Args args, const kernels::AttentionArgs &floats,
                       const kernels::AttentionGradients &gradients, void *memory,
                       cudaStream_t stream, const RoundedBefore *before = nullptr) {
    const Scratch scratch(args, memory, true, before);
    setFactors(args, floats, scratch, before, stream, gradients.dOut, gradients.ldDOut);
    setResult(args, floats, scratch);
    if constexpr (Config::Softmax && kPadsV) // which reads the result
      copyParts(PartCopy<float>{args.domain, args.rows, Heads, floats.out, floats.ldOut, V,
                                scratch.out, Heads * kV, kV},
                stream);
    AttentionGradients<Bf16> own;
    own.dOut = before ? before->dOut : scratch.dOut;
    own.ldDOut = before ? gradients.ldDOut : Heads * kV;
    own.dPositionBias = gradients.dPositionBias;
    own.dTimeBias = gradients.dTimeBias;
    own.floatDQ = kPadsQk ? scratch.dQ : gradients.dQ;
    own.ldDQ = kPadsQk ? Heads * kQk : gradients.ldDQ;
    own.floatDK = kPadsQk ? scratch.dK : gradients.dK;
    own.ldDK = kPadsQk ? Heads * kQk : gradients.ldDK;
    own.floatDV = kPadsV ? scratch.dV : gradients.dV;
    own.ldDV = kPadsV ? Heads * kV : gradients.ldDV;
    attentionBackward<Config, kLevel>(args, own, static_cast<char *>(memory) + scratch.bytes,
                                      stream);
    if constexpr (kPadsQk) {
      unpad<Qk, kQk>(args, scratch.dQ, gradients.dQ, gradients.ldDQ, stream);
      unpad<Qk, kQk>(args, scratch.dK, gradients.dK, gradients.ldDK, stream);
    }
    if constexpr (kPadsV)
      unpad<V, kV>(args, scratch.dV, gradients.dV, gradients.ldDV, stream);
  }

  /// Backward of factors that were rounded before, where q, k and v are silu of columns of x: all
  /// of its gradient. `gradients` has no dQ, dK and dV. Wants the memory of `backward`.
  static void joinedBackward(Args args, const kernels::AttentionArgs &floats,
                             const kernels::AttentionGradients &gradients,
                             const JoinedGradients &joined, void *memory, cudaStream_t stream,
                             const RoundedBefore &before) {
    static_assert(!kPadsQk && !kPadsV, "columns of x are whole multiples of 8");
    using Joined = AttentionConfig<Bf16, kQk, kV, Score, Features | kFloatResults | kOfSilu>;
    const Scratch scratch(args, memory, true, &before);
    setFactors(args, floats, scratch, &before, stream);
    setResult(args, floats, scratch);
    AttentionGradients<Bf16> own;
    own.dOut = before.dOut, own.ldDOut = gradients.ldDOut;
    own.dPositionBias = gradients.dPositionBias;
    own.dTimeBias = gradients.dTimeBias;
    own.dQ = joined.dx + joined.q, own.xQ = joined.x + joined.q;
    own.dK = joined.dx + joined.k, own.xK = joined.x + joined.k;
    own.dV = joined.dx + joined.v, own.xV = joined.x + joined.v;
    own.ldDQ = own.ldDK = own.ldDV = joined.width;
    own.ldX = joined.ldX;
    attentionBackward<Joined, kLevel>(args, own, static_cast<char *>(memory) + scratch.bytes,
                                      stream);
    finishJoined(args.domain, args.rows, joined, stream);
  }

private:
  /// What lies in the memory of a call; a null pointer only counts.
  struct Scratch {
    Bf16 *q, *k, *v, *dOut = nullptr;
    float *out, *dQ = nullptr, *dK = nullptr, *dV = nullptr;
    int64_t bytes;

    Scratch(const Args &args, void *memory, bool isBackward, const RoundedBefore *before) {
      ScratchCursor cursor(memory);
      auto take = [&]<class T>(T *&part, bool isThere, int64_t width) {
        part = cursor.take<T>(isThere ? args.rows * Heads * width : 0);
      };
      take(q, !before, kQk);
      take(k, !before, kQk);
      take(v, !before, kV);
      take(dOut, isBackward && !before, kV);
      take(out, kPadsV && (!isBackward || Config::Softmax), kV);
      take(dQ, isBackward && kPadsQk, kQk);
      take(dK, isBackward && kPadsQk, kQk);
      take(dV, isBackward && kPadsV, kV);
      bytes = cursor.bytes();
    }
  };

  /// Rows of all lists, and zeros behind them, which tiles of a tensor map may read.
  template <int Size, int Padded>
  static PartCopy<Bf16> rounded(const Args &args, const float *from, int64_t ld, Bf16 *to) {
    return {args.domain, args.rows, Heads,          from,   ld,
            Size,        to,        Heads * Padded, Padded, /*clearsRest=*/true};
  }
  template <int Size, int Padded>
  static void unpad(const Args &args, const float *from, float *to, int64_t ld,
                    cudaStream_t stream) {
    copyParts(
        PartCopy<float>{args.domain, args.rows, Heads, from, Heads * Padded, Padded, to, ld, Size},
        stream);
  }

  /// `dOut`, null forward, is rounded with them, to where `scratch` has it.
  static void setFactors(Args &args, const kernels::AttentionArgs &floats, const Scratch &scratch,
                         const RoundedBefore *before, cudaStream_t stream,
                         const float *dOut = nullptr, int64_t ldDOut = 0) {
    if (before) {
      args.q = before->q, args.ldQ = floats.ldQ;
      args.k = before->k, args.ldK = floats.ldK;
      args.v = before->v, args.ldV = floats.ldV;
      return;
    }
    const PartCopy<Bf16> copies[] = {rounded<Qk, kQk>(args, floats.q, floats.ldQ, scratch.q),
                                     rounded<Qk, kQk>(args, floats.k, floats.ldK, scratch.k),
                                     rounded<V, kV>(args, floats.v, floats.ldV, scratch.v),
                                     rounded<V, kV>(args, dOut, ldDOut, scratch.dOut)};
    copyParts(std::span(copies, dOut ? 4 : 3), stream);
    args.q = scratch.q, args.k = scratch.k, args.v = scratch.v;
    args.ldQ = args.ldK = Heads * kQk;
    args.ldV = Heads * kV;
  }
  static void setResult(Args &args, const kernels::AttentionArgs &floats, const Scratch &scratch) {
    args.floatOut = kPadsV ? scratch.out : floats.out;
    args.ldOut = kPadsV ? Heads * kV : floats.ldOut;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_BF16_ATTENTION_H
