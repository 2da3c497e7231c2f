//===- result_rows.h - How rows of a result are stored ------------*- C++ -*-===//
//
// A result is stored as it is, or is a gradient of q, k or v that goes on to what these were the
// silu of (kOfSilu): multiplied by silu' and rounded to a factor (factors.h) before it leaves. So
// neither has to be read again.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_RESULT_ROWS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_RESULT_ROWS_H

#include "genrec_rt/kernels/cuda/attention/row_spans.h"
#include "genrec_rt/kernels/cuda/factors.h"

namespace genrec::rt::cuda {

/// The gradient of x from that of silu(x), as row kernels compute it: the same bits.
__device__ __forceinline__ float gradientOfSilu(float gradient, float x) {
  const float s = kernels::sigmoid(x), slope = s * (1.0f + x * (1.0f - s));
  return gradient * slope;
}

/// Rows that are stored as they are: column c of row r is to[r * ld + c].
template <class E> struct ResultRows {
  using Staged = E; ///< as what values pass through shared memory
  struct Ahead {};  ///< what a word is stored with
  static constexpr int kInWord = 16 / sizeof(E);
  E *to = nullptr;
  int64_t ld = 0;

  __device__ ResultRows at(int64_t row, int64_t column) const {
    return {to + row * ld + column, ld};
  }
  __device__ void storeOne(int column, float value) const { to[column] = fromFloat<E>(value); }
  /// Two neighbours, of which bfloat16 is aligned.
  __device__ void storePair(int64_t row, int column, float low, float high) const {
    E *pair = to + row * ld + column;
    if constexpr (sizeof(E) == 2) {
      *reinterpret_cast<uint32_t *>(pair) = packBf16(low, high);
    } else {
      pair[0] = low;
      pair[1] = high;
    }
  }
  /// Whether words of 16 bytes may be stored: nothing aligns rows of floats.
  __device__ bool takesWords() const {
    return sizeof(E) == 2 || (reinterpret_cast<uint64_t>(to) % 16 == 0 && ld % kInWord == 0);
  }
  __device__ Ahead ahead(int64_t, int) const { return {}; }
  /// kInWord neighbours, as they were staged.
  __device__ void storeWord(int64_t row, int column, const uint4 &values, const Ahead &) const {
    storeFour(reinterpret_cast<uint4 *>(to + row * ld + column), values);
  }
};

/// Gradients of rows x of which q, k or v are the silu. Rows of both are aligned to 16 bytes.
struct SiluRows {
  using Staged = float;
  using Ahead = uint4; ///< four neighbours of x
  static constexpr int kInWord = 4;
  Bf16 *to = nullptr;
  int64_t ld = 0;
  const float *x = nullptr;
  int64_t ldX = 0;

  __device__ SiluRows at(int64_t row, int64_t column) const {
    return {to + row * ld + column, ld, x + row * ldX + column, ldX};
  }
  __device__ void storeOne(int column, float value) const {
    to[column] = bf16Factor(gradientOfSilu(value, x[column]));
  }
  __device__ void storePair(int64_t row, int column, float low, float high) const {
    const float *of = x + row * ldX + column;
    *reinterpret_cast<uint32_t *>(to + row * ld + column) =
        packFactors(gradientOfSilu(low, of[0]), gradientOfSilu(high, of[1]));
  }
  __device__ bool takesWords() const { return true; }
  __device__ Ahead ahead(int64_t row, int column) const {
    return loadWhole<uint4>(x + row * ldX + column);
  }
  __device__ void storeWord(int64_t row, int column, const uint4 &values, const Ahead &of) const {
    auto gradient = [](uint32_t value, uint32_t at) {
      return gradientOfSilu(__uint_as_float(value), __uint_as_float(at));
    };
    storeWhole(to + row * ld + column,
               uint2{packFactors(gradient(values.x, of.x), gradient(values.y, of.y)),
                     packFactors(gradient(values.z, of.z), gradient(values.w, of.w))});
  }
};

/// Where a gradient goes, of the fields that a configuration has.
template <class C>
__device__ auto gradientRows(typename C::Element *own, float *asFloat, int64_t ld, const float *x,
                             int64_t ldX) {
  if constexpr (C::OfSilu)
    return SiluRows{own, ld, x, ldX};
  else if constexpr (C::FloatResults)
    return ResultRows<float>{asFloat, ld};
  else
    return ResultRows<typename C::Element>{own, ld};
}
template <class C>
__device__ auto queryRows(const AttentionGradients<typename C::Element> &gradients) {
  return gradientRows<C>(gradients.dQ, gradients.floatDQ, gradients.ldDQ, gradients.xQ,
                         gradients.ldX);
}
template <class C>
__device__ auto keyRows(const AttentionGradients<typename C::Element> &gradients) {
  return gradientRows<C>(gradients.dK, gradients.floatDK, gradients.ldDK, gradients.xK,
                         gradients.ldX);
}
template <class C>
__device__ auto valueRows(const AttentionGradients<typename C::Element> &gradients) {
  return gradientRows<C>(gradients.dV, gradients.floatDV, gradients.ldDV, gradients.xV,
                         gradients.ldX);
}
/// And the result of forward.
template <class C> __device__ auto outRows(const AttentionArgs<typename C::Element> &args) {
  if constexpr (C::FloatResults)
    return ResultRows<float>{args.floatOut, args.ldOut};
  else
    return ResultRows<typename C::Element>{args.out, args.ldOut};
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_RESULT_ROWS_H
