//===- hopper_backward.h - Attention with TMA and wgmma, backward ---*- C++ -*-===//
//
// As many blocks as multiprocessors take tiles of 128 keys (tile_list.h), each of two warpgroups 64
// of them; one warp copies tiles of queries and of output gradients, two write what they bring
// along. While results of a tile of keys are stored, the next one's first copies are under way. As
// in mma_backward.h scores have keys as rows, so that weights and their gradients are left operands
// in registers; for dQ the gradients of scores of both warpgroups pass through shared memory. Parts
// of dQ, in fixed point, are added to device memory by bulk reductions, 16 rows by 64 columns of a
// warp at a time. Where there are position biases one more warp adds up their gradients.
//
// Weights are computed from the scores while dOut . v runs, dQ is rounded and sent while dK's
// product runs, and behind it that of the next tile's scores. The warpgroups meet once per tile,
// when the gradients of its scores are written: the next tile's go to another buffer, where there
// is room for one.
//
// What hopper_forward.h says of rows behind the end of a list holds here as well.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H

#include "genrec_rt/kernels/cuda/attention/hopper_backward_tiles.h"

namespace genrec::rt::cuda {

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
  int number, warp; ///< `warp`: among consumers

  __device__ QuerySquare(int turn, int warp) : number(turn + warp / 4), warp(warp) {}
  /// A warpgroup for which none is left computes what it does not send, so that there is no branch
  /// around products.
  __device__ bool exists() const { return kSquares % kConsumers == 0 || number < kSquares; }
  __device__ int group() const { return number % kGroups; }
  __device__ int panel() const { return exists() ? number / kGroups : 0; }
  /// This warp's first row in the tile.
  __device__ int row() const { return 64 * group() + warp % 4 * 16; }
};

/// Rounds a warp's part of a square of dQ into `staged`, for sendQueries.
template <class C, class Shape, class Between>
__device__ __forceinline__ void
stageQueries(const Fragment<64> &dQ, int *staged, const float *inverseQuantum,
             const BlockTerms<C> &terms, const BackwardSpace &space,
             const QuerySquare<Shape> &square, int columnBegin, float factor, Between between) {
  const int row = square.row(), inside = terms.mask.length - columnBegin - row;
  const int64_t first = terms.first + columnBegin + row;
  waitForBulkReads(); // the last part has left
  __syncwarp();
  QueryQuanta<C> quanta[2];
  for (int h = 0; h < 2; ++h)
    quanta[h].scale = factor * inverseQuantum[row + fragmentRow() + 8 * h];
  // Columns in a panel go by the row modulo 8, the same of a lane's two rows; 8 n changes bits of
  // its place that are its own.
  const int place =
      fragmentRow() * kPanelColumns + columnInPanel(first + fragmentRow(), fragmentColumn());
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    if (n == 4)
      between();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int low = quanta[h].of(dQ.d[n][2 * h]), high = quanta[h].of(dQ.d[n][2 * h + 1]);
      *reinterpret_cast<int2 *>(staged + (place ^ 8 * n) + 8 * h * kPanelColumns) = {low, high};
    }
  }
  for (int h = 0; h < 2; ++h)
    if (!quanta[h].finite() && fragmentRow() + 8 * h < inside)
      storeRelaxed(space.rowNorm + terms.head * terms.args.rows + first + fragmentRow() + 8 * h,
                   __uint_as_float(kNaNBits));
}

/// Sends what stageQueries has written, to be added to the sums.
template <class C, class Shape>
__device__ __forceinline__ void sendQueries(const int *staged, const BlockTerms<C> &terms,
                                            const BackwardSpace &space,
                                            const QuerySquare<Shape> &square, int columnBegin) {
  const int row = square.row(), inside = terms.mask.length - columnBegin - row;
  const int64_t first = terms.first + columnBegin + row;
  fenceAsyncProxy();
  __syncwarp();
  if (laneOf() == 0 && inside > 0)
    reduceBulk(space.querySums +
                   querySumAt<C>(terms.args, terms.head, first, kPanelColumns * square.panel()) /
                       64 * 64,
               staged, (inside < 16 ? inside : 16) * kPanelColumns * 4);
  commitBulk();
}

/// What a consumer of backward keeps from tile to tile of keys.
template <class Shape> struct BackwardState {
  Ring<Shape::kStages> queries;
  Ring<Shape::kPositionBuffers> positions;
  int buffer = 0; ///< of gradients
  int parity = 0; ///< of the keys' barriers
};

/// What a consumer of backward works with, and what it adds up: a tile of keys of a warpgroup.
template <class C, class Shape, class Shared> struct BackwardConsumer {
  static constexpr int kColumns = Shape::kColumns;
  /// Tiles of 128 queries and biases leave no registers for dots that are under way.
  static constexpr bool kAwaitsBoth = kColumns > 64 && (C::PositionBias || C::TimeBias);
  /// Scores of the next tile are started behind this tile's products, where registers have room.
  static constexpr bool kEarlyScores =
      kColumns == 64 && Shape::kKeys && Shape::kValues && Shape::kStages == 2 && !C::TimeBias;
  static_assert(!kEarlyScores || QuerySquare<Shape>::kSquares <= kConsumers);
  /// Position gradients are summed while dQ's product runs, where registers have room.
  static constexpr bool kLatePositions = kEarlyScores && C::PositionBias;
  static constexpr int kNone = -1;
  using Stages = Ring<Shape::kStages>;
  Shared &shared;
  BackwardState<Shape> &state;
  const BackwardSpace &space;
  const BlockTerms<C> &terms;
  int thread = static_cast<int>(threadIdx.x) - kWarpgroup; ///< among consumers
  int warp = sameInWarp(warpOf()) - 4, groupRow = warp / 4 * 64, warpRow = warp * 16, warpBegin;
  LaneRows<C, false> rows;
  float factor;
  typename Shape::Histogram &histogram;
  int &buffer = state.buffer;
  Fragment<kColumns> early; ///< scores of the next tile
  int staged = kNone;       ///< kEarlyScores: the tile whose dQ is still to be sent
  Fragment<Shape::kKeys ? Shape::KeyTile::kPadded : 8> dK;
  Fragment<Shape::kValues ? Shape::ValueTile::kPadded : 8> dV;

  __device__ __forceinline__ BackwardConsumer(Shared &shared, BackwardState<Shape> &state,
                                              const BackwardSpace &space,
                                              const BlockTerms<C> &terms, int begin)
      : shared(shared), state(state), space(space), terms(terms), warpBegin(begin + warpRow),
        rows(terms, warpBegin), factor(gradientFactor(terms)),
        histogram(shared.histograms[C::TimeBias && Shape::kKeys ? warp : 0]) {
    if constexpr (C::TimeBias && Shape::kKeys)
      histogram.clear();
    dK.clear();
    dV.clear();
  }

  /// Adds the tiles of queries that see the keys. Every key is seen by its own query, so there is a
  /// first one.
  __device__ __forceinline__ void run(const typename Shape::Tiles &tiles) {
    waitForPhase(&shared.keys.full, state.parity);
    int column = tiles.first();
    if constexpr (kEarlyScores) {
      startScores(early, state.queries);
      waitForProducts<0>();
      keepInRegisters(early);
    }
    while (tiles.has(column)) {
      const int after = tiles.after(column);
      Stages next = state.queries;
      if (tiles.has(after))
        next.advance();
      add(state.queries, next, column);
      release(&shared.queries[state.queries.stage].empty);
      state.queries.advance();
      column = after;
    }
    sendStaged();
    release(&shared.keys.empty);
    state.parity ^= 1;
  }

  /// Stores dK and dV, where there is room through what the last part of dQ was sent from.
  __device__ __forceinline__ void store(const AttentionGradients<Bf16> &gradients) const {
    if constexpr (Shape::kStagesRows) {
      waitForBulkReads(); // the last part has left
      const typename Shape::Stores stores{shared.sentBy(warp, 0)};
      storeKeyGradients<C, Shape>(dK, dV, gradients, terms, warpBegin, factor, stores);
    } else {
      storeKeyGradients<C, Shape>(dK, dV, gradients, terms, warpBegin, factor, DirectRows());
    }
  }

  /// Adds what is still held of tiles with one position bias; behind the last tile.
  __device__ __forceinline__ void endPositions() {
    HeldBias &far = shared.positions.far[warp];
    if (laneOf() == 0) {
      far.flush(factor, shared.quantum, space.positionSums);
      far.clear();
    }
  }

private:
  /// Waits for a tile of queries and starts its scores.
  __device__ __forceinline__ void startScores(Fragment<kColumns> &to, const Stages &at) {
    waitForPhase(&shared.queries[at.stage].full, at.parity);
    keepInRegisters(to);
    startProducts();
    startRows(to, shared.k, groupRow, shared.q[at.stage]);
    commitProducts();
  }

  /// Adds a tile of queries. kEarlyScores: its scores are there, and those of `next`
  /// will be. Behind the last tile that is the same tile once more, whose scores nobody reads: no
  /// branch may stand around products.
  __device__ __forceinline__ void add(const Stages &at, const Stages &next, int column) {
    const int stage = at.stage;
    Fragment<kColumns> scores, dots;
    if constexpr (kEarlyScores)
      scores = early;
    else
      startScores(scores, at);
    keepInRegisters(dots);
    startProducts();
    if constexpr (Shape::kKeys) {
      startRows(dots, shared.v, groupRow, shared.dOut[stage]);
      commitProducts();
      sendStaged();
      if constexpr (!kEarlyScores)
        waitForProducts<kAwaitsBoth ? 0 : 1>();
      if constexpr (kAwaitsBoth)
        keepInRegisters(dots);
    } else {
      waitForProducts<0>();
    }
    if constexpr (!kEarlyScores)
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
      addGradients(dots, weights, along, stage, next, column);
    }
    if constexpr (!Shape::kKeys) {
      waitForProducts<0>();
      keepInRegisters(weights);
    }
    keepInRegisters(dV);
    keepInRegisters(dK);
  }

  /// Adds the gradients of a tile of scores to dK, dQ and those of the biases. `weights` may be
  /// multiplied meanwhile.
  __device__ __forceinline__ void addGradients(Fragment<kColumns> &dots,
                                               const LeftOperand<kColumns> &weights,
                                               const TimesAlong &along, int stage,
                                               const Stages &next, int column) {
    // The time bias' gradients want registers: weights, which a product that runs reads, are let go
    // first.
    if constexpr (C::TimeBias) {
      waitForProducts<0>();
      keepInRegisters(dV);
      keepInRegisters(weights);
    }
    const RowTotals totals(dots);
    if constexpr (Shape::kPositions && !kLatePositions)
      addPositionGradients(dots, totals, stage, column);
    if constexpr (C::TimeBias)
      addTimeGradients(dots, totals, terms, rows, shared.tile[stage], along, factor, histogram);
    LeftOperand<kColumns> left;
    left.set(dots);
    auto &gradients = shared.gradients[buffer];
    storeGradients(left, gradients, warpRow);
    fenceAsyncProxy();
    syncConsumers(kGradientsWritten);
    const QuerySquare<Shape> square(0, warp);
    Fragment<64> dQ;
    keepInRegisters(dQ);
    keepInRegisters(dK);
    startProducts();
    startColumns<Shape::kRows>(dQ, gradients, square.group(), shared.k, square.panel());
    commitProducts();
    startWeights(dK, left, shared.q[stage]);
    commitProducts();
    if constexpr (kLatePositions)
      addPositionGradients(dots, totals, stage, column);
    waitForProducts<1>();
    keepInRegisters(dQ);
    if constexpr (!C::TimeBias)
      keepInRegisters(weights);
    Fragment<kColumns> nextScores;
    send(dQ, square, stage, column, [&] {
      if constexpr (kEarlyScores)
        startScores(nextScores, next);
    });
    sendFurther(dQ, gradients, stage, column);
    if constexpr (Shape::kGradientTiles > 1)
      buffer ^= 1;
    if constexpr (Shape::kSentFromOut)
      waitForBulkReads(); // before the stage is let go
    waitForProducts<0>();
    keepInRegisters(left);
    if constexpr (kEarlyScores) {
      keepInRegisters(nextScores);
      early = nextScores;
    }
  }

  /// The squares of dQ behind those of the first turn.
  template <class Gradients>
  __device__ __forceinline__ void sendFurther(Fragment<64> &dQ, const Gradients &gradients,
                                              int stage, int column) {
#pragma unroll
    for (int turn = kConsumers; turn < QuerySquare<Shape>::kSquares; turn += kConsumers) {
      const QuerySquare<Shape> square(turn, warp);
      startProducts();
      startColumns<Shape::kRows>(dQ, gradients, square.group(), shared.k, square.panel());
      commitProducts();
      waitForProducts<0>();
      keepInRegisters(dQ);
      send(dQ, square, stage, column, [] {});
    }
  }

  /// Adds a tile's gradients of position biases, or writes them for the warp that does.
  __device__ __forceinline__ void addPositionGradients(const Fragment<kColumns> &dots,
                                                       const RowTotals &totals, int stage,
                                                       int column) {
    const int away = warpBegin - warpRow - column;
    if (shared.tile[stage].hasOneBias(terms.args, away)) {
      const float total = sumOfLanes(totals.sum[0] + totals.sum[1]);
      if (laneOf() == 0)
        shared.positions.far[warp].add(positionBucket(terms.args, away), total, factor,
                                       shared.quantum, space.positionSums);
      return;
    }
    Turns &turns = shared.written[state.positions.stage];
    waitForPhase(&turns.empty, state.positions.parity ^ 1);
    shared.positions.write(state.positions.stage, warp, dots);
    release(&turns.full);
    state.positions.advance();
  }

  /// Sends a square of dQ; where scores are started early when the next tile's products run, as the
  /// fence waits for all that was written.
  template <class Between>
  __device__ __forceinline__ void send(const Fragment<64> &dQ, const QuerySquare<Shape> &square,
                                       int stage, int column, Between between) {
    if (!square.exists())
      return;
    int *to = shared.sentBy(warp, stage);
    stageQueries<C>(dQ, to, shared.tile[stage].inverseQuantum, terms, space, square, column,
                    factor * terms.args.scale, between);
    if constexpr (kEarlyScores)
      staged = column;
    else
      sendQueries<C>(to, terms, space, square, column);
  }
  __device__ __forceinline__ void sendStaged() {
    if (staged != kNone)
      sendQueries<C>(shared.sentBy(warp, 0), terms, space, QuerySquare<Shape>(0, warp), staged);
  }
};

/// Computes what belongs to a tile of keys.
template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void consumeBackward(Shared &shared, BackwardState<Shape> &state,
                                                const AttentionGradients<Bf16> &gradients,
                                                const BackwardSpace &space, const Unit &unit,
                                                const BlockTerms<C> &terms) {
  BackwardConsumer<C, Shape, Shared> consumer(shared, state, space, terms, unit.begin);
  consumer.run(typename Shape::Tiles(unit.mask, unit.range()));
  consumer.store(gradients);
  if constexpr (Shape::kPositions)
    consumer.endPositions();
  if constexpr (C::TimeBias && Shape::kKeys) {
    syncConsumers(kHistogramsWritten);
    addHistograms<C, kConsumerWarps>(shared.histograms, terms, shared.quantum, space.timeSums,
                                     consumer.thread, kConsumers * kWarpgroup);
    syncConsumers(kHistogramsWritten); // nobody clears what others read
  }
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
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    Shape::initBarriers(shared);
    if constexpr (Shape::kKeys && (C::PositionBias || C::TimeBias))
      shared.quantum = BiasQuantum(space.greatest, pairBits);
  }
  if constexpr (C::TimeBias)
    BlockTerms<C>::fillTimes(shared.times, args, thread, kHopperThreads);
  if constexpr (Shape::kPositions)
    shared.positions.clear(thread, kHopperThreads);
  __syncthreads();
  auto produce = [&](int warp) {
    if (warp == 0 && laneOf() == 0)
      produceBackward<C, Shape>(shared, maps, args, list);
    if (warp >= 1 && warp <= Shape::kStages)
      fillTerms<C, Shape>(shared, shared.queries[warp - 1], args, space, warp - 1);
    if constexpr (Shape::kPositions)
      if (warp == Shape::kPositionWarp)
        sumPositions<C, Shape>(shared, args, space);
  };
  auto consume = [&] {
    BackwardState<Shape> state;
    forUnits<Shape>(shared, [&](const typename Shape::Unit &unit) {
      const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, shared.times);
      consumeBackward<C, Shape>(shared, state, gradients, space, unit, terms);
    });
    if constexpr (Shape::kKeys)
      waitForBulk();
  };
  takeRoles<MostForConsumers>(produce, consume);
#else
  __trap(); // code for 90, not 90a, or for another device: an error, not results of nothing
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H
