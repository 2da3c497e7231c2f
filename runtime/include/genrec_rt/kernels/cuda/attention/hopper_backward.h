//===- hopper_backward.h - Attention with TMA and wgmma, backward ---*- C++ -*-===//
//
// A block has 128 keys, each of two warpgroups 64 of them; one warp copies tiles of
// queries and of output gradients. As in mma_backward.h scores have keys as rows, so that
// weights and their gradients are left operands in registers; for dQ the gradients of
// scores pass through shared memory, and parts of dQ, in fixed point, are added to
// device memory row by row by bulk reductions where they fit, else by atomics.
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
  static constexpr bool kBulkQueries = kWidest <= 128 && kKeys;
  using KeyTile = BulkTile<kRows, C::Qk>;
  using ValueTile = BulkTile<kRows, C::V>;
  using QueryTile = BulkTile<kColumns, C::Qk>;
  using OutTile = BulkTile<kColumns, C::V>;
  /// Integers from row to row of staged dQ: rows start on different banks.
  static constexpr int kStagedRow = C::Qk + 8;

  struct Empty {
    static constexpr int kBytes = 0;
  };
  struct Shared {
    KeyTile k;
    std::conditional_t<kKeys, ValueTile, Empty> v;
    QueryTile q[kStages];
    OutTile dOut[kStages];
    std::conditional_t<kKeys, BulkTile<kRows, kColumns>, Empty> gradients;
    alignas(16) int dQ[kBulkQueries ? kColumns * kStagedRow : 4];
    TileTerms<C, false, kRows, kColumns> tile[kStages];
    TimeBuckets buckets;
    WarpHistogram histograms[C::TimeBias && kKeys ? kConsumers * 4 : 1];
    Barrier keysFull, queriesFull[kStages], empty[kStages];
  };
  static constexpr int64_t kSharedBytes = sizeof(Shared) + 1024;
};

/// What the kernel is told: maps of q, k, v and dOut.
struct HopperBackwardMaps {
  TensorMap q, k, v, dOut;
};

template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void produceBackward(Shared &shared, const HopperBackwardMaps &maps,
                                                const Unit &unit, const BlockTerms<C> &terms,
                                                const BackwardSpace &space) {
  const SeenTiles<C, Over::queries, Shape::kColumns> tiles(unit.mask, unit.range());
  const bool leads = laneOf() == 0;
  const int64_t row = unit.first + unit.begin;
  if (leads) {
    prefetchMap(maps.q);
    prefetchMap(maps.dOut);
    arriveExpecting(&shared.keysFull, Shape::KeyTile::kBytes + decltype(shared.v)::kBytes);
    copyTile(shared.k, maps.k, unit.head, row, &shared.keysFull);
    if constexpr (Shape::kKeys)
      copyTile(shared.v, maps.v, unit.head, row, &shared.keysFull);
  }
  Ring<Shape::kStages> ring;
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    const int stage = ring.stage;
    waitForPhase(&shared.empty[stage], ring.parity ^ 1);
    if (leads) {
      arriveExpecting(&shared.queriesFull[stage],
                      Shape::QueryTile::kBytes + Shape::OutTile::kBytes);
      copyTile(shared.q[stage], maps.q, unit.head, unit.first + column, &shared.queriesFull[stage]);
      copyTile(shared.dOut[stage], maps.dOut, unit.head, unit.first + column,
               &shared.queriesFull[stage]);
    }
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

/// dQ of a tile of queries, squares of 64 by 64 by turns of the warpgroups.
template <class C, class Shape, class Shared>
__device__ __forceinline__ void multiplyQueries(Shared &shared, const BlockTerms<C> &terms,
                                                const BackwardSpace &space, int stage,
                                                int columnBegin, float factor) {
  constexpr int kGroups = Shape::kColumns / 64, kSquares = kGroups * Shape::KeyTile::kPanels;
  const int warpgroup = warpOf() / 4 - 1, warpRow = warpOf() % 4 * 16;
  const int64_t first = terms.head * terms.args.rows + terms.first + columnBegin;
#pragma unroll
  for (int turn = 0; turn < kSquares; turn += kConsumers) {
    const int square = turn + warpgroup, group = square % kGroups, panel = square / kGroups;
    if (square >= kSquares)
      break;
    Fragment<64> dQ;
    keepInRegisters(dQ);
    startProducts();
    startColumns<Shape::kRows>(dQ, shared.gradients, group, shared.k, panel);
    commitProducts();
    waitForProducts<0>();
    keepInRegisters(dQ);
    const int row = 64 * group + warpRow; // in the tile
    const int inside = terms.mask.length - columnBegin - row;
    const float *inverse = shared.tile[stage].inverseQuantum + row;
    if constexpr (Shape::kBulkQueries) {
      bool finite = true;
      forFragment<64>([&](int n, int i, int h, int column) {
        const int at = fragmentRow() + 8 * h;
        const QueryQuanta value = queryQuanta(dQ.d[n][i], factor * inverse[at]);
        finite = finite && (value.finite || at >= inside);
        if (64 * panel + column < C::Qk)
          shared.dQ[(row + at) * Shape::kStagedRow + 64 * panel + column] = value.quanta;
      });
      for (int h = 0; h < 2; ++h)
        if (!finite && fragmentRow() + 8 * h < inside)
          storeRelaxed(space.rowQuantum + first + row + fragmentRow() + 8 * h,
                       __uint_as_float(kNaNBits));
    } else {
      addQueryGradients<C::Qk>(dQ, space.querySums + (first + row) * C::Qk,
                               space.rowQuantum + first + row, inverse, inside, 64 * panel, factor);
    }
  }
}

/// Sends the staged rows of dQ on their way, a row per thread.
template <class C, class Shape, class Shared>
__device__ __forceinline__ void sendQueries(const Shared &shared, const BlockTerms<C> &terms,
                                            const BackwardSpace &space, int columnBegin,
                                            int consumer) {
  if (consumer < Shape::kColumns && columnBegin + consumer < terms.mask.length) {
    const int64_t row = terms.head * terms.args.rows + terms.first + columnBegin + consumer;
    reduceBulk(space.querySums + row * C::Qk, shared.dQ + consumer * Shape::kStagedRow, C::Qk * 4);
  }
  commitBulk();
}

template <class C, class Shape, class Shared, class Unit>
__device__ __forceinline__ void consumeBackward(Shared &shared,
                                                const AttentionGradients<Bf16> &gradients,
                                                const BackwardSpace &space, const Unit &unit,
                                                const BlockTerms<C> &terms, int pairBits) {
  constexpr int kColumns = Shape::kColumns;
  const SeenTiles<C, Over::queries, kColumns> tiles(unit.mask, unit.range());
  const int consumer = static_cast<int>(threadIdx.x) - kWarpgroup, warp = consumer / kWarp;
  const int groupRow = warp / 4 * 64, warpRow = warp * 16, warpBegin = unit.begin + warpRow;
  const LaneRows<C, false> rows(terms, warpBegin);
  const BiasQuantum quantum(space.greatest, pairBits);
  const float factor = gradientFactor(terms);
  WarpHistogram &histogram = shared.histograms[C::TimeBias && Shape::kKeys ? warp : 0];
  if constexpr (C::TimeBias && Shape::kKeys)
    histogram.clear();

  Fragment<Shape::kKeys ? Shape::KeyTile::kPadded : 8> dK;
  Fragment<Shape::kValues ? Shape::ValueTile::kPadded : 8> dV;
  dK.clear();
  dV.clear();
  Ring<Shape::kStages> ring;
  waitForPhase(&shared.keysFull, 0);
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    const int stage = ring.stage;
    waitForPhase(&shared.queriesFull[stage], ring.parity);
    Fragment<kColumns> scores, dots;
    keepInRegisters(scores);
    keepInRegisters(dots);
    startProducts();
    startRows(scores, shared.k, groupRow, shared.q[stage]);
    if constexpr (Shape::kKeys)
      startRows(dots, shared.v, groupRow, shared.dOut[stage]);
    commitProducts();
    waitForProducts<0>();
    keepInRegisters(scores);
    keepInRegisters(dots);
    addBiases(scores, terms, rows, shared.tile[stage], warpRow, column);
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    backwardWeights<C>(scores, dots, terms, shared.tile[stage], rows, column);
    LeftOperand<kColumns> left;
    if constexpr (Shape::kValues) {
      left.set(scores);
      keepInRegisters(dV);
      startProducts();
      startWeights(dV, left, shared.dOut[stage]);
      commitProducts();
    }
    if constexpr (Shape::kKeys) {
      // The biases' gradients want registers: weights, which a product that runs reads, are let go
      // first.
      if constexpr (C::PositionBias || C::TimeBias) {
        waitForProducts<0>();
        keepInRegisters(dV);
      }
      if constexpr (C::PositionBias)
        addPositionGradients(dots, terms, warpBegin, column, factor, quantum, space.positionSums);
      if constexpr (C::TimeBias)
        addTimeGradients(dots, terms, rows, shared.tile[stage], factor, histogram);
      LeftOperand<kColumns> leftGradients;
      leftGradients.set(dots);
      storeGradients(leftGradients, shared.gradients, warpRow);
      fenceAsyncProxy();
      keepInRegisters(dK);
      startProducts();
      startWeights(dK, leftGradients, shared.q[stage]);
      commitProducts();
      if constexpr (Shape::kBulkQueries)
        waitForBulkReads(); // the last tile's dQ has left
      syncConsumers(kGradientsWritten);
      multiplyQueries<C, Shape>(shared, terms, space, stage, column, factor * terms.args.scale);
      fenceAsyncProxy();
      waitForProducts<0>();
      syncConsumers(kGradientsRead);
      if constexpr (Shape::kBulkQueries)
        sendQueries<C, Shape>(shared, terms, space, column, consumer);
    }
    waitForProducts<0>();
    keepInRegisters(dV);
    keepInRegisters(dK);
    __syncwarp();
    if (laneOf() == 0)
      arrive(&shared.empty[stage]);
  }

  storeKeyGradients<C, Shape>(dK, dV, gradients, terms, warpBegin, factor);
  if constexpr (C::TimeBias && Shape::kKeys) {
    syncConsumers(kHistogramsWritten);
    addHistograms<C, kConsumers * 4>(shared.histograms, terms, quantum, space.timeSums, consumer,
                                     kConsumers * kWarpgroup);
  }
  if constexpr (Shape::kBulkQueries)
    waitForBulk();
}

template <class C, BackwardPart Part>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attentionBackwardHopper(__grid_constant__ const AttentionArgs<Bf16> args,
                            __grid_constant__ const AttentionGradients<Bf16> gradients,
                            __grid_constant__ const HopperBackwardMaps maps, BackwardSpace space,
                            int tilesPerList, int pairBits) {
#if defined(GENREC_SIMT) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shape = HopperBackward<C, Part>;
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<typename Shape::Shared *>(alignedShared(memory));
  const AttentionUnit<C, Shape::kRows> unit(args, blockIdx.x, tilesPerList, false);
  if (!unit.hasRows())
    return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    initBarrier(&shared.keysFull, 1);
    for (int s = 0; s < Shape::kStages; ++s) {
      initBarrier(&shared.queriesFull[s], 1 + kWarp);
      initBarrier(&shared.empty[s], kConsumers * 4);
    }
    fenceBarrierInit();
  }
  if constexpr (C::TimeBias)
    shared.buckets.fill(args.ticksPerSecond, thread, kHopperThreads);
  __syncthreads();
  const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, &shared.buckets);
  takeRoles([&](int warp) { if (warp == 0) produceBackward<C, Shape>(shared, maps, unit, terms, space); },
            [&] { consumeBackward<C, Shape>(shared, gradients, space, unit, terms, pairBits); });
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_H
