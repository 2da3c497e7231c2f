//===- row_chunks.h - How rows are cut where sums are added up ---*- C++ -*-===//
//
// What targets agree on about sums over all rows of a kernel: chunks of rows, each added up in the
// order of its rows, then a tree over chunk numbers: i and i + 1, then i and i + 2, and so on. On a
// device each chunk has threads of its own; a thread of the CPU has several, one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_ROW_CHUNKS_H
#define GENREC_RT_ROW_CHUNKS_H

#include "genrec_rt/scattered_limits.h"

#include <stdint.h>

#if defined(__CUDACC__)
#define GENREC_ROW_CHUNKS __host__ __device__ inline
#else
#define GENREC_ROW_CHUNKS inline
#endif

namespace genrec::rt::kernels {

/// `count` chunks of `grain` rows, the last of fewer.
struct RowChunks {
  int64_t grain, count;
};

/// The most chunks where each has `floats` sums: at most 64 MiB of them on a device.
GENREC_ROW_CHUNKS int64_t mostChunks(int64_t floats) {
  constexpr int64_t kMostBytes = int64_t(64) << 20, kMost = 8192;
  const int64_t fit = kMostBytes / (floats * 4 + 1);
  return fit < 1 ? 1 : fit > kMost ? kMost : fit;
}

/// Cuts `rows` where a chunk has `floats` sums. A function of both alone, so results have the same
/// bits on every device.
GENREC_ROW_CHUNKS RowChunks cutRows(int64_t rows, int64_t floats) {
  const int64_t most = mostChunks(floats), even = (rows + most - 1) / most;
  const int64_t grain = even < kLeastChunk ? kLeastChunk : even;
  return {grain, (rows + grain - 1) / grain};
}

/// The most chunks that up to `rows` rows are cut into.
GENREC_ROW_CHUNKS int64_t mostChunks(int64_t rows, int64_t floats) {
  const int64_t most = mostChunks(floats), full = (rows + kLeastChunk - 1) / kLeastChunk;
  return full < most ? full : most;
}

} // namespace genrec::rt::kernels

#undef GENREC_ROW_CHUNKS

#endif // GENREC_RT_ROW_CHUNKS_H
