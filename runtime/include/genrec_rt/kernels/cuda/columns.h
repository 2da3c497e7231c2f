//===- columns.h - Transforms of many ragged columns at once ------*- C++ -*-===//
//
// Columns whose transforms are the same sequence of operations, but for their parameters,
// share one launch. What differs is a row of a table of descriptors on the device; what is
// the same, the program, is compiled. There is no dispatch per value.
//
// Models do not call this: they run the kernel that fuse-transforms emits (column_bodies.h),
// whose columns are over the rows of domains, with lists cut before by list_domains.h. This
// does both in one call, for the benchmark that is asked for: hundreds of ragged columns
// that are cut and transformed. Operations are what emitted bodies call.
//
//   using Program = ColumnProgram<HashXxh3, Modulo>;
//   runColumns<Program>(descriptors, columns, mostValues, isCut, stream);
//
// A column is ragged: row r has values[offsets[r] … offsets[r + 1]), of which the last (or first)
// `most` are kept. Output offsets are computed on the device, so the host waits for
// nothing: it bounds the tiles by the values before truncation.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_COLUMNS_H
#define GENREC_RT_KERNELS_CUDA_COLUMNS_H

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/offsets.h"
#include "genrec_rt/kernels/cuda/remainder.h"
#include "genrec_rt/kernels/shared/hash.h"

#include <algorithm>

namespace genrec::rt::cuda {

/// What an operation may need; each column has one of these per operation.
struct ColumnParameters {
  int64_t seed = 0;
  int64_t bits = 63;             ///< hashes: the low bits kept, 1 to 63
  int64_t divisor = 1;           ///< Modulo
  const double *edges = nullptr; ///< Bucketize: ascending, on the device
  int64_t edgeCount = 0;
};

constexpr int kMostColumnOps = 4;

struct ColumnDescriptor {
  const int64_t *values = nullptr;
  const int64_t *offsets = nullptr; ///< [rows + 1]
  int64_t rows = 0;
  int64_t most = INT64_MAX; ///< values kept of a row
  bool keepsFirst = false;  ///< the first `most`, not the last
  int64_t *out = nullptr;
  int64_t *outOffsets = nullptr; ///< [rows + 1]
  ColumnParameters parameters[kMostColumnOps];
};

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Of the eight bytes of a value: XXH3_64bits_withSeed, and the first 64 bits of
/// MurmurHash3_x64_128.
struct HashXxh3 {
  __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    return kernels::hashXxh3(value, p.seed, p.bits);
  }
};
struct HashMurmur3 {
  __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    return kernels::hashMurmur3(value, p.seed, p.bits);
  }
};

/// The Euclidean remainder, in [0, divisor).
struct Modulo {
  __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    const int64_t rest = kernels::remainderBy(value, p.divisor);
    return rest < 0 ? rest + p.divisor : rest;
  }
};

/// The number of edges that are <= value.
struct Bucketize {
  __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    // Without a branch: a load and a selection per step.
    const double wanted = static_cast<double>(value);
    int64_t first = 0;
    for (int64_t count = p.edgeCount; count > 0;) {
      const int64_t half = (count + 1) / 2;
      first = p.edges[first + half - 1] <= wanted ? first + half : first;
      count -= half;
    }
    return first;
  }
};

/// Operations one after another; number n takes parameters[n].
template <class... Ops> struct ColumnProgram {
  static_assert(sizeof...(Ops) <= kMostColumnOps);
  __device__ static int64_t run(int64_t value, const ColumnParameters *parameters) {
    ((value = Ops::apply(value, *parameters++)), ...);
    return value;
  }
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace detail {

constexpr int kColumnThreads = 256;
constexpr int kColumnTile = 2048;

/// A block per column: where rows begin when the rest is cut off. A warp has kLayOutEach times 32
/// rows at a time, neighbours on neighbouring lanes, so that most columns take a round or two.
constexpr int kLayOutThreads = 512, kLayOutEach = 8;
__global__ void __launch_bounds__(kLayOutThreads) layOutColumns(const ColumnDescriptor *columns) {
  const ColumnDescriptor &column = columns[blockIdx.x];
  const int64_t rows = column.rows, most = column.most;
  const int64_t *offsets = column.offsets;
  int64_t *out = column.outOffsets;
  int64_t before = 0;
  for (int64_t base = 0; base < rows; base += kLayOutThreads * kLayOutEach) {
    const int64_t first = base + warpOf() * kWarp * kLayOutEach + laneOf();
    int64_t kept[kLayOutEach], at[kLayOutEach] = {}, ofWarp = 0, total;
#pragma unroll
    for (int i = 0; i < kLayOutEach; ++i) {
      const int64_t row = first + i * kWarp;
      kept[i] = min(offsets[min(row + 1, rows)] - offsets[min(row, rows)], most);
    }
#pragma unroll
    for (int i = 0; i < kLayOutEach; ++i) {
      if (first - laneOf() + i * kWarp >= rows)
        break; // of the whole warp
      const int64_t upTo = inclusiveWarpSum(kept[i]);
      at[i] = ofWarp + upTo - kept[i];
      ofWarp += __shfl_sync(kAllLanes, upTo, kWarp - 1);
    }
    const int64_t ofWarpsBefore = __shfl_sync(
        kAllLanes, exclusiveBlockSum<kLayOutThreads>(laneOf() == 0 ? ofWarp : 0, total), 0);
#pragma unroll
    for (int i = 0; i < kLayOutEach; ++i)
      if (first + i * kWarp < rows)
        out[first + i * kWarp] = before + ofWarpsBefore + at[i];
    before += total;
  }
  if (threadIdx.x == 0)
    out[rows] = before;
}

/// A column that nothing was cut off of has as many tiles of values as these need; others may have
/// tiles without any. Each has one at least, which writes where its rows begin.
struct ColumnTiles {
  int64_t begin = 0, values = 0, tiles = 0;

  __device__ explicit ColumnTiles(const ColumnDescriptor &column)
      : begin(column.offsets[0]), values(column.offsets[column.rows] - begin),
        tiles(max((values + kColumnTile - 1) / kColumnTile, int64_t(1))) {}
};

/// Where the rows of a part of an uncut column begin.
__device__ inline void copyOffsets(const ColumnDescriptor &column, const ColumnTiles &all,
                                   int64_t tile) {
  constexpr int kDepth = 4; // loads of a thread under way together
  const int64_t *from = column.offsets;
  int64_t *to = column.outOffsets;
  const int64_t each = (column.rows + all.tiles) / all.tiles, // of rows + 1
      end = min((tile + 1) * each, column.rows + 1);
  for (int64_t row = tile * each + threadIdx.x; row < end; row += kDepth * kColumnThreads) {
    int64_t own[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      own[d] = row + d * kColumnThreads < end ? from[row + d * kColumnThreads] : 0;
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      if (row + d * kColumnThreads < end)
        to[row + d * kColumnThreads] = own[d] - all.begin;
  }
}

/// The values of a tile of a column, those from `first` on. Of an uncut one all that a thread has
/// are under way together.
template <class Program>
__device__ void transformTile(const ColumnDescriptor &column, int64_t first, int64_t begin,
                              int64_t total, bool isWhole) {
  // In registers: what is written could be them.
  ColumnParameters parameters[kMostColumnOps];
#pragma unroll
  for (int op = 0; op < kMostColumnOps; ++op)
    parameters[op] = column.parameters[op];
  const int64_t *values = column.values;
  int64_t *out = column.out;
  if (isWhole) {
    constexpr int kEach = kColumnTile / kColumnThreads;
    int64_t own[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + threadIdx.x + i * kColumnThreads;
      own[i] = at < total ? values[begin + at] : 0;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + threadIdx.x + i * kColumnThreads;
      if (at < total)
        out[at] = Program::run(own[i], parameters);
    }
    return;
  }
  for (int64_t at = first + threadIdx.x; at < min(first + kColumnTile, total);
       at += kColumnThreads) {
    const int64_t row = lastAtMost(column.outOffsets, column.rows + 1, at);
    const int64_t kept = column.outOffsets[row + 1] - column.outOffsets[row];
    const int64_t skipped = column.offsets[row + 1] - column.offsets[row] - kept;
    out[at] = Program::run(values[column.offsets[row] + (column.keepsFirst ? 0 : skipped) + at -
                                  column.outOffsets[row]],
                           parameters);
  }
}

/// A block per tile of any column. Which tiles are whose each block adds up for itself, as many
/// columns at a time as it has threads: two loads behind one another, where a search would take one
/// per step and another launch.
template <class Program>
__global__ void __launch_bounds__(kColumnThreads, 5)
    transformColumns(const ColumnDescriptor *columns, int64_t count, bool isCut) {
  __shared__ int64_t number, ofColumn;
  int64_t tile = blockIdx.x, before = 0;
  for (int64_t base = 0; base < count; base += kColumnThreads) {
    const int64_t mine = base + threadIdx.x;
    const int64_t own = mine < count ? ColumnTiles(columns[mine]).tiles : 0;
    int64_t sum;
    const int64_t begin = before + exclusiveBlockSum<kColumnThreads>(own, sum);
    for (before += sum; tile < before; tile += gridDim.x) {
      if (begin <= tile && tile < begin + own) {
        number = mine;
        ofColumn = tile - begin;
      }
      __syncthreads(); // the tile's column is known
      const ColumnDescriptor &column = columns[number];
      const ColumnTiles all(column);
      const int64_t total = isCut ? column.outOffsets[column.rows] : all.values;
      if (!isCut)
        copyOffsets(column, all, ofColumn);
      transformTile<Program>(column, ofColumn * kColumnTile, all.begin, total, total == all.values);
      __syncthreads(); // all have read it
    }
  }
}

} // namespace detail

/// Transforms `count` columns. `columns` is on the device; `mostValues` bounds the values of all
/// columns together. `isCut`: a row may have more values than are kept; where none has, it is one
/// launch.
template <class Program>
void runColumns(const ColumnDescriptor *columns, int64_t count, int64_t mostValues, bool isCut,
                cudaStream_t stream) {
  if (count == 0)
    return;
  const int64_t tiles =
      std::clamp<int64_t>(blocksFor(mostValues, detail::kColumnTile) + count, 1, kMostBlocks);
  if (isCut)
    GENREC_CUDA_LAUNCH(
        stream, (LaunchShape{dim3(static_cast<unsigned>(count)), dim3(detail::kLayOutThreads)}),
        detail::layOutColumns, columns);
  GENREC_CUDA_LAUNCH(
      stream, (LaunchShape{dim3(static_cast<unsigned>(tiles)), dim3(detail::kColumnThreads)}),
      detail::transformColumns<Program>, columns, count, isCut);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_COLUMNS_H
