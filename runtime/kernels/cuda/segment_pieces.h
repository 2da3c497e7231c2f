//===- segment_pieces.h - Pieces of the sums of giants ------------*- C++ -*-===//
//
// The tree of segment_sums.h: a giant, a row with more than kMostSummed terms, is cut into pieces
// of that many, each added by a warp, and pieces into pieces, until a warp has few enough.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H
#define GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/scratch.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

namespace genrec::rt::cuda {

/// What a tree level sums: terms or pieces of the level below, kMostSummed at most.
struct Piece {
  int64_t begin, end;
};

/// How the terms of giants were cut into pieces.
struct Pieces {
  /// kMostSummed^4 terms are more than a batch may have.
  static constexpr int kMostLevels = 4;

  Piece *list;      ///< by level, from levelBegin on
  float *sums;      ///< [piece][dim]
  int64_t *firstOf; ///< by row: where its pieces of its highest level begin
  uint32_t *counts; ///< by level: its pieces

  /// Levels of the largest giant that `terms` terms may have.
  static int levelsOf(int64_t terms) {
    int levels = 0;
    for (; terms > kMostSummed; terms = blocksFor(terms, kMostSummed))
      ++levels;
    return levels;
  }
  /// Where pieces of `level`, from 1, begin. A row with pieces of a level has more than
  /// kMostSummed^level terms, so it has fewer than 2 n / kMostSummed^level of n terms.
  static int64_t levelBegin(int64_t terms, int level) {
    int64_t begin = 0;
    for (int below = 1; below < level; ++below) {
      terms = blocksFor(terms, kMostSummed);
      begin += 2 * terms;
    }
    return begin;
  }
  /// Pieces of all levels, where a row has `largest` terms at most.
  static int64_t mostOf(int64_t terms, int64_t largest) {
    return levelBegin(terms, levelsOf(largest) + 1);
  }
  /// Those of `rows` rows of `dim` columns, in scratch. Without giants they take none.
  static Pieces in(ScratchCursor &cursor, int64_t rows, int64_t dim, int64_t terms,
                   int64_t largest) {
    if (levelsOf(largest) == 0)
      return {};
    const int64_t most = mostOf(terms, largest);
    return {cursor.take<Piece>(most), cursor.take<float>(most * dim), cursor.take<int64_t>(rows),
            cursor.take<uint32_t>(kMostLevels + 1)};
  }
};

namespace {

constexpr int kPieceThreads = 128, kPieceWarps = kPieceThreads / kWarp;
/// Columns that a lane keeps at once: as many as fit beside the terms that are loaded together.
constexpr int kPieceColumns = 4;

__device__ int64_t pieceCount(int64_t items) { return (items + kMostSummed - 1) / kMostSummed; }
__device__ int64_t pieceWarp() { return static_cast<int64_t>(blockIdx.x) * kPieceWarps + warpOf(); }
__device__ int64_t pieceWarps() { return static_cast<int64_t>(gridDim.x) * kPieceWarps; }

/// Cuts the giants that lanes have, `items` each from `from` on (fewer: none), into pieces of a
/// level, for which `taken` counts from `levelBegin` on. Then these are what the lanes have.
__device__ void cutLevel(int64_t levelBegin, uint32_t *taken, int64_t &items, int64_t &from,
                         const Pieces &pieces) {
  const bool isCut = items > kMostSummed;
  const uint32_t cut = isCut ? static_cast<uint32_t>(pieceCount(items)) : 0;
  const uint32_t upTo = inclusiveWarpSum(cut), all = __shfl_sync(kAllLanes, upTo, kWarp - 1);
  uint32_t before = 0;
  if (laneOf() == 0)
    before = atomicAdd(taken, all);
  const int64_t begin = levelBegin + __shfl_sync(kAllLanes, before, 0);
  // Lanes take pieces, whosever they are: one may have thousands.
  for (uint32_t base = 0; base < all; base += kWarp) {
    const uint32_t at = base + static_cast<uint32_t>(laneOf());
    int owner = 0; // as many lanes have all of their pieces up to `at`
#pragma unroll
    for (int by = kWarp / 2; by > 0; by /= 2)
      owner += __shfl_sync(kAllLanes, upTo, owner + by - 1) <= at ? by : 0;
    const int64_t piece = at - __shfl_sync(kAllLanes, upTo - cut, owner);
    const int64_t first = __shfl_sync(kAllLanes, from, owner);
    const int64_t size = __shfl_sync(kAllLanes, items, owner);
    if (at < all)
      pieces.list[begin + at] = {first + piece * kMostSummed,
                                 first + min(size, (piece + 1) * kMostSummed)};
  }
  if (isCut) {
    from = begin + upTo - cut;
    items = cut;
  }
}

/// Cuts giants, and their pieces, on all levels. Where pieces are put depends on what runs when,
/// what they hold does not.
__global__ void __launch_bounds__(kPieceThreads)
    cutPieces(int64_t count, const uint32_t *used, const int64_t *segments, int64_t terms,
              Pieces pieces) {
  const int64_t present = used ? min(count, static_cast<int64_t>(*used)) : count;
  for (int64_t base = pieceWarp() * kWarp; base < present; base += pieceWarps() * kWarp) {
    const int64_t u = base + laneOf();
    int64_t from = u < present ? segments[u] : 0;
    int64_t items = u < present ? segments[u + 1] - from : 0;
    const bool isGiant = items > kMostSummed;
    int64_t levelBegin = 0, levelTerms = terms; // Pieces::levelBegin
    for (int level = 1; __any_sync(kAllLanes, items > kMostSummed); ++level) {
      cutLevel(levelBegin, pieces.counts + level, items, from, pieces);
      levelTerms = pieceCount(levelTerms);
      levelBegin += 2 * levelTerms;
    }
    if (isGiant)
      pieces.firstOf[u] = from;
  }
}

/// A warp per piece of `level`, which begins at `begin`. `add(piece, base, total)` adds this lane's
/// columns base, base + 32, … below dim, kEach of them, of what is in a piece; all lanes call it.
template <int kEach, class Add>
__device__ void sumLevel(int level, int64_t begin, int64_t dim, const Pieces &pieces,
                         const Add &add) {
  const int64_t end = begin + pieces.counts[level];
  for (int64_t p = begin + pieceWarp(); p < end; p += pieceWarps()) {
    const Piece piece = pieces.list[p];
    for (int64_t base = laneOf(); base - laneOf() < dim; base += kWarp * kEach) {
      float total[kEach] = {};
      add(piece, base, total);
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < dim)
          pieces.sums[p * dim + base + c * kWarp] = total[c];
    }
  }
}

template <int kEach>
__global__ void __launch_bounds__(kPieceThreads)
    sumPiecesBelow(int level, int64_t begin, int64_t dim, Pieces pieces) {
  sumLevel<kEach>(level, begin, dim, pieces,
                  [&](const Piece &piece, int64_t base, float (&total)[kEach]) {
                    detail::addPieces(pieces.sums, piece.begin, piece.end, base, dim, total);
                  });
}

inline LaunchShape shapeOfPieces(int64_t items, int64_t perBlock) {
  return shapeOfThreads(items * (kPieceThreads / perBlock), kPieceThreads);
}

/// Cuts and adds all levels. Row u of `count`, of which *used exist (null: all), has the terms
/// [offsets[u], offsets[u + 1]); `terms` of them are there at most, of one row `largest`.
/// `sumTerms(most)` launches what adds the terms of the pieces of level 1, which are the first of
/// the list, up to `most`.
template <class SumTerms>
void sumPieces(int64_t count, const uint32_t *used, int64_t dim, const int64_t *offsets,
               int64_t terms, int64_t largest, const Pieces &pieces, cudaStream_t stream,
               const SumTerms &sumTerms) {
  const int levels = Pieces::levelsOf(largest);
  if (levels == 0)
    return;
  GENREC_CUDA_CHECK(
      cudaMemsetAsync(pieces.counts, 0, sizeof(uint32_t) * (Pieces::kMostLevels + 1), stream));
  GENREC_CUDA_LAUNCH(stream, shapeOfPieces(count, kPieceThreads), cutPieces, count, used, offsets,
                     terms, pieces);
  sumTerms(Pieces::levelBegin(terms, 2));
  for (int level = 2; level <= levels; ++level) {
    const int64_t begin = Pieces::levelBegin(terms, level);
    GENREC_CUDA_LAUNCH(stream,
                       shapeOfPieces(Pieces::levelBegin(terms, level + 1) - begin, kPieceWarps),
                       dim <= kWarp ? sumPiecesBelow<1> : sumPiecesBelow<kPieceColumns>, level,
                       begin, dim, pieces);
  }
}

template <int kEach>
__global__ void __launch_bounds__(kPieceThreads)
    sumSegmentPieces(SegmentTerms terms, int64_t dim, Pieces pieces) {
  sumLevel<kEach>(1, 0, dim, pieces, [&](const Piece &piece, int64_t base, float (&total)[kEach]) {
    detail::addTerms(terms, piece.begin, piece.end, base, dim, total);
  });
}

/// Adds the pieces of giants; what it returns has the sums of all rows (segments_warp.h).
/// Arguments as of sumPieces.
inline SegmentSums sumGiants(int64_t count, const uint32_t *used, int64_t dim,
                             const SegmentTerms &terms, const int64_t *offsets, int64_t occurrences,
                             int64_t largest, const Pieces &pieces, cudaStream_t stream) {
  sumPieces(
      count, used, dim, offsets, occurrences, largest, pieces, stream, [&](int64_t mostPieces) {
        GENREC_CUDA_LAUNCH(stream, shapeOfPieces(mostPieces, kPieceWarps),
                           dim <= kWarp ? sumSegmentPieces<1> : sumSegmentPieces<kPieceColumns>,
                           terms, dim, pieces);
      });
  return {terms, offsets, pieces.firstOf, pieces.sums, dim, Pieces::levelsOf(largest)};
}

} // namespace
} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H
