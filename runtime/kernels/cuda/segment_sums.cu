//===- segment_sums.cu - Sums of the gradients of distinct rows -----------===//

#include "genrec_rt/kernels/cuda/segment_sums.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
/// Columns that a lane keeps at once.
constexpr int kEach = 4;
constexpr int64_t kChunk = kWarp * kEach;

LaunchShape shapeOf(int64_t items, int64_t perBlock) {
  constexpr int64_t kMostBlocks = 16384;
  return {
      dim3(static_cast<unsigned>(std::clamp<int64_t>(blocksFor(items, perBlock), 1, kMostBlocks))),
      dim3(kThreads)};
}

__device__ int64_t warpInGrid() { return static_cast<int64_t>(blockIdx.x) * kWarps + warpOf(); }
__device__ int64_t warpsInGrid() { return static_cast<int64_t>(gridDim.x) * kWarps; }

/// What a tree level sums: occurrences or pieces of the level below, kMostSummed at most.
struct Piece {
  int64_t begin, end;
};

/// How the occurrences of giants were cut into pieces.
struct Pieces {
  Piece *list;
  float *sums;      ///< [piece][dim]
  int64_t *firstOf; ///< by row: where its pieces of the highest level so far begin
  uint32_t *counts; ///< by level: pieces of that level and of those below
};

__device__ int64_t pieceCount(int64_t items) { return (items + kMostSummed - 1) / kMostSummed; }

/// Cuts what is more than kMostSummed items before `level` (from 1). Where pieces are put depends
/// on what runs when, what they hold does not.
__global__ void __launch_bounds__(kThreads)
    cutPieces(int64_t count, const uint32_t *used, const int64_t *segments, int level,
              Pieces pieces) {
  const int64_t present = used ? min(count, static_cast<int64_t>(*used)) : count;
  for (int64_t base = warpInGrid() * kWarp; base < present; base += warpsInGrid() * kWarp) {
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

/// A warp per piece of `level`.
__global__ void __launch_bounds__(kThreads)
    sumLevel(int level, int64_t dim, SegmentTerms terms, Pieces pieces) {
  const int64_t end = pieces.counts[level];
  for (int64_t p = pieces.counts[level - 1] + warpInGrid(); p < end; p += warpsInGrid()) {
    const Piece piece = pieces.list[p];
    for (int64_t base = laneOf(); base < dim; base += kChunk) {
      float total[kEach] = {};
      if (level == 1)
        detail::addTerms(terms, piece.begin, piece.end, base, dim, total);
      else
        detail::addPieces(pieces.sums, piece.begin, piece.end, base, dim, total);
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < dim)
          pieces.sums[p * dim + base + c * kWarp] = total[c];
    }
  }
}

/// As an argument of a kernel, what the host knows needs no memory of the host that stays.
__global__ void writeSums(SegmentSums from, SegmentSums *to) { *to = from; }

} // namespace

const SegmentSums *SegmentReduction::run(int64_t count, const uint32_t *used, int64_t dim,
                                         const SegmentTerms &terms, const int64_t *offsets,
                                         int64_t occurrences, cudaStream_t stream) {
  int levels = 0;
  for (int64_t items = occurrences; items > kMostSummed; items = blocksFor(items, kMostSummed))
    ++levels;
  Pieces pieces = {};
  if (levels > 0) {
    // A giant of n occurrences has fewer than 2 n / kMostSummed pieces, and a level above the next
    // has a hundredth of that.
    const int64_t most = 3 * blocksFor(occurrences, kMostSummed);
    static_assert(sizeof(Piece) == 2 * sizeof(int64_t));
    pieces = {reinterpret_cast<Piece *>(bounds.ensure(2 * most, stream)),
              partSums.ensure(most * dim, stream), firstOf.ensure(count, stream),
              counts.ensure(kMostLevels + 1, stream)};
    GENREC_CUDA_CHECK(cudaMemsetAsync(pieces.counts, 0, sizeof(uint32_t), stream));
    for (int level = 1; level <= levels; ++level) {
      GENREC_CUDA_CHECK(cudaMemcpyAsync(pieces.counts + level, pieces.counts + level - 1,
                                        sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream));
      GENREC_CUDA_LAUNCH(stream, shapeOf(count, kThreads), cutPieces, count, used, offsets, level,
                         pieces);
      GENREC_CUDA_LAUNCH(stream, shapeOf(most, kWarps), sumLevel, level, dim, terms, pieces);
    }
  }
  const SegmentSums result{terms, offsets, pieces.firstOf, pieces.sums, dim, levels};
  SegmentSums *onDevice = sums.ensure(1, stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), writeSums, result, onDevice);
  return onDevice;
}

} // namespace genrec::rt::cuda
