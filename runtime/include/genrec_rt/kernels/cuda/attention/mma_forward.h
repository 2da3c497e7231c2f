//===- mma_forward.h - Attention with mma.sync, forward ------------*- C++ -*-===//
//
// A block has 64 queries, a warp 16 of them; tiles of 64 keys pass by. Keys of the
// next tile are copied while values of this one are waited for and multiplied.
// Weights stay in registers between the two products (Dao, "FlashAttention-2",
// 2023, section 3.1; silu needs no rescaling).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_FORWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_FORWARD_H

#include "genrec_rt/kernels/cuda/attention/row_stores.h"
#include "genrec_rt/kernels/cuda/attention/weights.h"
#include "genrec_rt/kernels/cuda/tensor/tile.h"

namespace genrec::rt::cuda {

constexpr int kMmaThreads = 128;

/// The end of forward: a warp's rows of `out`, divided by what their weights add up to, and of
/// logSumExp. `Stores`: how rows leave (row_stores.h).
template <class C, int N, class Stores>
__device__ __forceinline__ void
storeOutput(const Fragment<N> &out, SoftmaxRows &softmax, const BlockTerms<C> &terms,
            const LaneRows<C, true> &rows, int warpBegin, const Stores &stores) {
  const AttentionArgs<Bf16> &args = terms.args;
  float factor[2], logSumExp[2];
  finishRows(terms, softmax, factor, logSumExp);
  stores.template store<C::V>(out, outRows<C>(args).at(terms.first + warpBegin, terms.head * C::V),
                              terms.mask.length - warpBegin, factor);
  if constexpr (C::Softmax)
    if (fragmentColumn() == 0)
      for (int h = 0; h < 2; ++h)
        if (rows.position[h] < terms.mask.length)
          args.logSumExp[(terms.first + rows.position[h]) * args.heads + terms.head] = logSumExp[h];
}

/// Sizes of the tensor core kernels: heads as wide as whole steps of 16.
template <class C> struct MmaForward {
  static constexpr int kRows = 64, kColumns = 64;
  static constexpr int kOut = kernels::roundUp(C::V, 16);

  struct Shared {
    MmaTile<kRows, C::Qk> q;
    MmaTile<kColumns, C::Qk> k;
    MmaTile<kColumns, C::V> v;
    TileTerms<C, true, kRows, kColumns> tile;
    TimeTable times;
  };
};

template <class C>
__global__ void __launch_bounds__(kMmaThreads)
    attentionForwardMma(__grid_constant__ const AttentionArgs<Bf16> args, int tilesPerList) {
  using Shape = MmaForward<C>;
  constexpr int kColumns = Shape::kColumns;
  GENREC_DYNAMIC_SHARED(typename Shape::Shared, shared);
  const AttentionUnit<C, Shape::kRows> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const int thread = static_cast<int>(threadIdx.x), warpRow = warpOf() * 16,
            warpBegin = unit.begin + warpRow;
  const ListMask<C> &mask = unit.mask;
  const BlockTerms<C> terms(args, mask, unit.first, unit.head, shared->times);
  const LaneRows<C, true> rows(terms, warpBegin);
  if constexpr (C::TimeBias)
    BlockTerms<C>::fillTimes(shared->times, args, thread, kMmaThreads);

  const Bf16 *keys = args.k + unit.first * args.ldK + unit.head * C::Qk;
  const Bf16 *values = args.v + unit.first * args.ldV + unit.head * C::V;
  const SeenTiles<C, Over::keys, kColumns> tiles(mask, unit.range());
  int column = tiles.first();
  shared->q.copyFrom(args.q + (unit.first + unit.begin) * args.ldQ + unit.head * C::Qk, args.ldQ,
                     unit.rows(), thread, kMmaThreads);
  shared->k.copyFrom(keys + column * args.ldK, args.ldK, mask.length - column, thread, kMmaThreads);
  commitCopies();

  Fragment<Shape::kOut> out;
  out.clear();
  SoftmaxRows softmax;
  while (tiles.has(column)) {
    const int next = tiles.after(column);
    __syncthreads(); // nobody reads the last tile's values and terms any more
    shared->v.copyFrom(values + column * args.ldV, args.ldV, mask.length - column, thread,
                       kMmaThreads);
    commitCopies();
    if (warpOf() == 0)
      shared->tile.fill(terms, {}, static_cast<int>(unit.list), unit.begin, column);
    waitForCopies<1>();
    __syncthreads();
    Fragment<kColumns> scores;
    scores.clear();
    multiplyRows(scores, shared->q, warpRow, shared->k);
    __syncthreads(); // nor its keys
    if (tiles.has(next))
      shared->k.copyFrom(keys + next * args.ldK, args.ldK, mask.length - next, thread, kMmaThreads);
    commitCopies();

    const TimesAlong along = rows.timesAlong(terms, shared->tile);
    addBiases(scores, terms, rows, shared->tile, along, warpRow);
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    float rescale[2];
    forwardWeights<C>(scores, softmax, rescale);
    if constexpr (C::Softmax)
      forFragment<Shape::kOut>([&](int n, int i, int h, int) { out.d[n][i] *= rescale[h]; });
    if constexpr (C::Dropout) {
      uint32_t kept[1];
      keptElements<kColumns>(kept, terms, rows, column);
      dropWeights<C>(scores, kept);
    }
    waitForCopies<1>();
    __syncthreads();
    multiplyWeights(out, scores, shared->v);
    column = next;
  }

  storeOutput(out, softmax, terms, rows, warpBegin, DirectRows());
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_FORWARD_H
