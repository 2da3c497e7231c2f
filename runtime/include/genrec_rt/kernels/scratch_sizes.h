//===- scratch_sizes.h - How much scratch kernels ask for --------*- C++ -*-===//
//
// The part of footprint.h that kernels share: how work is cut where every chunk has
// sums of its own, and bounds on the scratch of each kind of call. Functions are static,
// since sources for several instruction sets include this header.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SCRATCH_SIZES_H
#define GENREC_RT_KERNELS_SCRATCH_SIZES_H

#include <stdint.h>

namespace genrec::rt {

/// How rows are cut where each chunk has sums of its own.
struct SumChunks {
  int64_t grain, count;
};

/// Cuts `rows`, at least `least` per chunk, where a chunk has `floats` sums.
static inline SumChunks cutForSums(int64_t rows, int64_t least, int64_t floats) {
  constexpr int64_t kMostBytes = int64_t(8) << 20, kFewest = 4, kMost = 64;
  int64_t most = kMostBytes / (floats * 4 + 1);
  most = most < kFewest ? kFewest : most > kMost ? kMost : most;
  int64_t even = (rows + most - 1) / most;
  int64_t grain = even > least ? even : least;
  return {grain, (rows + grain - 1) / grain};
}

static inline int64_t sumScratchBytes(SumChunks chunks, int64_t floats) {
  return (chunks.count ? chunks.count : 1) * floats * 4;
}

/// Chunks whose sums a contraction over rows, [m, k]^T [m, n], keeps apart at most, 2 MiB if
/// that leaves 8 (8 MiB, 32 chunks, of 256 x 256: 100 GFLOP/s on an EPYC core, against 106); `n`
/// is a number of whole vectors.
static constexpr int64_t mostRowChunks(int64_t k, int64_t n) {
  int64_t fit = (int64_t(1) << 19) / (k * n);
  return fit < 8 ? 8 : fit > 32 ? 32 : fit;
}

/// Of the widest vectors: what follows bounds the kernels for all others, too.
static constexpr int64_t kWidestLanes = 16;

static inline int64_t wholeVectors(int64_t floats) {
  return (floats + kWidestLanes - 1) / kWidestLanes * kWidestLanes;
}

/// gemm.h: x[m, k] w[k, n], and the gradient of w.
static inline int64_t matmulScratchBound(int64_t k, int64_t n) {
  return 4 * (k * wholeVectors(n) + kWidestLanes * wholeVectors(k));
}
static inline int64_t matmulRowsScratchBound(int64_t k, int64_t n) {
  // Narrower vectors may cut into more chunks, of less each.
  return 4 * mostRowChunks(k, n) * k * wholeVectors(n);
}

/// Distinct rows whose products are in memory at a time, unless one lookup has more.
static constexpr int64_t kDistinctRowsAtOnce = 1024;
/// Distinct rows whose summed gradients are multiplied while they are in the first-level cache.
static constexpr int64_t kDistinctBlock = 48;

/// step_distinct.h: products of the distinct rows of lookups over `rows` rows, [., k] w[k, n].
static inline int64_t distinctLinearScratchBound(int64_t rows, int64_t k, int64_t n,
                                                 int64_t threads) {
  int64_t most = rows > kDistinctRowsAtOnce ? rows : kDistinctRowsAtOnce;
  return 4 * most * wholeVectors(n) + threads * matmulScratchBound(k, n);
}
/// The same for its gradients: a block of sums per thread, those of the weight by chunks of rows,
/// the weight packed, and the rows sorted.
static inline int64_t distinctLinearGradScratchBound(int64_t rows, int64_t k, int64_t n,
                                                     int64_t threads) {
  int64_t chunks = mostRowChunks(k, wholeVectors(n)), few = rows / (5 * kDistinctBlock) + 1;
  return 4 * wholeVectors(n) * (threads * kDistinctBlock + (few < chunks ? few : chunks) * k) +
         matmulScratchBound(n, k) + 4 * (2 * rows + 6) + 5 * 64;
}

/// Sizes of an attention call: per head, and of its bias tables.
struct AttentionSizes {
  int64_t qk, v;
  int64_t longest; ///< rows of the longest list
  int64_t positionBuckets, timeBuckets;
};

/// attention.h, forward or backward.
static inline int64_t attentionScratchBound(AttentionSizes sizes, int64_t threads, bool backward) {
  constexpr int64_t kQueries = 48, kChunks = 64, kCopies = 4, kTimeTable = 6144, kQueryTile = 16;
  int64_t padded = wholeVectors(sizes.longest) + kWidestLanes;
  int64_t distances = sizes.positionBuckets ? 2 * padded : 0;
  int64_t perThread = padded * (sizes.qk + wholeVectors(sizes.v) + 2 * kWidestLanes);
  int64_t shared = distances;
  if (backward) {
    perThread += padded * (wholeVectors(sizes.qk) + 2 * kWidestLanes) +
                 kQueries * (wholeVectors(sizes.qk) + wholeVectors(sizes.v) + 2 * padded) +
                 kCopies * distances + sizes.timeBuckets * kWidestLanes;
    shared += kChunks * (sizes.positionBuckets + sizes.timeBuckets);
  } else {
    perThread += kQueryTile * padded;
  }
  return 4 * (shared + threads * perThread) + (sizes.timeBuckets ? kTimeTable : 0);
}

} // namespace genrec::rt

#endif // GENREC_RT_KERNELS_SCRATCH_SIZES_H
