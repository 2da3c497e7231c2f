//===- hopper_forward.h - Attention with TMA and wgmma, forward ----*- C++ -*-===//
//
// As many blocks as multiprocessors take tiles of 128 queries (tile_list.h). One warp copies q, k
// and v, another writes the biases that tiles of keys bring, two warpgroups compute 64 queries
// each (Shah et al., "FlashAttention-3", 2024):
//
//   - A warpgroup starts the scores of the next tile of keys before it multiplies the weights of
//     this one, so that weights are computed while products run (section 3.2).
//   - The two take turns at starting products: while those of one run, the other computes weights
//     (section 3.1).
//   - Keys are let go as soon as their scores are there, values when they are multiplied, q after
//     its last scores: the next ones arrive while weights are computed and results are stored.
//
// A box of rows may reach into the next list, or behind the last one: those rows
// are hidden by weights of 0, so they must be finite.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H

#include "genrec_rt/kernels/cuda/attention/mma_forward.h"
#include "genrec_rt/kernels/cuda/attention/tile_list.h"
#include "genrec_rt/kernels/cuda/tensor/wgmma.h"

namespace genrec::rt::cuda {

constexpr int kConsumers = 2; ///< warpgroups that compute
constexpr int kConsumerWarps = kConsumers * 4;
constexpr int kHopperKeys = 64 * kConsumers; ///< of a block of backward
constexpr int kHopperThreads = (1 + kConsumers) * kWarpgroup;
constexpr int64_t kMostSharedBytes = 227 << 10; ///< of a block

/// Registers per thread once warpgroups have their roles. A block starts with 168 for each of its
/// threads and can only hand those around: asking for more waits for ever. What biases, gradients
/// and scores that are under way take consumers need more than producers.
template <int Producer, int Consumer> struct RoleRegisters {
  static constexpr int kProducer = Producer, kConsumer = Consumer;
  static_assert(kProducer + kConsumers * kConsumer <= (1 + kConsumers) * 168);
};
using MostForConsumers = RoleRegisters<24, 240>;

/// Where a ring of `Stages` buffers stands.
template <int Stages> struct Ring {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ int stageBefore() const { return stage == 0 ? Stages - 1 : stage - 1; }
};

/// A buffer that is filled and emptied by turns.
struct Turns {
  Barrier full, empty;

  /// So many arrivals fill it, so many warps empty it.
  __device__ void init(int arrivals, int warps) {
    initBarrier(&full, arrivals);
    initBarrier(&empty, warps * kReleases);
  }
};

template <class C> struct HopperForward {
  static constexpr int kRows = 64 * kConsumers;
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  /// Values are let go when the next scores have been started; a third stage makes up for that.
  static constexpr int kStages = 2, kValueStages = kWidest <= 128 ? 3 : 2, kUnits = 2;
  static constexpr int kColumns = kWidest <= 128 ? 128 : 64;
  static constexpr bool kBiased = C::PositionBias || C::TimeBias;
  /// What a tile brings is read at once, and written by a warp per stage whose loads wait for each
  /// other: longer than a tile takes.
  static constexpr int kTermStages = 3;
  using Registers = std::conditional_t<kBiased, MostForConsumers, RoleRegisters<40, 232>>;
  using Unit = AttentionUnit<C, kRows>;
  using Tiles = SeenTiles<C, Over::keys, kColumns>;
  using QueryTile = BulkTile<kRows, C::Qk>;
  using KeyTile = BulkTile<kColumns, C::Qk>;
  using ValueTile = BulkTile<kColumns, C::V>;
  using Stores = StagedRows<8>;

  struct Shared {
    QueryTile q;
    KeyTile k[kStages];
    ValueTile v[kValueStages];
    alignas(16) unsigned char staged[kConsumerWarps][Stores::kBytes];
    TileTerms<C, true, kRows, kColumns> tile[kBiased ? kTermStages : 1];
    TimeTable times;
    Unit units[kUnits]; ///< that the block works on; behind the last one stands one without rows
    Turns unit[kUnits], queries, keys[kStages], values[kValueStages], terms[kTermStages];
  };
  static constexpr int64_t kSharedBytes = sizeof(Shared) + 1024;
  static_assert(kSharedBytes <= kMostSharedBytes);

  static __device__ void initBarriers(Shared &shared) {
    for (Turns &unit : shared.unit)
      unit.init(1, kConsumerWarps + (kBiased ? kTermStages : 0));
    shared.queries.init(1, kConsumerWarps);
    for (Turns &keys : shared.keys)
      keys.init(1, kConsumerWarps);
    for (Turns &terms : shared.terms)
      terms.init(kWarp, kConsumerWarps);
    for (Turns &values : shared.values)
      values.init(1, kConsumerWarps);
    fenceBarrierInit();
  }
};

/// What the kernel is told: maps of q, k and v.
struct HopperForwardMaps {
  TensorMap q, k, v;
};

/// Called by a warp that is done with what a barrier says is full: arrives kReleases times, where
/// it `has` something.
__device__ __forceinline__ void release(Barrier *empty, bool has = true) {
  __syncwarp();
  if (laneOf() < kReleases && has)
    arrive(empty);
}

/// Takes the block's tiles of rows from the list, tells the other warps of each, and calls
/// body(unit); called by one thread.
template <class Shape, class Shared, class Body>
__device__ __forceinline__ void takeUnits(Shared &shared, const AttentionArgs<Bf16> &args,
                                          const TileList &list, Body body) {
  for (Ring<Shape::kUnits> units;; units.advance()) {
    const typename Shape::Unit unit(args, takeTile(list));
    waitForPhase(&shared.unit[units.stage].empty, units.parity ^ 1);
    shared.units[units.stage] = unit;
    arrive(&shared.unit[units.stage].full);
    if (!unit.hasRows())
      return;
    body(unit);
  }
}

/// Copies what the block's tiles of queries want; called by one thread.
template <class C, class Shared>
__device__ __forceinline__ void produceForward(Shared &shared, const HopperForwardMaps &maps,
                                               const AttentionArgs<Bf16> &args,
                                               const TileList &list) {
  using Shape = HopperForward<C>;
  prefetchMap(maps.q);
  prefetchMap(maps.k);
  prefetchMap(maps.v);
  Ring<Shape::kStages> keyRing;
  Ring<Shape::kValueStages> valueRing;
  int parity = 0; // of the queries' barriers
  takeUnits<Shape>(shared, args, list, [&](const typename Shape::Unit &unit) {
    const typename Shape::Tiles tiles(unit.mask, unit.range());
    const int first = tiles.first();
    for (int column = first; tiles.has(column); column = tiles.after(column)) {
      Turns &keys = shared.keys[keyRing.stage], &values = shared.values[valueRing.stage];
      waitForPhase(&keys.empty, keyRing.parity ^ 1);
      arriveExpecting(&keys.full, Shape::KeyTile::kBytes);
      copyTile(shared.k[keyRing.stage], maps.k, unit.head, unit.first + column, &keys.full);
      keyRing.advance();
      if (column == first) {
        waitForPhase(&shared.queries.empty, parity ^ 1);
        arriveExpecting(&shared.queries.full, Shape::QueryTile::kBytes);
        copyTile(shared.q, maps.q, unit.head, unit.first + unit.begin, &shared.queries.full);
      }
      waitForPhase(&values.empty, valueRing.parity ^ 1);
      arriveExpecting(&values.full, Shape::ValueTile::kBytes);
      copyTile(shared.v[valueRing.stage], maps.v, unit.head, unit.first + column, &values.full);
      valueRing.advance();
    }
    parity ^= 1;
  });
}

/// Calls body(unit) for each of the block's tiles of rows; called by whole warps.
template <class Shape, class Shared, class Body>
__device__ __forceinline__ void forUnits(Shared &shared, Body body) {
  for (Ring<Shape::kUnits> units;; units.advance()) {
    waitForPhase(&shared.unit[units.stage].full, units.parity);
    const auto unit = shared.units[units.stage];
    release(&shared.unit[units.stage].empty);
    if (!unit.hasRows())
      return;
    body(unit);
  }
}

/// Writes what tiles of columns bring along (TileTerms), that of one stage, whose barriers are
/// `turns`; called by one warp. (One warp for all would take longer than the products: its loads
/// wait for each other.)
template <class C, class Shape, class Shared>
__device__ __forceinline__ void fillTerms(Shared &shared, Turns &turns,
                                          const AttentionArgs<Bf16> &args,
                                          const BackwardSpace &space, int stage) {
  Ring<Shape::kTermStages> ring;
  forUnits<Shape>(shared, [&](const typename Shape::Unit &unit) {
    const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, shared.times);
    const typename Shape::Tiles tiles(unit.mask, unit.range());
    for (int column = tiles.first(); tiles.has(column);
         column = tiles.after(column), ring.advance()) {
      if (ring.stage != stage)
        continue;
      waitForPhase(&turns.empty, ring.parity ^ 1);
      shared.tile[stage].fill(terms, space, static_cast<int>(unit.list), unit.begin, column);
      arrive(&turns.full);
    }
  });
}

/// Named barriers of the consumers.
enum ConsumerBarrier {
  kGradientsWritten = 1,
  kHistogramsWritten = 2,
  kFirstTurn = 3, ///< and one more: whose turn it is to start products
};
__device__ __forceinline__ void syncConsumers(ConsumerBarrier id) {
  namedBarrierSync(id, kConsumers * kWarpgroup);
}

/// The warpgroups' turns at starting products. The first one's comes first.
struct ProductTurns {
  static_assert(kConsumers == 2);
  int group; ///< this warpgroup: 0 or 1

  __device__ explicit ProductTurns(int group) : group(group) {
    if (group == 1)
      pass();
  }
  __device__ void await() const { namedBarrierSync(kFirstTurn + group, 2 * kWarpgroup); }
  __device__ void pass() const { namedBarrierArrive(kFirstTurn + 1 - group, 2 * kWarpgroup); }
  /// Both had equally many turns: the first one's next is not taken.
  __device__ void end() const {
    if (group == 0)
      await();
  }
};

/// What a consumer keeps from tile to tile of queries.
template <class C> struct ForwardConsumer {
  ProductTurns turns{sameInWarp(warpOf()) / 4 - 1};
  Ring<HopperForward<C>::kStages> keys;
  Ring<HopperForward<C>::kTermStages> tiles;
  Ring<HopperForward<C>::kValueStages> values;
  int parity = 0; ///< of the queries' barriers
};

/// A tile of queries of a warpgroup.
template <class C, class Shared> struct ForwardTile {
  using Shape = HopperForward<C>;
  static constexpr int kColumns = Shape::kColumns, kOut = Shape::ValueTile::kPadded;
  Shared &shared;
  ForwardConsumer<C> &state;
  const BlockTerms<C> &terms;
  int groupRow = state.turns.group * 64, warpRow = groupRow + sameInWarp(warpOf()) % 4 * 16,
      warpBegin;
  LaneRows<C, true> rows;
  Ring<Shape::kStages> &keys = state.keys;
  Ring<Shape::kTermStages> &tiles = state.tiles;
  Ring<Shape::kValueStages> &values = state.values;
  Fragment<kOut> out;
  Fragment<kColumns> scores;
  LeftOperand<kColumns> weights[2]; ///< some are multiplied while the others are computed
  TimesAlong along;                 ///< the tile of keys
  SoftmaxRows softmax;
  float rescale[2] = {1, 1};
  bool hasLast = false; ///< values have been multiplied

  __device__ __forceinline__ ForwardTile(Shared &shared, ForwardConsumer<C> &state,
                                         const BlockTerms<C> &terms, int begin)
      : shared(shared), state(state), terms(terms), warpBegin(begin + warpRow),
        rows(terms, warpBegin) {
    out.clear();
  }

  // Every row sees itself, so there is a first tile. Tiles take the two sets of weights by turns,
  // each in registers of its own: a copy from one set to the other would overwrite what a product
  // reads (LeftOperand).
  __device__ __forceinline__ void run(const typename Shape::Tiles &tiles) {
    int column = tiles.first(), after = tiles.after(column);
    waitForPhase(&shared.queries.full, state.parity);
    waitForTile();
    state.turns.await();
    startScores();
    state.turns.pass();
    waitForProducts<0>();
    keepInRegisters(scores);
    letGo(/*queriesAsWell=*/!tiles.has(after));
    weigh<0>(column);
    auto next = [&] {
      column = after;
      after = tiles.after(after);
    };
    for (;;) {
      if (!tiles.has(after)) {
        end<0>();
        break;
      }
      next();
      add<0>(column, !tiles.has(after));
      if (!tiles.has(after)) {
        end<1>();
        break;
      }
      next();
      add<1>(column, !tiles.has(after));
    }
    state.parity ^= 1;
    storeOutput(out, softmax, terms, rows, warpBegin,
                typename Shape::Stores{shared.staged[warpRow / 16]});
  }

private:
  /// Multiplies the weights `Now`, and computes those of a tile of keys. Products are started and
  /// waited for without branches between: else the assembler makes them wait for each other. Those
  /// of weights are awaited only when the next scores are under way: these overwrite what weights
  /// are computed from, which keeps the assembler from putting the wait before the weights. Softmax
  /// rescales what they are added to, which the assembler takes only while no product runs.
  template <int Now> __device__ __forceinline__ void add(int column, bool isLast) {
    waitForTile();
    if constexpr (C::Softmax) {
      waitForProducts<0>();
      finishOut<1 - Now>();
    }
    state.turns.await();
    startScores();
    if constexpr (!C::Softmax) {
      waitForProducts<1>();
      finishOut<1 - Now>();
    }
    startOut<Now>();
    state.turns.pass();
    waitForProducts<1>();
    keepInRegisters(scores);
    letGo(isLast);
    weigh<1 - Now>(column);
  }

  /// Multiplies the last weights.
  template <int Now> __device__ __forceinline__ void end() {
    waitForProducts<0>();
    finishOut<1 - Now>();
    startOut<Now>();
    waitForProducts<0>();
    keepInRegisters(out);
    keepInRegisters(weights[Now]);
    release(&shared.values[values.stageBefore()].empty);
  }

  /// Waits for a tile of keys and what it brings. Its buckets are found here, while registers of
  /// scores are free and products of the other warpgroup run.
  __device__ __forceinline__ void waitForTile() {
    waitForPhase(&shared.keys[keys.stage].full, keys.parity);
    if constexpr (Shape::kBiased)
      waitForPhase(&shared.terms[tiles.stage].full, tiles.parity);
    along = rows.timesAlong(terms, shared.tile[tiles.stage]);
  }

  __device__ __forceinline__ void startScores() {
    startProducts();
    startRows(scores, shared.q, groupRow, shared.k[keys.stage]);
    commitProducts();
  }

  /// When scores are there; behind the last ones the next queries come while these become weights.
  __device__ __forceinline__ void letGo(bool queriesAsWell) {
    release(&shared.keys[keys.stage].empty);
    release(&shared.queries.empty, queriesAsWell);
  }

  /// The scores of a tile of keys become weights.
  template <int Next> __device__ __forceinline__ void weigh(int column) {
    addBiases(scores, terms, rows, shared.tile[tiles.stage], along, warpRow);
    keys.advance();
    if constexpr (Shape::kBiased) {
      release(&shared.terms[tiles.stage].empty);
      tiles.advance();
    }
    hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);
    forwardWeights<C>(scores, softmax, rescale);
    if constexpr (C::Dropout) {
      uint32_t kept[(kColumns + 63) / 64];
      keptElements<kColumns>(kept, terms, rows, column);
      dropWeights<C>(scores, kept);
    }
    weights[Next].set(scores);
  }

  /// When the product of the weights before is there.
  template <int Before> __device__ __forceinline__ void finishOut() {
    keepInRegisters(out);
    keepInRegisters(weights[Before]);
    release(&shared.values[values.stageBefore()].empty, hasLast);
    hasLast = true;
    if constexpr (C::Softmax)
      forFragment<kOut>([&](int n, int i, int h, int) { out.d[n][i] *= rescale[h]; });
  }

  template <int Now> __device__ __forceinline__ void startOut() {
    waitForPhase(&shared.values[values.stage].full, values.parity);
    keepInRegisters(out);
    startProducts();
    startWeights(out, weights[Now], shared.v[values.stage]);
    commitProducts();
    values.advance();
  }
};

template <class C, class Shared, class Unit>
__device__ __forceinline__ void consumeForward(Shared &shared, ForwardConsumer<C> &state,
                                               const Unit &unit, const BlockTerms<C> &terms) {
  const typename HopperForward<C>::Tiles tiles(unit.mask, unit.range());
  ForwardTile<C, Shared>(shared, state, terms, unit.begin).run(tiles);
}

/// The warps of the first warpgroup produce, those of the others consume.
template <class Registers, class Produce, class Consume>
__device__ __forceinline__ void takeRoles(Produce produce, Consume consume) {
  if (threadIdx.x < kWarpgroup) {
    giveRegisters<Registers::kProducer>();
    produce(warpOf());
  } else {
    takeRegisters<Registers::kConsumer>();
    consume();
  }
}

template <class C>
__global__ void __launch_bounds__(kHopperThreads, 1)
    attentionForwardHopper(__grid_constant__ const AttentionArgs<Bf16> args,
                           __grid_constant__ const HopperForwardMaps maps, TileList list) {
#if defined(GENREC_SIMT) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shape = HopperForward<C>;
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<typename Shape::Shared *>(alignedShared(memory));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0)
    Shape::initBarriers(shared);
  if constexpr (C::TimeBias)
    BlockTerms<C>::fillTimes(shared.times, args, thread, kHopperThreads);
  __syncthreads();
  auto produce = [&](int warp) {
    if (warp == 0 && laneOf() == 0)
      produceForward<C>(shared, maps, args, list);
    if (Shape::kBiased && warp >= 1 && warp <= Shape::kTermStages)
      fillTerms<C, Shape>(shared, shared.terms[warp - 1], args, {}, warp - 1);
  };
  auto consume = [&] {
    ForwardConsumer<C> state;
    forUnits<Shape>(shared, [&](const typename Shape::Unit &unit) {
      const BlockTerms<C> terms(args, unit.mask, unit.first, unit.head, shared.times);
      consumeForward<C>(shared, state, unit, terms);
    });
    state.turns.end();
  };
  takeRoles<typename Shape::Registers>(produce, consume);
#else
  __trap(); // code for 90, not 90a, or for another device: an error, not results of nothing
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_HOPPER_FORWARD_H
