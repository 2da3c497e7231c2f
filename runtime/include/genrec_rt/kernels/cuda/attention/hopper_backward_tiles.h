//===- hopper_backward_tiles.h - Tiles of Hopper attention's backward, and their copies -===//
//
// What a block of hopper_backward.h has in shared memory, and the warps that fill it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_TILES_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_TILES_H

#include "genrec_rt/kernels/cuda/attention/hopper_forward.h"
#include "genrec_rt/kernels/cuda/attention/mma_backward.h"

namespace genrec::rt::cuda {

template <class C, BackwardPart Part> struct HopperBackward {
  static constexpr bool kValues = Part != BackwardPart::keys, kKeys = Part != BackwardPart::values;
  static constexpr int kRows = 64 * kConsumers; ///< keys
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  static constexpr int kColumns = kWidest <= 64 ? 128 : 64; ///< queries
  static constexpr int kStages = kWidest > 128 && kKeys ? 1 : 2, kTermStages = kStages;
  static constexpr int kUnits = 1; ///< whoever reads one keeps it in registers
  using Unit = AttentionUnit<C, kRows>;
  using Tiles = SeenTiles<C, Over::queries, kColumns>;
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
  static_assert(!kSentFromOut || OutTile::kBytes >= kConsumerWarps * kSent * 4);
  /// dK and dV leave through that memory as well.
  static constexpr bool kStagesRows = kKeys && !kSentFromOut;
  using Stores = StagedRows<16>;
  static_assert(Stores::kBytes <= kSent * 4);

  using Histogram = WarpHistogram<kWidest <= 128>;
  /// A warp of the first warpgroup adds up what consumers write of position gradients.
  static constexpr bool kPositions = C::PositionBias && kKeys;
  static constexpr int kPositionWarp = 3;
  /// Of a tile's diagonals. Where there is room for one only, a tile's are added before the next
  /// one's are there.
  static constexpr int kPositionBuffers = kColumns == 64 && !C::TimeBias ? kGradientTiles : 1;
  static_assert(kPositionWarp > kStages);

  struct Empty {
    static constexpr int kBytes = 0;
  };
  struct Shared {
    KeyTile k;
    std::conditional_t<kKeys, ValueTile, Empty> v;
    QueryTile q[kStages];
    OutTile dOut[kStages];
    std::conditional_t<kKeys, BulkTile<kRows, kColumns>, Empty> gradients[kGradientTiles];
    alignas(128) int sent[kKeys && !kSentFromOut ? kConsumerWarps * kSent : 4];
    TileTerms<C, false, kRows, kColumns> tile[kStages];
    TimeTable times;
    BiasQuantum quantum; ///< here, as registers are scarce
    Histogram histograms[C::TimeBias && kKeys ? kConsumerWarps : 1];
    std::conditional_t<kPositions, PositionSums<kConsumerWarps, kColumns, kPositionBuffers>, Empty>
        positions;
    Turns written[kPositions ? kPositionBuffers : 1]; ///< diagonals of a tile
    Unit units[kUnits];                         ///< behind the last one stands one without rows
    Turns unit[kUnits], keys, queries[kStages]; ///< `keys`: and values; `queries`: and dOut, terms

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

  static __device__ void initBarriers(Shared &shared) {
    for (Turns &unit : shared.unit)
      unit.init(1, kConsumerWarps + kStages + (kPositions ? 1 : 0));
    shared.keys.init(1, kConsumerWarps);
    for (Turns &queries : shared.queries)
      queries.init(1 + kWarp, kConsumerWarps);
    for (Turns &written : shared.written)
      written.init(kConsumerWarps * kReleases, 1);
    fenceBarrierInit();
  }
};

/// What the kernel is told: maps of q, k, v and dOut.
struct HopperBackwardMaps {
  TensorMap q, k, v, dOut;
};

/// Copies keys, values and tiles of queries of the block's tiles of keys; called by one thread.
template <class C, class Shape, class Shared>
__device__ __forceinline__ void produceBackward(Shared &shared, const HopperBackwardMaps &maps,
                                                const AttentionArgs<Bf16> &args,
                                                const TileList &list) {
  prefetchMap(maps.q);
  prefetchMap(maps.k);
  prefetchMap(maps.dOut);
  Ring<Shape::kStages> ring;
  int parity = 0; // of the keys' barriers
  takeUnits<Shape>(shared, args, list, [&](const typename Shape::Unit &unit) {
    const typename Shape::Tiles tiles(unit.mask, unit.range());
    const int first = tiles.first();
    for (int column = first; tiles.has(column); column = tiles.after(column), ring.advance()) {
      const int stage = ring.stage;
      Turns &queries = shared.queries[stage];
      waitForPhase(&queries.empty, ring.parity ^ 1);
      arriveExpecting(&queries.full, Shape::QueryTile::kBytes + Shape::OutTile::kBytes);
      copyTile(shared.q[stage], maps.q, unit.head, unit.first + column, &queries.full);
      copyTile(shared.dOut[stage], maps.dOut, unit.head, unit.first + column, &queries.full);
      if (column != first)
        continue;
      // Keys are let go last, so that the first queries are under way before.
      waitForPhase(&shared.keys.empty, parity ^ 1);
      arriveExpecting(&shared.keys.full, Shape::KeyTile::kBytes + decltype(shared.v)::kBytes);
      copyTile(shared.k, maps.k, unit.head, unit.first + unit.begin, &shared.keys.full);
      if constexpr (Shape::kKeys)
        copyTile(shared.v, maps.v, unit.head, unit.first + unit.begin, &shared.keys.full);
    }
    parity ^= 1;
  });
}

/// Adds up the diagonals that consumers write; called by one warp.
template <class C, class Shape, class Shared>
__device__ __forceinline__ void sumPositions(Shared &shared, const AttentionArgs<Bf16> &args,
                                             const BackwardSpace &space) {
  using Sums =
      DiagonalSums<decltype(shared.positions), kConsumerWarps, Shape::kColumns, decltype(args)>;
  Ring<Shape::kPositionBuffers> ring;
  forUnits<Shape>(shared, [&](const typename Shape::Unit &unit) {
    const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, shared.times);
    Sums sums{shared.positions, args, gradientFactor(terms), shared.quantum, space.positionSums};
    const typename Shape::Tiles tiles(unit.mask, unit.range());
    for (int column = tiles.first(); tiles.has(column); column = tiles.after(column)) {
      if (shared.tile[0].hasOneBias(args, unit.begin - column))
        continue;
      Turns &turns = shared.written[ring.stage];
      waitForPhase(&turns.full, ring.parity);
      sums.add(ring.stage, column - unit.begin);
      release(&turns.empty);
      ring.advance();
    }
    sums.flush();
  });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_BACKWARD_TILES_H
