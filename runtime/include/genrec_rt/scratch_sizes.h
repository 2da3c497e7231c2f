//===- scratch_sizes.h - How much scratch kernels ask for --------*- C++ -*-===//
//
// The part of footprint.h that kernels share: how work is cut where every chunk has
// sums of its own, and bounds on the scratch of each kind of call. Functions are static,
// since sources for several instruction sets include this header.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SCRATCH_SIZES_H
#define GENREC_RT_SCRATCH_SIZES_H

#include "genrec_rt/row_chunks.h"

#include <stdint.h>

namespace genrec::rt {

/// How a parallel loop over rows is cut where each chunk has sums of its own: the kernel
/// is called for pieces of a chunk, whose sums are added in a tree; `slots` of these are there at a
/// time.
struct SumChunks {
  int64_t grain, count;
  int64_t pieceRows = grain, slots = 1;
};

/// The most sums of a kernel that runs piece by piece: clearing and adding more would cost as much
/// as a few rows.
static constexpr int64_t kMostPieceFloats = 1024;

/// Cuts `rows`, at least `least` per chunk, where a chunk has `floats` sums. Pieces are the chunks
/// of a device (row_chunks.h), and each chunk has a power of two of them, so that sums are added in
/// the tree of a device. Kernels with more sums have chunks of one piece.
static inline SumChunks cutForSums(int64_t rows, int64_t least, int64_t floats) {
  if (floats <= kMostPieceFloats) {
    constexpr int64_t kMostPieced = 128;
    const kernels::RowChunks pieces = kernels::cutRows(rows, floats);
    SumChunks chunks{pieces.grain, pieces.count, pieces.grain, 1};
    while (chunks.count > kMostPieced || (chunks.count > 1 && chunks.grain < least)) {
      chunks.grain *= 2;
      chunks.count = (chunks.count + 1) / 2;
      ++chunks.slots;
    }
    return chunks;
  }
  constexpr int64_t kMostBytes = int64_t(8) << 20, kFewest = 4, kMost = 64;
  int64_t most = kMostBytes / (floats * 4 + 1);
  most = most < kFewest ? kFewest : most > kMost ? kMost : most;
  int64_t even = (rows + most - 1) / most;
  int64_t grain = even > least ? even : least;
  return {grain, (rows + grain - 1) / grain, grain, 1};
}

static inline int64_t sumScratchBytes(SumChunks chunks, int64_t floats) {
  return (chunks.count ? chunks.count : 1) * chunks.slots * floats * 4;
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

static constexpr int64_t wholeVectors(int64_t floats) {
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

/// Rows whose scores a chunk of in-batch softmax has, and for how many others at a time: 64 KiB.
static constexpr int64_t kInBatchRows = 64, kInBatchOthers = 256;

/// in_batch_softmax.h, forward or backward: copies of the rows that count, with what belongs to each,
/// and per thread a block of scores, a block of gradients and packed factors.
static inline int64_t inBatchScratchBytes(int64_t rows, int64_t size, int64_t threads) {
  const int64_t scores = matmulScratchBound(size, kInBatchOthers),
                sums = matmulScratchBound(kInBatchOthers, size);
  const int64_t perThread =
      4 * kInBatchRows * (kInBatchOthers + wholeVectors(size)) + (scores > sums ? scores : sums);
  return rows * (2 * 4 * size + 8 + 8 + 4 * 4) + 8 * 64 + threads * (perThread + 64);
}

/// Distinct rows whose products are in memory at a time, unless one lookup has more.
static constexpr int64_t kDistinctRowsAtOnce = 1024;
/// Distinct rows whose summed gradients are multiplied while they are in the first-level cache.
static constexpr int64_t kDistinctBlock = 48;
/// The fewest distinct rows of a chunk.
static constexpr int64_t kLeastDistinctChunk = 5 * kDistinctBlock;

/// step_distinct.h: products of the distinct rows of lookups over `rows` rows, [., k] w[k, n].
static inline int64_t distinctLinearScratchBound(int64_t rows, int64_t k, int64_t n,
                                                 int64_t threads) {
  int64_t most = rows > kDistinctRowsAtOnce ? rows : kDistinctRowsAtOnce;
  return 4 * most * wholeVectors(n) + threads * matmulScratchBound(k, n);
}
/// How the distinct rows of a lookup are cut where each chunk has a gradient of the weight, [k, n].
static constexpr SumChunks distinctChunks(int64_t rows, int64_t k, int64_t n) {
  const int64_t most = mostRowChunks(k, wholeVectors(n)), even = (rows + most - 1) / most;
  int64_t grain = (even + kDistinctBlock - 1) / kDistinctBlock * kDistinctBlock;
  grain = grain < kLeastDistinctChunk ? kLeastDistinctChunk : grain;
  return {grain, (rows + grain - 1) / grain};
}
/// The most chunks of up to `rows` rows: fewer rows may have more of them.
static constexpr int64_t mostDistinctChunks(int64_t rows, int64_t k, int64_t n) {
  const int64_t chunks = mostRowChunks(k, wholeVectors(n)), few = rows / kLeastDistinctChunk + 1;
  return few < chunks ? few : chunks;
}
/// The same for its gradients: a block of sums per thread, those of the weight by chunks of rows,
/// the weight packed, and the rows sorted.
static inline int64_t distinctLinearGradScratchBound(int64_t rows, int64_t k, int64_t n,
                                                     int64_t threads) {
  return 4 * wholeVectors(n) * (threads * kDistinctBlock + mostDistinctChunks(rows, k, n) * k) +
         matmulScratchBound(n, k) + 4 * (2 * rows + 6) + 5 * 64;
}

/// How calls over a domain's rows run in blocks of whole lists (row_blocks.h). A block ends before
/// the list with which it would have more than `rows` rows; a longer list is a block of its own.
struct RowBlockSizes {
  int64_t rows;     ///< 0: the batch is not cut into blocks
  int64_t capacity; ///< rows of the largest block
};

/// The most lists in a block.
static constexpr int64_t kListsPerBlock = 256;
/// A batch with a list of more than kLongestList rows is not cut into blocks: one thread would
/// run the whole list. Nor is a batch with a list of more than kShortList rows that has fewer rows
/// than kFewestBlocks such lists: its blocks would be too few for all threads. Batches of shorter
/// lists are always cut.
static constexpr int64_t kLongestList = 960, kShortList = 256, kFewestBlocks = 16;

/// The most rows of a batch that is not cut into blocks, among batches of up to `rows` rows whose
/// longest list has `longest`; 0: all of them are cut.
static inline int64_t mostUncutRows(int64_t rows, int64_t longest) {
  if (longest <= kShortList)
    return 0;
  int64_t most = longest * kFewestBlocks - 1;
  return longest > kLongestList || rows < most ? rows : most;
}

/// The blocks of a batch of `rows` rows whose longest list has `longest`. Blocks of a small batch
/// are smaller, so that every thread has some.
static inline RowBlockSizes sizeRowBlocks(int64_t rows, int64_t longest) {
  // A training step of HSTU (10 KB per row) took the same time with 192 and with 400 rows.
  constexpr int64_t kFewest = 16, kMost = 192;
  if (mostUncutRows(rows, longest) == rows)
    return {0, rows};
  int64_t even = (rows + kFewestBlocks - 1) / kFewestBlocks;
  even = even < kFewest ? kFewest : even > kMost ? kMost : even;
  return {even, longest > even ? longest : even};
}

/// The number of chunks of blocks, each with partial sums of `bytes`: a power of two, so that
/// chunks are spread evenly over threads. It is 64, halved down to 4 while all sums take more than
/// 10 MiB, then halved while half as many chunks, with a block each, would hold all rows.
static inline int64_t countBlockChunks(int64_t rows, RowBlockSizes sizes, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t(10) << 20, kFewest = 4, kMost = 64;
  int64_t chunks = kMost;
  while (chunks > kFewest && chunks * bytes > kMostBytes)
    chunks /= 2;
  while (chunks > 1 && (chunks / 2) * sizes.rows >= rows)
    chunks /= 2;
  return chunks;
}

/// Rows padded to a multiple of 64: then values of every type fill whole cache lines.
static inline int64_t roundedRows(int64_t rows) { return (rows + 63) / 64 * 64; }

/// sizeof(genrec_domain).
static constexpr int64_t kDomainBytes = 64;

/// Memory of a chain of calls that runs in blocks, in bytes, and what the chain uses.
struct RowBlockNeeds {
  int64_t local;    ///< per row: values that only the chain reads
  int64_t kept;     ///< for all blocks: packed weights, tables
  int64_t perChunk; ///< partial sums of a chunk
  int64_t scratch;  ///< per worker: the largest scratch that a call asks for
  int64_t domains;  ///< number of domains of the step
  int64_t ops;      ///< number of ops in the chain
};

/// Memory of a worker: local values of a block, scratch, and the descriptors of the block.
static inline int64_t blockWorkerBytes(RowBlockSizes sizes, const RowBlockNeeds &needs) {
  int64_t described = (needs.domains + 1) * kDomainBytes + (kListsPerBlock + 1 + needs.ops) * 8;
  return roundedRows(sizes.capacity) * needs.local + (needs.scratch + 63) / 64 * 64 +
         (described + 63) / 64 * 64;
}

/// All memory of a chain over `rows` rows on `workers` threads.
static inline int64_t rowBlockBytes(int64_t rows, RowBlockSizes sizes, const RowBlockNeeds &needs,
                                    int64_t workers) {
  if (!sizes.rows)
    return roundedRows(rows) * needs.local;
  return needs.kept + countBlockChunks(rows, sizes, needs.perChunk) * needs.perChunk +
         workers * blockWorkerBytes(sizes, needs);
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

#endif // GENREC_RT_SCRATCH_SIZES_H
