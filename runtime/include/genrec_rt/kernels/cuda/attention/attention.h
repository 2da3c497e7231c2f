//===- attention.h - Attention over the rows of jagged lists, on the device -===//
//
// args.h says what is computed. Three levels compute it behind one interface:
//
//   plain    no tensor cores; any size, float and bfloat16 (plain.h)
//   mma      mma.sync, sm_80 and later; bfloat16, sizes that are multiples of 8 up
//            to 256, q, k, v, out and their gradients aligned to 16 bytes with
//            leading dimensions that are multiples of 8 (mma_forward.h, mma_backward.h)
//
//   hopper   TMA and wgmma, sm_90a; as mma, and rows between lists' ends and `rows`
//            must be finite (hopper_forward.h, hopper_backward.h)
//
// A model instantiates the configurations it has, at the level of each device
// that it is compiled for (attentionLevelOf).
//
// Memory beside the arguments is asked for in bytes and grows with the number of
// rows, not with its square. Results have the same bits in every run on one kind
// of device: fixed_point.h says how.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_ATTENTION_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_ATTENTION_H

#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cuda/attention/hopper_backward.h"
#include "genrec_rt/kernels/cuda/attention/plain.h"
#include "genrec_rt/kernels/cuda/attention/prepare.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/scratch.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace genrec::rt::cuda {

enum class AttentionLevel { plain, mma, hopper };

/// The fastest level that a device has, by its compute capability. Blackwell (sm_100) has no wgmma.
constexpr AttentionLevel attentionLevelOf(int major) {
  return major == 9   ? AttentionLevel::hopper
         : major >= 8 ? AttentionLevel::mma
                      : AttentionLevel::plain;
}

/// Whether a configuration has kernels for tensor cores.
template <class C>
constexpr bool kHasTensorCoreKernels = sizeof(typename C::Element) == 2 && C::Qk % 8 == 0 &&
                                       C::V % 8 == 0 && C::Qk <= 256 && C::V <= 256;

namespace detail {

/// Lists may be cut at a length and have no rows all the same: then there is nothing to launch, and
/// no matrix of which a tensor map could be made.
template <class E> bool mayHavePairs(const AttentionArgs<E> &args) {
  return args.parents > 0 && args.maxLength > 0 && args.rows > 0;
}

/// Blocks for one tile of every list and head.
template <class E> int tilesOf(const AttentionArgs<E> &args, int tile) {
  return static_cast<int>(blocksFor(args.maxLength, tile));
}
template <class E> dim3 gridOf(const AttentionArgs<E> &args, int tile) {
  const int64_t blocks = args.parents * args.heads * tilesOf(args, tile);
  if (blocks > INT32_MAX)
    throw Error(
        "attention of " + std::to_string(args.heads) + " heads over " +
            std::to_string(args.parents) + " lists of up to " + std::to_string(args.maxLength) +
            " entries takes " + std::to_string(blocks) + " blocks, and a launch has " +
            std::to_string(INT32_MAX) + " at most",
        "use a smaller batch; of bfloat16 values, a device of compute capability 9.0 has no "
        "such bound");
  return dim3(static_cast<unsigned>(blocks));
}

/// No more tiles are there in all lists and heads.
template <class E> int64_t mostTiles(const AttentionArgs<E> &args, int tile) {
  const int64_t byLength = args.parents * tilesOf(args, tile),
                byRows = args.parents + args.rows / tile;
  return args.heads * std::min(byLength, byRows);
}

/// A list of tiles in memory.
inline TileList takeList(ScratchCursor &cursor, int64_t mostTiles) {
  TileList list;
  list.counts = cursor.take<int>(kBins);
  list.placed = cursor.take<int>(kBins);
  list.taken = cursor.take<int>(kListLaunches);
  list.count = cursor.take<int>(1);
  list.tiles = cursor.take<AttentionTile>(mostTiles);
  return list;
}

/// The parts of backward's space, and what of it is cleared before a call.
struct BackwardLayout {
  BackwardSpace space;
  TileList list; ///< level hopper
  int64_t clearedBytes = 0, bytes = 0;

  template <class C>
  static BackwardLayout of(const AttentionArgs<typename C::Element> &args, AttentionLevel level,
                           void *memory) {
    BackwardLayout layout;
    ScratchCursor cursor(memory);
    auto take = [&]<class T>(T *&part, int64_t count) { part = cursor.take<T>(count); };
    BackwardSpace &space = layout.space;
    take(space.greatest, 1);
    take(space.ready, 1);
    take(space.listMost, args.parents * args.heads * kListMosts);
    take(space.positionSums, C::PositionBias ? args.positionBuckets : 0);
    take(space.timeSums, C::TimeBias ? args.timeBuckets : 0);
    layout.clearedBytes = cursor.bytes();
    const int64_t rows = args.heads * args.rows, summed = level == AttentionLevel::plain ? 0 : rows;
    take(space.querySums, summed * kQueryPanels<C> * kPanelColumns);
    take(space.rowProduct, C::Softmax ? rows : 0);
    take(space.rowNorm, summed);
    if constexpr (kHasTensorCoreKernels<C>)
      if (level == AttentionLevel::hopper)
        layout.list = takeList(cursor, mostTiles(args, kHopperKeys));
    layout.bytes = cursor.bytes();
    return layout;
  }
};

template <class C> dim3 prepareGrid(const AttentionArgs<typename C::Element> &args) {
  const int64_t spans = blocksFor(args.rows, RowSpan<C>::kRows) * args.heads;
  const int64_t blocks = blocksFor(spans, kPrepareThreads / kWarp);
  return dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks));
}

template <class C>
void forwardPlain(const AttentionArgs<typename C::Element> &args, cudaStream_t stream) {
  const LaunchShape shape{gridOf(args, kPlainTile<C>), dim3(kPlainThreads),
                          sizeof(plain::Shared<C, false>)};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionForwardPlain<C>), args, tilesOf(args, kPlainTile<C>));
}

template <class C>
void backwardPlain(const AttentionArgs<typename C::Element> &args,
                   const AttentionGradients<typename C::Element> &gradients,
                   const BackwardSpace &space, int pairBits, cudaStream_t stream) {
  const LaunchShape shape{gridOf(args, kPlainTile<C>), dim3(kPlainThreads),
                          sizeof(plain::Shared<C, true>)};
  const int tiles = tilesOf(args, kPlainTile<C>);
  GENREC_CUDA_LAUNCH(stream, shape, (attentionQueriesPlain<C>), args, gradients, space, tiles,
                     pairBits);
  GENREC_CUDA_LAUNCH(stream, shape, (attentionKeysPlain<C>), args, gradients, space, tiles);
}

template <class C> void forwardMma(const AttentionArgs<Bf16> &args, cudaStream_t stream) {
  using Shape = MmaForward<C>;
  const LaunchShape shape{gridOf(args, Shape::kRows), dim3(kMmaThreads),
                          sizeof(typename Shape::Shared)};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionForwardMma<C>), args, tilesOf(args, Shape::kRows));
}

template <class C, BackwardPart Part>
void backwardMmaPart(const AttentionArgs<Bf16> &args, const AttentionGradients<Bf16> &gradients,
                     const BackwardSpace &space, int pairBits, cudaStream_t stream) {
  using Shape = MmaBackward<C, Part>;
  const LaunchShape shape{gridOf(args, Shape::kRows), dim3(kMmaThreads),
                          sizeof(typename Shape::Shared)};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionBackwardMma<C, Part>), args, gradients, space,
                     tilesOf(args, Shape::kRows), pairBits);
}

template <class C>
void backwardMma(const AttentionArgs<Bf16> &args, const AttentionGradients<Bf16> &gradients,
                 const BackwardSpace &space, int pairBits, cudaStream_t stream) {
  if constexpr (C::Qk + C::V <= 256) {
    backwardMmaPart<C, BackwardPart::all>(args, gradients, space, pairBits, stream);
  } else {
    backwardMmaPart<C, BackwardPart::values>(args, gradients, space, pairBits, stream);
    backwardMmaPart<C, BackwardPart::keys>(args, gradients, space, pairBits, stream);
  }
}

/// Where the list of tiles lies in memory of a forward call.
struct ForwardLayout {
  TileList list;
  int64_t bytes = 0;

  template <class C> static ForwardLayout of(const AttentionArgs<Bf16> &args, void *memory) {
    ForwardLayout layout;
    ScratchCursor cursor(memory);
    layout.list = takeList(cursor, mostTiles(args, HopperForward<C>::kRows));
    layout.bytes = cursor.bytes();
    return layout;
  }
};

/// Makes the list of the tiles of `Rows` rows.
template <class C, Over What, int Rows, int Columns>
void makeTileList(const AttentionArgs<Bf16> &args, const TileList &list, cudaStream_t stream,
                  int64_t mostOfOneBlock = kOneBlockTiles) {
  if (args.parents * args.heads * tilesOf(args, Rows) <= mostOfOneBlock) {
    const LaunchShape shape{dim3(1), dim3(kOneListThreads)};
    GENREC_CUDA_LAUNCH(stream, shape, (attentionListTiles<C, What, Rows, Columns>), args, list);
    return;
  }
  const auto cleared = static_cast<size_t>(list.taken + kListLaunches - list.counts) * sizeof(int);
  GENREC_CUDA_CHECK(cudaMemsetAsync(list.counts, 0, cleared, stream));
  constexpr int64_t kMostListBlocks = 128; // whose atomics meet in few bins
  const int64_t blocks = blocksFor(args.parents * tilesOf(args, Rows), kListThreads);
  const LaunchShape shape{dim3(static_cast<unsigned>(std::min(blocks, kMostListBlocks))),
                          dim3(kListThreads)};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionCountTiles<C, What, Rows, Columns>), args, list);
  GENREC_CUDA_LAUNCH(stream, shape, (attentionPlaceTiles<C, What, Rows, Columns>), args, list);
}

inline int multiprocessors() {
  int device = 0, count = 0;
  GENREC_CUDA_CHECK(cudaGetDevice(&device));
  GENREC_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

/// Blocks that take tiles of `Rows` rows from a list.
template <int Rows> dim3 blocksOfList(const AttentionArgs<Bf16> &args) {
  return dim3(static_cast<unsigned>(std::min<int64_t>(mostTiles(args, Rows), multiprocessors())));
}

template <class C>
void forwardHopper(const AttentionArgs<Bf16> &args, void *memory, cudaStream_t stream) {
  using Shape = HopperForward<C>;
  constexpr int kRows = Shape::kRows, kColumns = Shape::kColumns;
  const ForwardLayout layout = ForwardLayout::of<C>(args, memory);
  const HopperForwardMaps maps{
      makeTensorMap(args.q, args.rows, args.heads, C::Qk, args.ldQ, kRows),
      makeTensorMap(args.k, args.rows, args.heads, C::Qk, args.ldK, kColumns),
      makeTensorMap(args.v, args.rows, args.heads, C::V, args.ldV, kColumns)};
  makeTileList<C, Over::keys, kRows, kColumns>(args, layout.list, stream);
  const LaunchShape shape{blocksOfList<kRows>(args), dim3(kHopperThreads), Shape::kSharedBytes};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionForwardHopper<C>), args, maps, layout.list);
}

template <class C, BackwardPart Part>
void backwardHopperPart(const AttentionArgs<Bf16> &args, const AttentionGradients<Bf16> &gradients,
                        const BackwardSpace &space, const TileList &list, int pairBits,
                        cudaStream_t stream) {
  using Shape = HopperBackward<C, Part>;
  static_assert(Shape::kRows == kHopperKeys);
  const HopperBackwardMaps maps{
      makeTensorMap(args.q, args.rows, args.heads, C::Qk, args.ldQ, Shape::kColumns),
      makeTensorMap(args.k, args.rows, args.heads, C::Qk, args.ldK, Shape::kRows),
      makeTensorMap(args.v, args.rows, args.heads, C::V, args.ldV, Shape::kRows),
      makeTensorMap(gradients.dOut, args.rows, args.heads, C::V, gradients.ldDOut,
                    Shape::kColumns)};
  const LaunchShape shape{blocksOfList<Shape::kRows>(args), dim3(kHopperThreads),
                          Shape::kSharedBytes};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionBackwardHopper<C, Part>), args, gradients, maps,
                     space, list, pairBits);
}

template <class C>
void backwardHopper(const AttentionArgs<Bf16> &args, const AttentionGradients<Bf16> &gradients,
                    const BackwardSpace &space, const TileList &list, int pairBits,
                    cudaStream_t stream) {
  if constexpr (kernels::roundUp(C::Qk, 64) + kernels::roundUp(C::V, 64) <= 256) {
    backwardHopperPart<C, BackwardPart::all>(args, gradients, space, list, pairBits, stream);
  } else {
    backwardHopperPart<C, BackwardPart::values>(args, gradients, space, list, pairBits, stream);
    TileList again = list;
    ++again.taken;
    backwardHopperPart<C, BackwardPart::keys>(args, gradients, space, again, pairBits, stream);
  }
}

/// What comes before the main kernel of backward: a launch, and others for a list of many tiles.
template <class C, AttentionLevel Level>
void prepareBackward(const AttentionArgs<typename C::Element> &args,
                     const AttentionGradients<typename C::Element> &gradients,
                     const BackwardLayout &layout, cudaStream_t stream) {
  LaunchShape shape{prepareGrid<C>(args), dim3(kPrepareThreads)};
  if constexpr (Level == AttentionLevel::hopper) {
    constexpr int kRows = kHopperKeys, kColumns = HopperBackward<C, BackwardPart::keys>::kColumns;
    TileList list;
    if (args.parents * tilesOf(args, kRows) <= kPreparedTiles) {
      list = layout.list;
      ++shape.grid.x;
    } else {
      makeTileList<C, Over::queries, kRows, kColumns>(args, layout.list, stream);
    }
    GENREC_CUDA_LAUNCH(stream, shape, (attentionPrepare<C, true, kRows, kColumns>), args, gradients,
                       layout.space, list);
  } else if constexpr (Level == AttentionLevel::mma) {
    GENREC_CUDA_LAUNCH(stream, shape, (attentionPrepare<C, true, 0, 0>), args, gradients,
                       layout.space, TileList{});
  } else if constexpr (C::Softmax || kHasBiases<C>) {
    GENREC_CUDA_LAUNCH(stream, shape, (attentionPrepare<C, false, 0, 0>), args, gradients,
                       layout.space, TileList{});
  }
}

} // namespace detail

/// Bytes of memory, aligned to 256, that attentionForward wants.
template <class C, AttentionLevel Level>
int64_t attentionForwardBytes(const AttentionArgs<typename C::Element> &args) {
  if constexpr (Level == AttentionLevel::hopper)
    return detail::ForwardLayout::of<C>(args, nullptr).bytes;
  return 0;
}

/// Computes `out`, and `logSumExp` for softmax.
template <class C, AttentionLevel Level>
void attentionForward(const AttentionArgs<typename C::Element> &args, void *memory,
                      cudaStream_t stream) {
  static_assert(Level == AttentionLevel::plain || kHasTensorCoreKernels<C>,
                "tensor cores take bfloat16 values and sizes that are multiples of 8 up to 256");
  if (!detail::mayHavePairs(args))
    return;
  if constexpr (Level == AttentionLevel::hopper)
    detail::forwardHopper<C>(args, memory, stream);
  else if constexpr (Level == AttentionLevel::mma)
    detail::forwardMma<C>(args, stream);
  else
    detail::forwardPlain<C>(args, stream);
}

/// Bytes of memory, aligned to 256, that attentionBackward wants.
template <class C, AttentionLevel Level>
int64_t attentionBackwardBytes(const AttentionArgs<typename C::Element> &args) {
  return detail::BackwardLayout::of<C>(args, Level, nullptr).bytes;
}

/// Computes dQ, dK, dV and the bias gradients, the scores once more from q and
/// k; softmax uses logSumExp and out.
template <class C, AttentionLevel Level>
void attentionBackward(const AttentionArgs<typename C::Element> &args,
                       const AttentionGradients<typename C::Element> &gradients, void *memory,
                       cudaStream_t stream) {
  static_assert(Level == AttentionLevel::plain || kHasTensorCoreKernels<C>,
                "tensor cores take bfloat16 values and sizes that are multiples of 8 up to 256");
  const auto layout = detail::BackwardLayout::of<C>(args, Level, memory);
  const BackwardSpace &space = layout.space;
  const int pairBits = bitsOfCount(args.rows * args.maxLength * args.heads);
  const bool hasPairs = detail::mayHavePairs(args);
  GENREC_CUDA_CHECK(cudaMemsetAsync(memory, 0, static_cast<size_t>(layout.clearedBytes), stream));
  if (hasPairs) {
    detail::prepareBackward<C, Level>(args, gradients, layout, stream);
    if constexpr (Level == AttentionLevel::hopper)
      detail::backwardHopper<C>(args, gradients, space, layout.list, pairBits, stream);
    else if constexpr (Level == AttentionLevel::mma)
      detail::backwardMma<C>(args, gradients, space, pairBits, stream);
    else
      detail::backwardPlain<C>(args, gradients, space, pairBits, stream);
    if constexpr (Level != AttentionLevel::plain) {
      const LaunchShape shape{detail::prepareGrid<C>(args), dim3(kPrepareThreads)};
      GENREC_CUDA_LAUNCH(stream, shape, (attentionQueryGradients<C>), args, gradients, space,
                         pairBits);
    }
  }
  if constexpr (kHasBiases<C>)
    if (Level == AttentionLevel::plain || !hasPairs) {
      const int64_t buckets = std::max(args.positionBuckets, args.timeBuckets);
      const LaunchShape shape{dim3(static_cast<unsigned>(blocksFor(buckets, kPrepareThreads))),
                              dim3(kPrepareThreads)};
      GENREC_CUDA_LAUNCH(stream, shape, (attentionBiasGradients<C>), args, gradients, space,
                         pairBits);
    }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_ATTENTION_H
