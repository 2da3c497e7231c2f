//===- prepare.h - What is computed once before and after attention's backward -===//
//
// Row norms, and from them the quanta of fixed_point.h; softmax's dO . out; the
// sums turned back into gradients.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H

#include "genrec_rt/kernels/cuda/attention/fixed_point.h"
#include "genrec_rt/kernels/cuda/attention/unit.h"

#include <type_traits>

namespace genrec::rt::cuda {

/// Memory of a backward call; all of it grows with the rows.
struct BackwardSpace {
  // Cleared before a call:
  uint32_t *greatest = nullptr; ///< [1] bits of the greatest bound of |dS|
  uint32_t *listMost = nullptr; ///< [parents, heads, 2] bits of max |v_j| and max |k_je|
  Word *positionSums = nullptr; ///< [positionBuckets] in bias quanta
  Word *timeSums = nullptr;     ///< [timeBuckets]
  int *querySums = nullptr;     ///< as querySumAt has it, in the row's quanta; tensor cores only
  // Written before it is read:
  float *rowProduct = nullptr; ///< [heads, rows] softmax: dO . out
  float *rowQuantum = nullptr; ///< [heads, rows] of querySums
};

constexpr int kPrepareThreads = 256;

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

/// The list that a row belongs to.
__device__ inline int64_t listOf(const int64_t *offsets, int64_t parents, int64_t row) {
  int64_t low = 0, high = parents; // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

__device__ inline float warpSum(float x) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    x += __shfl_xor_sync(kAllLanes, x, lanes);
  return x;
}

/// Bits of |x|, which are ordered as the values are; NaN is above all.
__device__ inline uint32_t magnitudeBits(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

/// Calls body(row, head) for every row and head of the lists, a warp for each.
template <class C, class Body>
__device__ void forRowsAndHeads(const AttentionArgs<typename C::Element> &args, Body body) {
  const int64_t begin = args.offsets[0], count = args.offsets[listsOf(args)] - begin;
  const int64_t warps = threadsInGrid() / kWarp;
  for (int64_t item = threadInGrid() / kWarp; item < count * args.heads; item += warps)
    body(begin + item / args.heads, item % args.heads);
}

/// Finds the greatest |v_j| and |k_je| of every list and head.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionNorms(AttentionArgs<typename C::Element> args, BackwardSpace space) {
  forRowsAndHeads<C>(args, [&](int64_t row, int64_t head) {
    float squares = 0;
    for (int e = laneOf(); e < C::V; e += kWarp) {
      float x = toFloat(args.v[row * args.ldV + head * C::V + e]);
      squares += x * x;
    }
    const float norm = sqrtf(warpSum(squares));
    uint32_t most = 0;
    for (int e = laneOf(); e < C::Qk; e += kWarp) {
      uint32_t bits = magnitudeBits(toFloat(args.k[row * args.ldK + head * C::Qk + e]));
      most = bits > most ? bits : most;
    }
    most = __reduce_max_sync(kAllLanes, most);
    if (laneOf() == 0) {
      uint32_t *at =
          space.listMost + (listOf(args.offsets, listsOf(args), row) * args.heads + head) * 2;
      atomicMax(at, magnitudeBits(norm));
      atomicMax(at + 1, most);
    }
  });
}

/// Finds the bounds and quanta of every row and head; after attentionNorms.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionBounds(AttentionArgs<typename C::Element> args,
                    AttentionGradients<typename C::Element> gradients, BackwardSpace space) {
  uint32_t greatest = 0;
  forRowsAndHeads<C>(args, [&](int64_t row, int64_t head) {
    float squares = 0, product = 0;
    for (int e = laneOf(); e < C::V; e += kWarp) {
      float d = toFloat(gradients.dOut[row * gradients.ldDOut + head * C::V + e]);
      squares += d * d;
      if constexpr (C::Softmax)
        product +=
            d * toFloat(resultOf<C>(args.out, args.floatOut)[row * args.ldOut + head * C::V + e]);
    }
    const float norm = sqrtf(warpSum(squares));
    const int64_t list = listOf(args.offsets, listsOf(args), row);
    const uint32_t *most = space.listMost + (list * args.heads + head) * 2;
    const int length = static_cast<int>(args.offsets[list + 1] - args.offsets[list]);
    float bound = keptFactor<C>(args) * norm * __uint_as_float(most[0]) * kBoundSlack, sum = bound;
    if constexpr (C::Softmax) {
      product = warpSum(product);
      bound += fabsf(product) * kBoundSlack;
      sum = bound;
    } else {
      bound *= 1.1f * weightFactor<C>(args, length);
      sum = bound * static_cast<float>(length);
    }
    const float most30 = fabsf(args.scale) * __uint_as_float(most[1]) * sum;
    greatest = magnitudeBits(bound) > greatest ? magnitudeBits(bound) : greatest;
    if (laneOf() == 0) {
      space.rowQuantum[head * args.rows + row] = powerAbove(most30) * 0x1p-30f;
      if constexpr (C::Softmax)
        space.rowProduct[head * args.rows + row] = product;
    }
  });
  greatest = __reduce_max_sync(kAllLanes, greatest);
  if (laneOf() == 0 && greatest > 0)
    atomicMax(space.greatest, greatest);
}

/// Turns the sums of bias gradients into floats.
template <class E>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionBiasGradients(AttentionArgs<E> args, AttentionGradients<E> gradients,
                           BackwardSpace space, int pairBits, bool position, bool time) {
  const BiasQuantum quantum(space.greatest, pairBits);
  if (position)
    for (int64_t b = threadInGrid(); b < args.positionBuckets; b += threadsInGrid())
      gradients.dPositionBias[b] = quantum.value(space.positionSums[b]);
  if (time)
    for (int64_t b = threadInGrid(); b < args.timeBuckets; b += threadsInGrid())
      gradients.dTimeBias[b] = quantum.value(space.timeSums[b]);
}

/// Turns querySums into dQ.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionQueryGradients(AttentionArgs<typename C::Element> args,
                            AttentionGradients<typename C::Element> gradients,
                            BackwardSpace space) {
  forRowsAndHeads<C>(args, [&](int64_t row, int64_t head) {
    const float quantum = space.rowQuantum[head * args.rows + row];
    auto *dQ = resultOf<C>(gradients.dQ, gradients.floatDQ) + row * gradients.ldDQ + head * C::Qk;
    for (int e = laneOf(); e < C::Qk; e += kWarp)
      dQ[e] = fromFloat<std::remove_pointer_t<decltype(dQ)>>(
          static_cast<float>(space.querySums[querySumAt<C>(args, head, row, e)]) * quantum);
  });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
