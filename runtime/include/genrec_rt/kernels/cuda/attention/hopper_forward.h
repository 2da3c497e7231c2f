//===- hopper_forward.h - Attention with TMA and wgmma, forward ----*- C++ -*-===//
//
// One warp copies tiles (and the biases that they bring), two warpgroups compute 64
// queries each. Each starts the scores of the next tile before it multiplies the
// weights of this one, so that weights are computed while products run (Shah et al.,
// "FlashAttention-3", 2024, section 3.2).
//
// A box of rows may reach into the next list, or behind the last one: those rows
// are hidden by weights of 0, so they must be finite.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H

#include "genrec_rt/kernels/cuda/attention/mma_forward.h"
#include "genrec_rt/kernels/cuda/tensor/wgmma.h"

namespace genrec::rt::cuda {

constexpr int kConsumers = 2; ///< warpgroups that compute
constexpr int kHopperThreads = (1 + kConsumers) * kWarpgroup;
// Registers per thread once warpgroups have their roles. A block starts with 168 for each of its
// threads and can only hand those around: asking for more waits for ever.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <= (1 + kConsumers) * 168);

/// Where a ring of `Stages` buffers stands.
template <int Stages> struct Ring {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

template <class C> struct HopperForward {
  static constexpr int kRows = 64 * kConsumers;
  static constexpr int kStages = 2;
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  static constexpr int kColumns = kWidest <= 128 ? 128 : 64;
  using QueryTile = BulkTile<kRows, C::Qk>;
  using KeyTile = BulkTile<kColumns, C::Qk>;
  using ValueTile = BulkTile<kColumns, C::V>;

  struct Shared {
    QueryTile q;
    KeyTile k[kStages];
    ValueTile v[kStages];
    TileTerms<C, true, kRows, kColumns> tile[kStages];
    TimeBuckets buckets;
    Barrier queriesFull, keysFull[kStages], valuesFull[kStages], empty[kStages];
  };
  static constexpr int64_t kSharedBytes = sizeof(Shared) + 1024;
};

/// What the kernel is told: maps of q, k and v.
struct HopperForwardMaps {
  TensorMap q, k, v;
};

/// One warp of the first warpgroup produces, the other warpgroups consume.
template <class Produce, class Consume>
__device__ __forceinline__ void takeRoles(Produce produce, Consume consume) {
  if (threadIdx.x < kWarpgroup) {
    giveRegisters<kProducerRegisters>();
    if (warpOf() == 0)
      produce();
  } else {
    takeRegisters<kConsumerRegisters>();
    consume();
  }
}

template <class C, class Shared, class Unit>
__device__ __forceinline__ void produceForward(Shared &shared, const HopperForwardMaps &maps,
                                               const Unit &unit, const BlockTerms<C> &terms) {
  using Shape = HopperForward<C>;
  const SeenTiles<C, Over::keys, Shape::kColumns> tiles(unit.mask, unit.range());
  const bool leads = laneOf() == 0;
  if (leads) {
    prefetchMap(maps.k);
    prefetchMap(maps.v);
    arriveExpecting(&shared.queriesFull, Shape::QueryTile::kBytes);
    copyTile(shared.q, maps.q, unit.head, unit.first + unit.begin, &shared.queriesFull);
  }
  Ring<Shape::kStages> ring;
  for (int column = tiles.first(); tiles.has(column);
       column = tiles.after(column), ring.advance()) {
    const int stage = ring.stage;
    waitForPhase(&shared.empty[stage], ring.parity ^ 1);
    if (leads) {
      arriveExpecting(&shared.keysFull[stage], Shape::KeyTile::kBytes);
      copyTile(shared.k[stage], maps.k, unit.head, unit.first + column, &shared.keysFull[stage]);
      arriveExpecting(&shared.valuesFull[stage], Shape::ValueTile::kBytes);
      copyTile(shared.v[stage], maps.v, unit.head, unit.first + column, &shared.valuesFull[stage]);
    }
    if constexpr (C::PositionBias || C::TimeBias) {
      shared.tile[stage].fill(terms, {}, unit.begin, column);
      arrive(&shared.keysFull[stage]);
    }
    // Lanes that copy nothing must not be left behind: a phase that has passed twice is waited for
    // for ever.
    __syncwarp();
  }
}

template <class C, class Shared, class Unit>
__device__ __forceinline__ void consumeForward(Shared &shared, const Unit &unit,
                                               const BlockTerms<C> &terms) {
  using Shape = HopperForward<C>;
  constexpr int kColumns = Shape::kColumns, kOut = Shape::ValueTile::kPadded;
  const SeenTiles<C, Over::keys, kColumns> tiles(unit.mask, unit.range());
  const int groupRow = (warpOf() / 4 - 1) * 64, warpRow = groupRow + warpOf() % 4 * 16;
  const int warpBegin = unit.begin + warpRow;
  const LaneRows<C, true> rows(terms, warpBegin);

  Fragment<kOut> out;
  out.clear();
  Fragment<kColumns> scores;
  LeftOperand<kColumns> weights;
  SoftmaxRows softmax;
  float rescale[2] = {1, 1};
  auto weigh = [&](int column, int stage) {
    addBiases(scores, terms, rows, shared.tile[stage], warpRow, column);
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    forwardWeights<C>(scores, softmax, rescale);
    if constexpr (C::Dropout) {
      uint32_t kept[(kColumns + 63) / 64];
      keptElements<kColumns>(kept, terms, rows, column);
      dropWeights<C>(scores, kept);
    }
  };

  // Every row sees itself, so there is a first tile. Products are started and waited for without
  // branches between: else the assembler makes them wait for each other.
  int column = tiles.first();
  Ring<Shape::kStages> ring;
  waitForPhase(&shared.queriesFull, 0);
  waitForPhase(&shared.keysFull[0], 0);
  startProducts();
  startRows(scores, shared.q, groupRow, shared.k[0]);
  commitProducts();
  waitForProducts<0>();
  keepInRegisters(scores);
  weigh(column, 0);
  weights.set(scores);
  for (column = tiles.after(column); tiles.has(column); column = tiles.after(column)) {
    const int stage = ring.stage, parity = ring.parity;
    ring.advance();
    waitForPhase(&shared.keysFull[ring.stage], ring.parity);
    waitForPhase(&shared.valuesFull[stage], parity);
    keepInRegisters(out);
    startProducts();
    startRows(scores, shared.q, groupRow, shared.k[ring.stage]);
    commitProducts();
    startWeights(out, weights, shared.v[stage]);
    commitProducts();
    waitForProducts<1>();
    keepInRegisters(scores);
    weigh(column, ring.stage);
    waitForProducts<0>();
    keepInRegisters(out);
    __syncwarp();
    if (laneOf() == 0)
      arrive(&shared.empty[stage]);
    if constexpr (C::Softmax)
      forFragment<kOut>([&](int n, int i, int h, int) { out.d[n][i] *= rescale[h]; });
    weights.set(scores);
  }
  waitForPhase(&shared.valuesFull[ring.stage], ring.parity);
  keepInRegisters(out);
  startProducts();
  startWeights(out, weights, shared.v[ring.stage]);
  commitProducts();
  waitForProducts<0>();
  keepInRegisters(out);

  storeOutput(out, softmax, terms, rows, warpBegin);
}

template <class C>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attentionForwardHopper(__grid_constant__ const AttentionArgs<Bf16> args,
                           __grid_constant__ const HopperForwardMaps maps, int tilesPerList) {
#if defined(GENREC_SIMT) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shape = HopperForward<C>;
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<typename Shape::Shared *>(alignedShared(memory));
  const AttentionUnit<C, Shape::kRows> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    constexpr int kFillers = C::PositionBias || C::TimeBias ? kWarp : 0;
    initBarrier(&shared.queriesFull, 1);
    for (int s = 0; s < Shape::kStages; ++s) {
      initBarrier(&shared.keysFull[s], 1 + kFillers);
      initBarrier(&shared.valuesFull[s], 1);
      initBarrier(&shared.empty[s], kConsumers * 4);
    }
    fenceBarrierInit();
  }
  if constexpr (C::TimeBias)
    shared.buckets.fill(args.ticksPerSecond, thread, kHopperThreads);
  __syncthreads();
  const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, &shared.buckets);
  takeRoles([&] { produceForward(shared, maps, unit, terms); },
            [&] { consumeForward(shared, unit, terms); });
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H
