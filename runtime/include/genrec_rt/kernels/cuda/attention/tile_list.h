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

#include "genrec_rt/kernels/cuda/attention/prepare.h"
#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// Bytes that the tiles of a part of the list share: most of the L2 cache of an H100 or H200
/// (50 MB), which also holds what the part before and the tiles' own rows leave in it.
constexpr int64_t kPartBytes = 32 << 20;
/// Of these, bytes per row and head: k and v in forward, q, dOut and the sums of dQ in backward.
template <class C, Over What>
constexpr int64_t kSharedRowBytes =
    2 * (C::Qk + C::V) + (What == Over::queries ? 4 * kQueryPanels<C> * kPanelColumns : 0);

constexpr int kListThreads = 256;
/// Tiles are sorted by part (longer parts where there would be more) and by length in so many
/// classes.
constexpr int kParts = 128, kClasses = 32, kBins = kParts * kClasses;

/// Memory of a list of tiles.
struct TileList {
  // Cleared before a call:
  int *counts = nullptr; ///< [kBins] tiles
  int *placed = nullptr; ///< [kBins] of which so many stand in `tiles`
  int *taken = nullptr;  ///< [1] tiles that blocks have taken
  // Written before it is read:
  int *count = nullptr;           ///< [1] of all tiles
  AttentionTile *tiles = nullptr; ///< [heads * tiles of all lists]
};

/// The bin of a tile: of the part that its list and head are in, counted from the last one, so that
/// the last part, whose short tiles even out when blocks end, is a whole one.
template <class C, Over What, int Columns, class Unit>
__device__ int tileBin(const AttentionArgs<typename C::Element> &args, const Unit &unit,
                       int64_t rowsOfLists) {
  const int64_t all = rowsOfLists * args.heads;
  const int64_t end =
      (unit.first - args.offsets[0]) * args.heads + int64_t(unit.head + 1) * unit.mask.length;
  constexpr int64_t kPartRows = kPartBytes / kSharedRowBytes<C, What>;
  const int64_t least = all / kParts + 1;
  const int64_t fromEnd = (all - end) / (kPartRows > least ? kPartRows : least);
  const RowRange seen =
      What == Over::keys ? unit.mask.keysOf(unit.range()) : unit.mask.queriesOf(unit.range());
  const int64_t longest = (args.maxLength + Columns - 1) / Columns + 1;
  const int64_t length = (seen.end + Columns - 1) / Columns - seen.begin / Columns;
  const int part = kParts - 1 - static_cast<int>(fromEnd < kParts ? fromEnd : kParts - 1);
  const int64_t shorter = (longest - length) * kClasses / longest;
  return part * kClasses + static_cast<int>(shorter < 0 ? 0 : shorter);
}

/// Calls body(unit, bin) for every tile that has rows.
template <class C, Over What, int Rows, int Columns, class Body>
__device__ void forTiles(const AttentionArgs<typename C::Element> &args, Body body) {
  const int64_t lists = listsOf(args), rows = args.offsets[lists] - args.offsets[0];
  const int64_t tiles = (args.maxLength + Rows - 1) / Rows;
  for (int64_t i = threadInGrid(); i < lists * tiles; i += threadsInGrid()) {
    AttentionUnit<C, Rows> unit(
        args, AttentionTile{static_cast<int>(i / tiles), 0, static_cast<int>(i % tiles) * Rows, 0});
    for (; unit.hasRows() && unit.head < args.heads; ++unit.head)
      body(unit, tileBin<C, What, Columns>(args, unit, rows));
  }
}

/// Counts the tiles of every bin.
template <class C, Over What, int Rows, int Columns>
__global__ void __launch_bounds__(kListThreads)
    attentionCountTiles(AttentionArgs<typename C::Element> args, TileList list) {
  forTiles<C, What, Rows, Columns>(args,
                                   [&](const auto &, int bin) { atomicAdd(list.counts + bin, 1); });
}

/// Writes the list; after attentionCountTiles.
template <class C, Over What, int Rows, int Columns>
__global__ void __launch_bounds__(kListThreads)
    attentionPlaceTiles(AttentionArgs<typename C::Element> args, TileList list) {
  __shared__ int begins[kBins];
  constexpr int kEach = kBins / kListThreads;
  const int firstBin = static_cast<int>(threadIdx.x) * kEach;
  int sum = 0, total = 0;
  for (int b = firstBin; b < firstBin + kEach; ++b)
    sum += list.counts[b];
  int begin = exclusiveBlockSum<kListThreads>(sum, total);
  for (int b = firstBin; b < firstBin + kEach; ++b) {
    begins[b] = begin;
    begin += list.counts[b];
  }
  __syncthreads(); // every bin's begin is there
  if (threadInGrid() == 0)
    *list.count = total;
  forTiles<C, What, Rows, Columns>(args, [&](const auto &unit, int bin) {
    list.tiles[begins[bin] + atomicAdd(list.placed + bin, 1)] = {static_cast<int>(unit.list),
                                                                 unit.head, unit.begin, 0};
  });
}

/// Tile `index` of the list; one without rows behind the last one.
__device__ __forceinline__ AttentionTile tileAt(const TileList &list, int index) {
  return index < *list.count ? list.tiles[index] : AttentionTile{-1, 0, 0, 0};
}

/// The next tile that no block has taken. Called by one thread of a block.
__device__ __forceinline__ AttentionTile takeTile(const TileList &list) {
  return tileAt(list, atomicAdd(list.taken, 1));
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_LIST_H
