//===- backward_space.h - Memory of attention's backward, and bounds in it -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_BACKWARD_SPACE_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_BACKWARD_SPACE_H

#include "genrec_rt/kernels/cuda/attention/fixed_point.h"
#include "genrec_rt/kernels/cuda/attention/row_spans.h"

namespace genrec::rt::cuda {

/// What listMost has of a list and head, as bits of floats of at least 0.
enum ListMost {
  kMostValue,    ///< bound of |dS_ij| by |dOut_i|: the greatest |v_j| times factors of the list
  kMostKey,      ///< bound of |dQ_ie| by that of |dS_ij|: the greatest |k_je| times such
  kMostGradient, ///< the greatest |dOut_i|, for bias gradients
  kMostProduct,  ///< and softmax's |dOut_i . out_i|
  kListMosts
};

/// Memory of a backward call; all of it grows with the rows.
struct BackwardSpace {
  // Cleared before a call:
  uint32_t *greatest = nullptr; ///< [1] bits of the greatest bound of |dS|
  uint32_t *ready = nullptr;    ///< [1] blocks that have done their part of listMost
  uint32_t *listMost = nullptr; ///< [parents, heads, kListMosts]
  Word *positionSums = nullptr; ///< [positionBuckets] in bias quanta
  Word *timeSums = nullptr;     ///< [timeBuckets]
  // Written before it is read:
  int *querySums = nullptr;    ///< as querySumAt has it, in the row's quanta; tensor cores only
  float *rowProduct = nullptr; ///< [heads, rows] softmax: dOut . out
  float *rowNorm = nullptr;    ///< [heads, rows] |dOut_i|; tensor cores only. NaN makes dQ NaN
};

/// querySums is [heads, panels of 64 columns, rows, 64]: neighbouring rows of a panel lie together,
/// so that one reduction adds them. Columns 8c to 8c + 7 of row r stand at 8 (c ^ (r % 8)), so that
/// a warp that writes fragments of them to shared memory hits every bank once.
constexpr int kPanelColumns = 64;
template <class C> constexpr int kQueryPanels = (C::Qk + kPanelColumns - 1) / kPanelColumns;
__host__ __device__ inline int columnInPanel(int64_t row, int column) {
  return (column / 8 ^ static_cast<int>(row & 7)) * 8 + column % 8;
}
template <class C>
__device__ int64_t querySumAt(const AttentionArgs<typename C::Element> &args, int64_t head,
                              int64_t row, int column) {
  const int64_t panel = head * kQueryPanels<C> + column / kPanelColumns;
  return (panel * args.rows + row) * kPanelColumns + columnInPanel(row, column % kPanelColumns);
}

/// What listMost has: the greatest |v_j| times this is a bound of |dS_ij| by |dOut_i|, with softmax
/// without dO . out (fixed_point.h).
template <class C>
__device__ float valueFactor(const AttentionArgs<typename C::Element> &args, int rows) {
  const float kept = keptFactor<C>(args) * kBoundSlack;
  return C::Softmax ? kept : kept * (1.1f * weightFactor<C>(args, rows));
}
/// And the greatest |k_je| times this one of |dQ_ie| by the bound of |dS_ij|.
template <class C>
__device__ float keyFactor(const AttentionArgs<typename C::Element> &args, int rows) {
  return C::Softmax ? fabsf(args.scale) : fabsf(args.scale) * static_cast<float>(rows);
}
/// Such a bound, not so small that a product of two is lost below the least float. NaN stays.
__device__ inline float boundOf(float greatest, float factor) {
  const float bound = greatest * factor;
  return bound < 0x1p-60f ? 0x1p-60f : bound;
}

/// The bounds of a list and head; after attentionPrepare. A row's quantum is not stored, but found
/// from its norm wherever it is wanted, each time with the same bits.
template <class C> struct ListBounds {
  float perNorm = 0, perProduct = 0; ///< of |dQ_ie|
  float ofOne = 0;                   ///< quantumOfOne

  ListBounds() = default;
  __device__ ListBounds(const AttentionArgs<typename C::Element> &args, const BackwardSpace &space,
                        int list, int head) {
    const uint32_t *most = space.listMost + (list * args.heads + head) * kListMosts;
    const float key = __uint_as_float(most[kMostKey]);
    perNorm = __uint_as_float(most[kMostValue]) * key;
    perProduct = key * kBoundSlack;
    ofOne = quantumOfOne<C>(args.offsets[list + 1] - args.offsets[list]);
  }
  /// The quantum of a row: a power of two, or NaN.
  __device__ float quantum(float norm, float product) const {
    float bound = norm * perNorm;
    if constexpr (C::Softmax) // as one operation: no compiler chooses where it is rounded
      bound = __fmaf_rn(fabsf(product), perProduct, bound);
    return powerAbove(bound) * ofOne;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_BACKWARD_SPACE_H
