//===- hopper_backward.h - Attention with TMA and wgmma, backward ---*- C++ -*-===//
//
// A block has 128 keys, each of two warpgroups 64 of them; one warp copies tiles of
// queries and of output gradients, two write what they bring along. As in mma_backward.h
// scores have keys as rows, so that weights and their gradients are left operands in registers;
// for dQ the gradients of scores of both warpgroups pass through shared memory. Parts of dQ, in
// fixed point, are added to device memory by bulk reductions, 16 rows by 64 columns of a warp at
// a time.
//
// Weights are computed from the scores while dOut . v runs, dQ is rounded and sent while dK's
// product runs. The warpgroups meet once per tile, when the gradients of its scores are written:
// the next tile's go to another buffer, where there is room for one.
//
// What hopper_forward.h says of rows behind the end of a list holds here as well.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H

#include "genrec_rt/kernels/cuda/attention/hopper_forward.h"
#include "genrec_rt/kernels/cuda/attention/mma_backward.h"

namespace genrec::rt::cuda {

template <class C, BackwardPart Part> struct HopperBackward {
  static constexpr bool kValues = Part != BackwardPart::keys, kKeys = Part != BackwardPart::values;
  static constexpr int kRows = 64 * kConsumers; ///< keys
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  static constexpr int kColumns = kWidest <= 64 ? 128 : 64; ///< queries
  static constexpr int kStages = kWidest > 128 && kKeys ? 1 : 2;
  using KeyTile = BulkTile<kRows, C::Qk>;
  using ValueTile = BulkTile<kRows, C::V>;
  using QueryTile = BulkTile<kColumns, C::Qk>;
  using OutTile = BulkTile<kColumns, C::V>;
  /// Of gradients of scores: where there are two, one is written while the other is read. Where
  /// there is one stage of queries, both warpgroups let it go before the next gradients come.
  static constexpr int kGradientTiles = kWidest <= 128 ? 2 : 1;
  static_assert(!kKeys || kGradientTiles == 2 || kStages == 1);
  /// Integers of dQ that a warp sends at a time. Where heads are widest they lie where dOut was,
  /// which nobody reads any more then.
  static constexpr int kSent = 16 * kPanelColumns;
  static constexpr bool kSentFromOut = KeyTile::kPadded + ValueTile::kPadded > 448;
  static_assert(!kSentFromOut || OutTile::kBytes >= kConsumers * 4 * kSent * 4);

  using Histogram = WarpHistogram<kWidest <= 128>;

  struct Empty {
    static constexpr int kBytes = 0;
  };
  struct Shared {
    KeyTile k;
    std::conditional_t<kKeys, ValueTile, Empty> v;
    QueryTile q[kStages];
    OutTile dOut[kStages];
    std::conditional_t<kKeys, BulkTile<kRows, kColumns>, Empty> gradients[kGradientTiles];
    alignas(128) int sent[kKeys && !kSentFromOut ? kConsumers * 4 * kSent : 4];
    TileTerms<C, false, kRows, kColumns> tile[kStages];
    TimeTable times;
    BiasQuantum quantum; ///< here, as registers are scarce
    Histogram histograms[C::TimeBias && kKeys ? kConsumers * 4 : 1];
    std::conditional_t<C::PositionBias && kKeys,
                       PositionSums<kConsumers * 4, kColumns, kGradientTiles>, Empty>
        positions;
    Barrier keysFull, queriesFull[kStages], empty[kStages];

    /// Where this warp's part of dQ of a stage is sent from.
    __device__ int *sentBy(int warp, int stage) {
      if constexpr (kSentFromOut)
        return reinterpret_cast<int *>(dOut[stage].values) + warp * kSent;
      else
        return sent + warp * kSent;
    }
  };
  static constexpr int64_t kSharedBytes = sizeof(Shared) + 1024;
  static_assert(kSharedBytes <= kMostSharedBytes);
};

/// What the kernel is told: maps of q, k, v and dOut.
struct HopperBackwardMaps {
  TensorMap q, k, v, dOut;
};

/// Copies the block's keys and values, and tiles of queries; called by one thread.
template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void produceBackward(Shared &shared, const HopperBackwardMaps &maps,
                                                const Unit &unit) {
  const SeenTiles<C, Over::queries, Shape::kColumns> tiles(unit.mask, unit.range());
  const int64_t row = unit.first + unit.begin;
  prefetchMap(maps.q);
  prefetchMap(maps.dOut);
  arriveExpecting(&shared.keysFull, Shape::KeyTile::kBytes + decltype(shared.v)::kBytes);
  copyTile(shared.k, maps.k, unit.head, row, &shared.keysFull);
  if constexpr (Shape::kKeys)
    copyTile(shared.v, maps.v, unit.head, row, &shared.keysFull);
  Ring<Shape::kStages> ring;
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    const int stage = ring.stage;
    Barrier *full = &shared.queriesFull[stage];
    waitForPhase(&shared.empty[stage], ring.parity ^ 1);
    arriveExpecting(full, Shape::QueryTile::kBytes + Shape::OutTile::kBytes);
    copyTile(shared.q[stage], maps.q, unit.head, unit.first + column, full);
    copyTile(shared.dOut[stage], maps.dOut, unit.head, unit.first + column, full);
  }
}

/// Writes what tiles of queries bring along, those of one stage; called by one warp.
template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void fillBackward(Shared &shared, const Unit &unit,
                                             const BlockTerms<C> &terms, const BackwardSpace &space,
                                             int stage) {
  const SeenTiles<C, Over::queries, Shape::kColumns> tiles(unit.mask, unit.range());
  Ring<Shape::kStages> ring;
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    if (ring.stage != stage)
      continue;
    waitForPhase(&shared.empty[stage], ring.parity ^ 1);
    shared.tile[stage].fill(terms, space, unit.begin, column);
    arrive(&shared.queriesFull[stage]);
  }
}

/// Writes a fragment of gradients, rounded, where startColumns reads it.
template <int N, int Rows>
__device__ __forceinline__ void storeGradients(const LeftOperand<N> &gradients,
                                               BulkTile<Rows, N> &to, int row) {
#pragma unroll
  for (int step = 0; step < N / 16; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *to.pair(row + fragmentRow() + i % 2 * 8, 16 * step + i / 2 * 8 + fragmentColumn()) =
          gradients.a[step][i];
}

/// A square of 64 queries by 64 columns of dQ of a tile; the warpgroups take turns at them.
template <class Shape> struct QuerySquare {
  static constexpr int kGroups = Shape::kColumns / 64, kSquares = kGroups * Shape::KeyTile::kPanels;
  int number;

  __device__ explicit QuerySquare(int turn) : number(turn + warpOf() / 4 - 1) {}
  /// A warpgroup for which none is left computes what it does not send, so that there is no branch
  /// around products.
  __device__ bool exists() const { return kSquares % kConsumers == 0 || number < kSquares; }
  __device__ int group() const { return number % kGroups; }
  __device__ int panel() const { return exists() ? number / kGroups : 0; }
  /// This warp's first row in the tile.
  __device__ int row() const { return 64 * group() + warpOf() % 4 * 16; }
};

/// Rounds a warp's part of a square of dQ and sends it to be added to the sums.
template <class C, class Shape>
__device__ __forceinline__ void
sendQueries(const Fragment<64> &dQ, int *staged, const float *inverseQuantum,
            const BlockTerms<C> &terms, const BackwardSpace &space,
            const QuerySquare<Shape> &square, int columnBegin, float factor) {
  const int row = square.row(), inside = terms.mask.length - columnBegin - row;
  const int64_t first = terms.first + columnBegin + row;
  waitForBulkReads(); // the last part has left
  __syncwarp();
  bool finite[2] = {true, true};
  float scale[2];
  for (int h = 0; h < 2; ++h)
    scale[h] = factor * inverseQuantum[row + fragmentRow() + 8 * h];
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int at = fragmentRow() + 8 * h;
      const QueryQuanta low = queryQuanta(dQ.d[n][2 * h], scale[h]),
                        high = queryQuanta(dQ.d[n][2 * h + 1], scale[h]);
      finite[h] = finite[h] && low.finite && high.finite;
      *reinterpret_cast<int2 *>(staged + at * kPanelColumns +
                                columnInPanel(first + at, 8 * n + fragmentColumn())) = {
          low.quanta, high.quanta};
    }
  for (int h = 0; h < 2; ++h)
    if (!finite[h] && fragmentRow() + 8 * h < inside)
      storeRelaxed(space.rowQuantum + terms.head * terms.args.rows + first + fragmentRow() + 8 * h,
                   __uint_as_float(kNaNBits));
  fenceAsyncProxy();
  __syncwarp();
  if (laneOf() == 0 && inside > 0)
    reduceBulk(space.querySums +
                   querySumAt<C>(terms.args, terms.head, first, kPanelColumns * square.panel()) /
                       64 * 64,
               staged, (inside < 16 ? inside : 16) * kPanelColumns * 4);
  commitBulk();
}

/// What a consumer of backward works with, and what it adds up.
template <class C, class Shape, class Shared> struct BackwardConsumer {
  static constexpr int kColumns = Shape::kColumns;
  /// Tiles of 128 queries and biases leave no registers for dots that are under way.
  static constexpr bool kAwaitsBoth = kColumns > 64 && (C::PositionBias || C::TimeBias);
  Shared &shared;
  const BackwardSpace &space;
  const BlockTerms<C> &terms;
  int thread = static_cast<int>(threadIdx.x) - kWarpgroup; ///< among consumers
  int warp = warpOf() - 4, groupRow = warp / 4 * 64, warpRow = warp * 16, warpBegin;
  LaneRows<C, false> rows;
  float factor;
  typename Shape::Histogram &histogram;
  int buffer = 0; ///< of gradients
  Fragment<Shape::kKeys ? Shape::KeyTile::kPadded : 8> dK;
  Fragment<Shape::kValues ? Shape::ValueTile::kPadded : 8> dV;

  __device__ __forceinline__ BackwardConsumer(Shared &shared, const BackwardSpace &space,
                                              const BlockTerms<C> &terms, int begin)
      : shared(shared), space(space), terms(terms), warpBegin(begin + warpRow),
        rows(terms, warpBegin), factor(gradientFactor(terms)),
        histogram(shared.histograms[C::TimeBias && Shape::kKeys ? warp : 0]) {
    if constexpr (C::TimeBias && Shape::kKeys)
      histogram.clear();
    if constexpr (C::PositionBias && Shape::kKeys)
      shared.positions.held[thread].clear();
    dK.clear();
    dV.clear();
  }

  /// Adds a tile of queries.
  __device__ __forceinline__ void add(int stage, int column) {
    Fragment<kColumns> scores, dots;
    keepInRegisters(scores);
    keepInRegisters(dots);
    startProducts();
    startRows(scores, shared.k, groupRow, shared.q[stage]);
    commitProducts();
    if constexpr (Shape::kKeys) {
      startRows(dots, shared.v, groupRow, shared.dOut[stage]);
      commitProducts();
      waitForProducts<kAwaitsBoth ? 0 : 1>();
      if constexpr (kAwaitsBoth)
        keepInRegisters(dots);
    } else {
      waitForProducts<0>();
    }
    keepInRegisters(scores);
    const TimesAlong along = rows.timesAlong(terms, shared.tile[stage]);
    addBiases(scores, terms, rows, shared.tile[stage], along, warpRow);
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    const Kept<C, kColumns> kept(terms, rows, column);
    LeftOperand<kColumns> weights;
    {
      Fragment<kColumns> values;
      backwardWeights<C>(scores, values, kept, shared.tile[stage]);
      weights.set(values);
    }
    // dV comes before dots are awaited: it takes the weights, which so are computed before.
    if constexpr (Shape::kValues) {
      keepInRegisters(dV);
      startProducts();
      startWeights(dV, weights, shared.dOut[stage]);
      commitProducts();
    }
    if constexpr (Shape::kKeys) {
      if constexpr (!kAwaitsBoth) {
        waitForProducts<Shape::kValues ? 1 : 0>();
        keepInRegisters(dots);
      }
      scoreGradients(scores, dots, kept, terms, shared.tile[stage]);
      addGradients(dots, weights, along, stage, column);
    }
    if constexpr (!Shape::kKeys) {
      waitForProducts<0>();
      keepInRegisters(weights);
    }
    keepInRegisters(dV);
    keepInRegisters(dK);
  }

  /// Adds what is still held of the position sums; behind the last tile.
  __device__ __forceinline__ void endPositions() {
    shared.positions.held[thread].flush(true, factor, shared.quantum, space.positionSums);
  }

private:
  /// Adds the gradients of a tile of scores to dK, dQ and those of the biases. `weights` may be
  /// multiplied meanwhile.
  __device__ __forceinline__ void addGradients(Fragment<kColumns> &dots,
                                               const LeftOperand<kColumns> &weights,
                                               const TimesAlong &along, int stage, int column) {
    // The time bias' gradients want registers: weights, which a product that runs reads, are let go
    // first.
    if constexpr (C::TimeBias) {
      waitForProducts<0>();
      keepInRegisters(dV);
      keepInRegisters(weights);
    }
    const RowTotals totals(dots);
    bool oneBias = true;
    if constexpr (C::PositionBias) {
      const int away = warpBegin - warpRow - column;
      oneBias = shared.tile[stage].hasOneBias(terms.args, away);
      if (oneBias)
        shared.positions.held[thread].add(true, positionBucket(terms.args, away),
                                          totals.sum[0] + totals.sum[1], factor, shared.quantum,
                                          space.positionSums);
      else
        shared.positions.write(buffer, warp, dots);
    }
    if constexpr (C::TimeBias)
      addTimeGradients(dots, totals, terms, rows, shared.tile[stage], along, factor, histogram);
    LeftOperand<kColumns> left;
    left.set(dots);
    auto &gradients = shared.gradients[buffer];
    storeGradients(left, gradients, warpRow);
    fenceAsyncProxy();
    syncConsumers(kGradientsWritten);
    QuerySquare<Shape> square(0);
    Fragment<64> dQ;
    keepInRegisters(dQ);
    keepInRegisters(dK);
    startProducts();
    startColumns<Shape::kRows>(dQ, gradients, square.group(), shared.k, square.panel());
    commitProducts();
    startWeights(dK, left, shared.q[stage]);
    commitProducts();
    if constexpr (C::PositionBias)
      if (!oneBias)
        shared.positions.addTile(buffer, thread, column - (warpBegin - warpRow), terms.args, factor,
                                 shared.quantum, space.positionSums);
    waitForProducts<1>();
    keepInRegisters(dQ);
    if constexpr (!C::TimeBias)
      keepInRegisters(weights);
    send(dQ, square, stage, column);
#pragma unroll
    for (int turn = kConsumers; turn < QuerySquare<Shape>::kSquares; turn += kConsumers) {
      square = QuerySquare<Shape>(turn);
      startProducts();
      startColumns<Shape::kRows>(dQ, gradients, square.group(), shared.k, square.panel());
      commitProducts();
      waitForProducts<0>();
      keepInRegisters(dQ);
      send(dQ, square, stage, column);
    }
    if constexpr (Shape::kGradientTiles > 1)
      buffer ^= 1;
    if constexpr (Shape::kSentFromOut)
      waitForBulkReads(); // before the stage is let go
    waitForProducts<0>();
    keepInRegisters(left);
  }

  __device__ __forceinline__ void send(const Fragment<64> &dQ, const QuerySquare<Shape> &square,
                                       int stage, int column) {
    if (square.exists())
      sendQueries<C>(dQ, shared.sentBy(warp, stage), shared.tile[stage].inverseQuantum, terms,
                     space, square, column, factor * terms.args.scale);
  }
};

template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void
consumeBackward(Shared &shared, const AttentionGradients<Bf16> &gradients,
                const BackwardSpace &space, const Unit &unit, const BlockTerms<C> &terms) {
  const SeenTiles<C, Over::queries, Shape::kColumns> tiles(unit.mask, unit.range());
  BackwardConsumer<C, Shape, Shared> consumer(shared, space, terms, unit.begin);
  Ring<Shape::kStages> ring;
  waitForPhase(&shared.keysFull, 0);
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    waitForPhase(&shared.queriesFull[ring.stage], ring.parity);
    consumer.add(ring.stage, column);
    release(&shared.empty[ring.stage]);
  }

  storeKeyGradients<C, Shape>(consumer.dK, consumer.dV, gradients, terms, consumer.warpBegin,
                              consumer.factor);
  if constexpr (C::PositionBias && Shape::kKeys)
    consumer.endPositions();
  if constexpr (C::TimeBias && Shape::kKeys) {
    syncConsumers(kHistogramsWritten);
    addHistograms<C, kConsumers * 4>(shared.histograms, terms, shared.quantum, space.timeSums,
                                     static_cast<int>(threadIdx.x) - kWarpgroup,
                                     kConsumers * kWarpgroup);
  }
  if constexpr (Shape::kKeys)
    waitForBulk();
}

template <class C, BackwardPart Part>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attentionBackwardHopper(__grid_constant__ const AttentionArgs<Bf16> args,
                            __grid_constant__ const AttentionGradients<Bf16> gradients,
                            __grid_constant__ const HopperBackwardMaps maps, BackwardSpace space,
                            TileList list, int pairBits) {
#if defined(GENREC_SIMT) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shape = HopperBackward<C, Part>;
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<typename Shape::Shared *>(alignedShared(memory));
  const AttentionUnit<C, Shape::kRows> unit(args, tileAt(list, static_cast<int>(blockIdx.x)));
  if (!unit.hasRows())
    return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    initBarrier(&shared.keysFull, 1);
    for (int s = 0; s < Shape::kStages; ++s) {
      initBarrier(&shared.queriesFull[s], 1 + kWarp);
      initBarrier(&shared.empty[s], kConsumers * 4 * kReleases);
    }
    fenceBarrierInit();
    if constexpr (Shape::kKeys && (C::PositionBias || C::TimeBias))
      shared.quantum = BiasQuantum(space.greatest, pairBits);
  }
  if constexpr (C::TimeBias)
    BlockTerms<C>::fillTimes(shared.times, args, thread, kHopperThreads);
  __syncthreads();
  const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, shared.times);
  auto produce = [&](int warp) {
    if (warp == 0 && laneOf() == 0)
      produceBackward<C, Shape>(shared, maps, unit);
    if (warp >= 1 && warp <= Shape::kStages)
      fillBackward<C, Shape>(shared, unit, terms, space, warp - 1);
  };
  takeRoles<C>(produce, [&] { consumeBackward<C, Shape>(shared, gradients, space, unit, terms); });
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H
