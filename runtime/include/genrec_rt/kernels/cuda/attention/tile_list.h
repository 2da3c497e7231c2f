//===- tile_list.h - Tiles of rows in the order in which blocks take them -*- C++ -*-===//
//
// The tiles of queries of a forward call, or of keys of a backward call, in a list made on the
// device from the lists' lengths: those that take longest first, so that blocks end together
// (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969), but within parts whose rows stay in
// the L2 cache: tiles of one list and head read the same ones, and 132 blocks that each read
// others would wait for memory.
//
// Tiles that take equally long stand in any order: no result depends on it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_LIST_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_LIST_H

#include "genrec_rt/kernels/cuda/attention/backward_space.h"
#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// Bytes that the tiles of a part of the list share: most of the L2 cache of an H100 or H200
/// (50 MB), which also holds what the part before and the tiles' own rows leave in it.
constexpr int64_t kPartBytes = 32 << 20;
/// Of these, bytes per row and head: k and v in forward, q, dOut and the sums of dQ in backward.
template <class C, Over What>
constexpr int64_t kSharedRowBytes =
    2 * (C::Qk + C::V) + (What == Over::queries ? 4 * kQueryPanels<C> * kPanelColumns : 0);

constexpr int kListThreads = 256, kOneListThreads = 1024;
/// As many tiles of all heads are listed by one block: longer lists by several, in two launches and
/// a memset. Three launches that each wait for the one before took 14 of the 220 us of a forward
/// call with 1,024 tiles.
constexpr int64_t kOneBlockTiles = 1 << 15;
/// As many tiles of one head are listed by a block of attentionPrepare, beside its other blocks. On
/// the host few, so that tests see longer lists.
constexpr int64_t kPreparedTiles = deviceSize(1 << 11, 8);
/// Tiles are sorted by part (longer parts where there would be more) and by length in so many
/// classes.
constexpr int kParts = 128, kClasses = 32, kBins = kParts * kClasses;

/// So many launches take the tiles of a list, each all of them.
constexpr int kListLaunches = 2;

/// Memory of a list of tiles.
struct TileList {
  // These lie one after the other; where one block makes the list, `counts` and `placed` are not
  // used.
  int *counts = nullptr; ///< [kBins] tiles
  int *placed = nullptr; ///< [kBins] of which so many stand in `tiles`
  int *taken = nullptr;  ///< [kListLaunches] tiles that blocks have taken

  int *count = nullptr;           ///< [1] of all tiles
  AttentionTile *tiles = nullptr; ///< [heads * tiles of all lists]
};

/// The bins of the tiles of a call: by the part that a tile's list and head are in, counted from
/// the last one, so that the last part, whose short tiles even out when blocks end, is a whole one.
template <class C, Over What, int Columns> struct TileBins {
  int64_t all;    ///< rows of all lists and heads
  double perPart; ///< 1 / rows of a part: divisions of 64 bits would take most of the time
  int longest;    ///< tiles of columns that a tile can have, and one

  __device__ explicit TileBins(const AttentionArgs<typename C::Element> &args)
      : all((args.offsets[listsOf(args)] - args.offsets[0]) * args.heads),
        longest(static_cast<int>((args.maxLength + Columns - 1) / Columns) + 1) {
    constexpr int64_t kPartRows = kPartBytes / kSharedRowBytes<C, What>;
    const int64_t least = all / kParts + 1;
    perPart = 1.0 / static_cast<double>(kPartRows > least ? kPartRows : least);
  }
  /// Of a tile of any head.
  template <class Unit> __device__ int classOf(const Unit &unit) const {
    const RowRange seen =
        What == Over::keys ? unit.mask.keysOf(unit.range()) : unit.mask.queriesOf(unit.range());
    const int length = (seen.end + Columns - 1) / Columns - seen.begin / Columns;
    const int shorter = (longest - length) * kClasses / longest;
    return shorter < 0 ? 0 : shorter;
  }
  template <class Unit>
  __device__ int partOf(const AttentionArgs<typename C::Element> &args, const Unit &unit) const {
    const int64_t end =
        (unit.first - args.offsets[0]) * args.heads + int64_t(unit.head + 1) * unit.mask.length;
    // The half keeps quotients that are whole from being rounded to less.
    const int fromEnd = static_cast<int>((static_cast<double>(all - end) + 0.5) * perPart);
    return kParts - 1 - (fromEnd < kParts ? fromEnd : kParts - 1);
  }
};

/// Calls body(unit, bin) for every tile that has rows, among `threads` threads.
template <class C, Over What, int Rows, int Columns, class Body>
__device__ void forTiles(const AttentionArgs<typename C::Element> &args, int64_t thread,
                         int64_t threads, Body body) {
  const int64_t lists = listsOf(args);
  const TileBins<C, What, Columns> bins(args);
  const int64_t tiles = (args.maxLength + Rows - 1) / Rows;
  for (int64_t i = thread; i < lists * tiles; i += threads) {
    AttentionUnit<C, Rows> unit(
        args, AttentionTile{static_cast<int>(i / tiles), 0, static_cast<int>(i % tiles) * Rows, 0});
    if (!unit.hasRows())
      continue;
    const int ofClass = bins.classOf(unit);
    for (; unit.head < args.heads; ++unit.head)
      body(unit, bins.partOf(args, unit) * kClasses + ofClass);
  }
}

/// Counts the tiles of every bin.
template <class C, Over What, int Rows, int Columns>
__global__ void __launch_bounds__(kListThreads)
    attentionCountTiles(AttentionArgs<typename C::Element> args, TileList list) {
  forTiles<C, What, Rows, Columns>(args, threadInGrid(), threadsInGrid(),
                                   [&](const auto &, int bin) { atomicAdd(list.counts + bin, 1); });
}

/// Turns the counts of bins into the places where their tiles begin; returns how many tiles there
/// are. Called by all threads of a block; `counts` may be `begins`.
template <int Threads> __device__ int beginsOfBins(const int *counts, int *begins) {
  constexpr int kEach = kBins / Threads;
  const int first = static_cast<int>(threadIdx.x) * kEach;
  int count[kEach], sum = 0, total = 0;
  for (int b = 0; b < kEach; ++b)
    sum += count[b] = counts[first + b];
  int begin = exclusiveBlockSum<Threads>(sum, total);
  for (int b = 0; b < kEach; ++b) {
    begins[first + b] = begin;
    begin += count[b];
  }
  __syncthreads(); // every bin's begin is there
  return total;
}

template <class Unit> __device__ AttentionTile tileOf(const Unit &unit) {
  return {static_cast<int>(unit.list), unit.head, unit.begin, 0};
}

/// Writes the list; after attentionCountTiles.
template <class C, Over What, int Rows, int Columns>
__global__ void __launch_bounds__(kListThreads)
    attentionPlaceTiles(AttentionArgs<typename C::Element> args, TileList list) {
  __shared__ int begins[kBins];
  const int total = beginsOfBins<kListThreads>(list.counts, begins);
  if (threadInGrid() == 0)
    *list.count = total;
  forTiles<C, What, Rows, Columns>(
      args, threadInGrid(), threadsInGrid(), [&](const auto &unit, int bin) {
        list.tiles[begins[bin] + atomicAdd(list.placed + bin, 1)] = tileOf(unit);
      });
}

/// Makes the list. Called by all threads of one block.
template <class C, Over What, int Rows, int Columns, int Threads>
__device__ __forceinline__ void listTiles(const AttentionArgs<typename C::Element> &args,
                                          const TileList &list) {
  __shared__ int next[kBins]; // tiles of a bin, then where its next one goes
  const int thread = static_cast<int>(threadIdx.x);
  for (int b = thread; b < kBins; b += Threads)
    next[b] = 0;
  __syncthreads(); // all are 0
  forTiles<C, What, Rows, Columns>(args, thread, Threads,
                                   [&](const auto &, int bin) { atomicAdd(next + bin, 1); });
  __syncthreads(); // all are counted
  const int total = beginsOfBins<Threads>(next, next);
  if (thread == 0) {
    *list.count = total;
    for (int launch = 0; launch < kListLaunches; ++launch)
      list.taken[launch] = 0;
  }
  forTiles<C, What, Rows, Columns>(args, thread, Threads, [&](const auto &unit, int bin) {
    list.tiles[atomicAdd(next + bin, 1)] = tileOf(unit);
  });
}

/// One block.
template <class C, Over What, int Rows, int Columns>
__global__ void __launch_bounds__(kOneListThreads)
    attentionListTiles(AttentionArgs<typename C::Element> args, TileList list) {
  listTiles<C, What, Rows, Columns, kOneListThreads>(args, list);
}

/// The next tile that no block has taken; behind the last one one without rows. Called by one
/// thread of a block.
__device__ __forceinline__ AttentionTile takeTile(const TileList &list) {
  const int index = atomicAdd(list.taken, 1);
  return index < *list.count ? list.tiles[index] : AttentionTile{-1, 0, 0, 0};
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_LIST_H
