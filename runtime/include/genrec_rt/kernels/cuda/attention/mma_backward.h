//===- mma_backward.h - Attention with mma.sync, backward ----------*- C++ -*-===//
//
// A block has 64 keys, a warp 16 of them; tiles of queries pass by. Scores are
// computed with keys as rows, so that weights and their gradients are left operands
// of dV and dK as they stand in registers; for dQ the gradients of scores go through
// shared memory. Parts of dQ are added in fixed point (fixed_point.h).
//
// Where dK and dV together do not fit into registers (heads wider than 128), two
// launches compute one each.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_BACKWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_BACKWARD_H

#include "genrec_rt/kernels/cuda/attention/bias_gradient.h"
#include "genrec_rt/kernels/cuda/attention/mma_forward.h"

namespace genrec::rt::cuda {

/// What a backward launch computes. `keys` includes dQ and the biases.
enum class BackwardPart { all, values, keys };

/// Sums of bias gradients that a warp keeps between tiles.
template <class C> struct WarpSums {
  WarpHistogram<true> histograms[C::TimeBias ? 4 : 1];
};

template <class C, BackwardPart Part> struct MmaBackward {
  static constexpr bool kValues = Part != BackwardPart::keys, kKeys = Part != BackwardPart::values;
  static constexpr int kRows = 64; ///< keys
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  static constexpr int kColumns = kWidest <= 64 ? 64 : 32; ///< queries
  static constexpr int kQk = kernels::roundUp(C::Qk, 16), kV = kernels::roundUp(C::V, 16);

  struct Shared {
    MmaTile<kRows, C::Qk> k;
    MmaTile<kRows, C::V> v;
    MmaTile<kColumns, C::Qk> q;
    MmaTile<kColumns, C::V> dOut;
    MmaTile<kRows, kColumns> gradients;
    TileTerms<C, false, kRows, kColumns> tile;
    TimeTable times;
    WarpSums<C> sums;
  };
};

/// A lane's values of a row of dQ in quanta; `scale` is the inverse of one times their factor.
template <class C> struct QueryQuanta {
  float scale;
  float zeros = 0; ///< the sum of values times 0: NaN where one is not finite
  NearestIntegers nearest = {};

  __device__ __forceinline__ int of(float value) {
    if constexpr (kShortQuanta<C>)
      return nearest.of(value, scale);
    const float scaled = value * scale;
    zeros = __fmaf_rn(scaled, 0.0f, zeros);
    return __float2int_rn(scaled);
  }
  __device__ __forceinline__ bool finite() const {
    return kShortQuanta<C> ? nearest.finite() : zeros == 0;
  }
};

/// Adds 16 rows of dQ times `factor`, in quanta, to the sums of rows from `first` on, of which
/// `inside` exist; `inverse` are the inverses of their quanta.
template <class C, int N>
__device__ __forceinline__ void
addQueryGradients(const Fragment<N> &d, const BlockTerms<C> &terms, const BackwardSpace &space,
                  int64_t first, const float *inverse, int inside, int columnBegin, float factor) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = fragmentRow() + 8 * h;
    if (row >= inside)
      continue;
    QueryQuanta<C> quanta{factor * inverse[row]};
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const int column = columnBegin + 8 * n + fragmentColumn() + x;
        const int value = quanta.of(d.d[n][2 * h + x]);
        if (column < C::Qk)
          atomicAdd(space.querySums + querySumAt<C>(terms.args, terms.head, first + row, column),
                    value);
      }
    if (!quanta.finite())
      storeRelaxed(space.rowNorm + terms.head * terms.args.rows + first + row,
                   __uint_as_float(kNaNBits));
  }
}

/// dQ of a tile of queries: gradients^T times keys, by all warps of the block.
template <class C, class Shape>
__device__ __forceinline__ void
multiplyQueries(const typename Shape::Shared &shared, const BlockTerms<C> &terms,
                const BackwardSpace &space, int columnBegin, float factor) {
  constexpr int kGroups = Shape::kColumns / 16;         // of 16 queries
  constexpr int kParts = kMmaThreads / kWarp / kGroups; // of columns
  constexpr int kWidth = kernels::roundUp(Shape::kQk / 16, kParts) / kParts * 16;
  constexpr int kChunk = kWidth < 64 ? kWidth : 64; // columns that are computed at once
  const int group = warpOf() % kGroups, end = (warpOf() / kGroups + 1) * kWidth;
  const int64_t row = terms.first + columnBegin + 16 * group;
#pragma unroll 1
  for (int column = end - kWidth; column < end && column < Shape::kQk; column += kChunk) {
    Fragment<kChunk> dQ;
    dQ.clear();
#pragma unroll
    for (int step = 0; step < Shape::kRows / 16; ++step) {
      uint32_t a[4];
      shared.gradients.loadLeftTransposed(a, 16 * step, group);
#pragma unroll
      for (int n = 0; n < kChunk / 16; ++n)
        if (column + 16 * n < Shape::kQk && column + 16 * n < end) {
          uint32_t b[4];
          shared.k.loadRight(b, 16 * step, column / 16 + n);
          multiplyAdd(dQ.d[2 * n], a, b[0], b[1]);
          multiplyAdd(dQ.d[2 * n + 1], a, b[2], b[3]);
        }
    }
    addQueryGradients(dQ, terms, space, row, shared.tile.inverseQuantum + 16 * group,
                      terms.mask.length - columnBegin - 16 * group, column, factor);
  }
}

/// Writes a fragment of gradients, rounded, where multiplyQueries reads it.
template <int N, int Rows>
__device__ __forceinline__ void storeGradients(const Fragment<N> &gradients, MmaTile<Rows, N> &to,
                                               int row) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      *reinterpret_cast<uint32_t *>(to.chunk(row + fragmentRow() + 8 * h, n) + fragmentColumn()) =
          packBf16(gradients.d[n][2 * h], gradients.d[n][2 * h + 1]);
}

/// Adds the warps' histograms up, in order, into the sums of all blocks.
template <class C, int Warps, class Histogram>
__device__ __forceinline__ void
addHistograms(const Histogram *histograms, const BlockTerms<C> &terms, const BiasQuantum &quantum,
              Word *sums, int thread, int threads) {
  for (int b = thread; b < terms.bucketCount(terms.args); b += threads) {
    float sum = 0;
    for (int w = 0; w < Warps; ++w)
      sum += histograms[w].sum[b];
    if (sum != 0)
      quantum.add(sums, b, sum);
  }
}

/// The end of backward: a warp's rows of dK and dV, as far as `Shape` has them. `Stores`: how rows
/// leave (row_stores.h).
template <class C, class Shape, int K, int V, class Stores>
__device__ __forceinline__ void storeKeyGradients(const Fragment<K> &dK, const Fragment<V> &dV,
                                                  const AttentionGradients<Bf16> &gradients,
                                                  const BlockTerms<C> &terms, int warpBegin,
                                                  float factor, const Stores &stores) {
  const float scaled = factor * terms.args.scale, keyFactor[2] = {scaled, scaled};
  const float each = C::Softmax ? keptFactor<C>(terms.args) : factor, valueFactor[2] = {each, each};
  const int64_t row = terms.first + warpBegin;
  const int inside = terms.mask.length - warpBegin;
  if constexpr (Shape::kKeys)
    stores.template store<C::Qk>(dK, keyRows<C>(gradients).at(row, terms.head * C::Qk), inside,
                                 keyFactor);
  if constexpr (Shape::kValues)
    stores.template store<C::V>(dV, valueRows<C>(gradients).at(row, terms.head * C::V), inside,
                                valueFactor);
}

template <class C, BackwardPart Part>
__global__ void __launch_bounds__(kMmaThreads)
    attentionBackwardMma(__grid_constant__ const AttentionArgs<Bf16> args,
                         __grid_constant__ const AttentionGradients<Bf16> gradients,
                         BackwardSpace space, int tilesPerList, int pairBits) {
  using Shape = MmaBackward<C, Part>;
  constexpr int kColumns = Shape::kColumns;
  GENREC_DYNAMIC_SHARED(typename Shape::Shared, shared);
  const AttentionUnit<C, Shape::kRows> unit(args, blockIdx.x, tilesPerList, false);
  if (!unit.hasRows())
    return;
  const int thread = static_cast<int>(threadIdx.x), warpRow = warpOf() * 16,
            warpBegin = unit.begin + warpRow;
  const ListMask<C> &mask = unit.mask;
  const BlockTerms<C> terms(args, mask, unit.first, unit.head, shared->times);
  const LaneRows<C, false> rows(terms, warpBegin);
  const BiasQuantum quantum(space.greatest, pairBits);
  const float factor = gradientFactor(terms);
  WarpHistogram<true> &histogram = shared->sums.histograms[C::TimeBias ? warpOf() : 0];
  if constexpr (C::TimeBias) {
    BlockTerms<C>::fillTimes(shared->times, args, thread, kMmaThreads);
    histogram.clear();
  }
  const int64_t first = unit.first + unit.begin;
  shared->k.copyFrom(args.k + first * args.ldK + unit.head * C::Qk, args.ldK, unit.rows(), thread,
                     kMmaThreads);
  shared->v.copyFrom(args.v + first * args.ldV + unit.head * C::V, args.ldV, unit.rows(), thread,
                     kMmaThreads);

  Fragment<Shape::kKeys ? Shape::kQk : 16> dK;
  Fragment<Shape::kValues ? Shape::kV : 16> dV;
  dK.clear();
  dV.clear();
  const SeenTiles<C, Over::queries, kColumns> tiles(mask, unit.range());
  for (int column = tiles.first(); tiles.has(column); column = tiles.after(column)) {
    __syncthreads(); // nobody reads the last tile any more
    const int64_t query = unit.first + column;
    shared->q.copyFrom(args.q + query * args.ldQ + unit.head * C::Qk, args.ldQ,
                       mask.length - column, thread, kMmaThreads);
    shared->dOut.copyFrom(gradients.dOut + query * gradients.ldDOut + unit.head * C::V,
                          gradients.ldDOut, mask.length - column, thread, kMmaThreads);
    commitCopies();
    if (warpOf() == 0)
      shared->tile.fill(terms, space, static_cast<int>(unit.list), unit.begin, column);
    waitForCopies<0>();
    __syncthreads();

    Fragment<kColumns> scores, dots;
    scores.clear();
    dots.clear();
    multiplyRows(scores, shared->k, warpRow, shared->q);
    multiplyRows(dots, shared->v, warpRow, shared->dOut);
    const TimesAlong along = rows.timesAlong(terms, shared->tile);
    addBiases(scores, terms, rows, shared->tile, along, warpRow);
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    const Kept<C, kColumns> kept(terms, rows, column);
    Fragment<kColumns> weights;
    backwardWeights<C>(scores, weights, kept, shared->tile);
    scoreGradients(scores, dots, kept, terms, shared->tile);
    if constexpr (Shape::kValues)
      multiplyWeights(dV, weights, shared->dOut);
    if constexpr (Shape::kKeys) {
      const RowTotals totals(dots);
      if constexpr (C::PositionBias)
        addPositionGradients(dots, totals, terms, warpBegin, column, factor, quantum,
                             space.positionSums);
      if constexpr (C::TimeBias)
        addTimeGradients(dots, totals, terms, rows, shared->tile, along, factor, histogram);
      storeGradients(dots, shared->gradients, warpRow);
      multiplyWeights(dK, dots, shared->q);
      __syncthreads();
      multiplyQueries<C, Shape>(*shared, terms, space, column, factor * args.scale);
    }
  }

  storeKeyGradients<C, Shape>(dK, dV, gradients, terms, warpBegin, factor, DirectRows());
  if constexpr (C::TimeBias && Shape::kKeys) {
    __syncthreads();
    addHistograms<C, kMmaThreads / kWarp>(shared->sums.histograms, terms, quantum, space.timeSums,
                                          thread, kMmaThreads);
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_MMA_BACKWARD_H
