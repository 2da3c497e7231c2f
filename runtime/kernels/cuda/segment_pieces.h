//===- segment_pieces.h - Pieces of the sums of giants ------------*- C++ -*-===//
//
// The tree of segment_sums.h: a giant, a row with more than kMostSummed terms, is cut into pieces
// of that many, each added by a warp, and pieces into pieces, until a warp has few enough.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H
#define GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

#include <algorithm>

namespace genrec::rt::cuda {

/// What a tree level sums: terms or pieces of the level below, kMostSummed at most.
struct Piece {
  int64_t begin, end;
};

/// How the terms of giants were cut into pieces.
struct Pieces {
  /// kMostSummed^4 terms are more than a batch may have.
  static constexpr int kMostLevels = 4;

  Piece *list;
  float *sums;      ///< [piece][dim]
  int64_t *firstOf; ///< by row: where its pieces of the highest level so far begin
  uint32_t *counts; ///< by level: pieces of that level and of those below

  /// Levels of the largest giant that `terms` terms may have.
  static int levelsOf(int64_t terms) {
    int levels = 0;
    for (; terms > kMostSummed; terms = blocksFor(terms, kMostSummed))
      ++levels;
    return levels;
  }
  /// Pieces of all levels. A giant of n terms has fewer than 2 n / kMostSummed, and a level above
  /// the next has a hundredth of that.
  static int64_t mostOf(int64_t terms) { return 3 * blocksFor(terms, kMostSummed); }
};

namespace {

constexpr int kPieceThreads = 128, kPieceWarps = kPieceThreads / kWarp;
/// Columns that a lane keeps at once.
constexpr int kPieceColumns = 4;

__device__ int64_t pieceCount(int64_t items) { return (items + kMostSummed - 1) / kMostSummed; }
__device__ int64_t pieceWarp() { return static_cast<int64_t>(blockIdx.x) * kPieceWarps + warpOf(); }
__device__ int64_t pieceWarps() { return static_cast<int64_t>(gridDim.x) * kPieceWarps; }

/// Cuts what is more than kMostSummed items before `level` (from 1). Where pieces are put depends
/// on what runs when, what they hold does not.
__global__ void __launch_bounds__(kPieceThreads)
    cutPieces(int64_t count, const uint32_t *used, const int64_t *segments, int level,
              Pieces pieces) {
  const int64_t present = used ? min(count, static_cast<int64_t>(*used)) : count;
  for (int64_t base = pieceWarp() * kWarp; base < present; base += pieceWarps() * kWarp) {
    const int64_t u = base + laneOf();
    const int64_t size = u < present ? segments[u + 1] - segments[u] : 0;
    const int64_t items = detail::itemsAfter(size, level - 1);
    int64_t from = 0;
    uint32_t to = 0;
    if (items > kMostSummed) {
      from = level == 1 ? segments[u] : pieces.firstOf[u];
      to = atomicAdd(pieces.counts + level, static_cast<uint32_t>(pieceCount(items)));
      pieces.firstOf[u] = to;
    }
    uint32_t giants = __ballot_sync(kAllLanes, items > kMostSummed);
    for (; giants; giants &= giants - 1) {
      const int lane = __ffs(static_cast<int>(giants)) - 1;
      const int64_t all = __shfl_sync(kAllLanes, items, lane);
      const int64_t begin = __shfl_sync(kAllLanes, from, lane);
      const uint32_t first = __shfl_sync(kAllLanes, to, lane);
      for (int64_t piece = laneOf(); piece < pieceCount(all); piece += kWarp)
        pieces.list[first + piece] = {begin + piece * kMostSummed,
                                      begin + min(all, (piece + 1) * kMostSummed)};
    }
  }
}

/// A warp per piece of `level`. `terms.add(begin, end, base, dim, total)` adds this lane's columns
/// base, base + 32, … below dim of terms [begin, end).
template <class Terms>
__global__ void __launch_bounds__(kPieceThreads)
    sumLevel(int level, int64_t dim, Terms terms, Pieces pieces) {
  const int64_t end = pieces.counts[level];
  for (int64_t p = pieces.counts[level - 1] + pieceWarp(); p < end; p += pieceWarps()) {
    const Piece piece = pieces.list[p];
    for (int64_t base = laneOf(); base < dim; base += kWarp * kPieceColumns) {
      float total[kPieceColumns] = {};
      if (level == 1)
        terms.add(piece.begin, piece.end, base, dim, total);
      else
        detail::addPieces(pieces.sums, piece.begin, piece.end, base, dim, total);
#pragma unroll
      for (int c = 0; c < kPieceColumns; ++c)
        if (base + c * kWarp < dim)
          pieces.sums[p * dim + base + c * kWarp] = total[c];
    }
  }
}

inline LaunchShape shapeOfPieces(int64_t items, int64_t perBlock) {
  return shapeOfThreads(items * (kPieceThreads / perBlock), kPieceThreads);
}

/// Cuts and adds all levels. Row u of `count`, of which *used exist (null: all), has the terms
/// [offsets[u], offsets[u + 1]); `terms` of them are there at most.
template <class Terms>
void sumPieces(int64_t count, const uint32_t *used, int64_t dim, const Terms &sources,
               const int64_t *offsets, int64_t terms, const Pieces &pieces, cudaStream_t stream) {
  const int levels = Pieces::levelsOf(terms);
  if (levels > 0)
    GENREC_CUDA_CHECK(cudaMemsetAsync(pieces.counts, 0, sizeof(uint32_t), stream));
  for (int level = 1; level <= levels; ++level) {
    GENREC_CUDA_CHECK(cudaMemcpyAsync(pieces.counts + level, pieces.counts + level - 1,
                                      sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream));
    GENREC_CUDA_LAUNCH(stream, shapeOfPieces(count, kPieceThreads), cutPieces, count, used, offsets,
                       level, pieces);
    GENREC_CUDA_LAUNCH(stream, shapeOfPieces(Pieces::mostOf(terms), kPieceWarps), sumLevel<Terms>,
                       level, dim, sources, pieces);
  }
}

} // namespace
} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SEGMENT_PIECES_H
