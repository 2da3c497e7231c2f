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
  /// Of several values, whose searches are under way together.
  template <int N>
  __device__ static void applyAll(int64_t (&values)[N], const ColumnParameters &p) {
    double wanted[N];
    uint32_t first[N] = {};
#pragma unroll
    for (int i = 0; i < N; ++i)
      wanted[i] = static_cast<double>(values[i]);
#pragma unroll 1
    for (auto count = static_cast<uint32_t>(p.edgeCount); count > 0;) {
      const uint32_t half = (count + 1) / 2;
      const double *edges = p.edges + half - 1;
#pragma unroll
      for (int i = 0; i < N; ++i)
        first[i] = edges[first[i]] <= wanted[i] ? first[i] + half : first[i];
      count -= half;
    }
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] = first[i];
  }
};

/// Operations one after another; number n takes parameters[n].
template <class... Ops> struct ColumnProgram {
  static_assert(sizeof...(Ops) <= kMostColumnOps);
  template <int N>
  __device__ static void run(int64_t (&values)[N], const ColumnParameters *parameters) {
    (apply<Ops>(values, *parameters++), ...);
  }

private:
  template <class Op, int N>
  __device__ static void apply(int64_t (&values)[N], const ColumnParameters &parameters) {
    if constexpr (requires { Op::applyAll(values, parameters); }) {
      Op::applyAll(values, parameters);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[i] = Op::apply(values[i], parameters);
    }
  }
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace detail {

constexpr int kColumnThreads = 256;
constexpr int kColumnTile = 2048;

/// A block per column: where rows begin when the rest is cut off. A warp has kLayOutEach times 32
/// rows at a time, neighbours on neighbouring lanes. Blocks are small, so that those of hundreds of
/// columns are on a device together.
constexpr int kLayOutThreads = 256, kLayOutEach = 8;
__global__ void __launch_bounds__(kLayOutThreads, 5)
    layOutColumns(const ColumnDescriptor *columns) {
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

  ColumnTiles() = default;
  __device__ explicit ColumnTiles(const ColumnDescriptor &column)
      : begin(column.offsets[0]), values(column.offsets[column.rows] - begin),
        tiles(max((values + kColumnTile - 1) / kColumnTile, int64_t(1))) {}
};

/// A tile of a column, as the thread that found it tells the others.
struct FoundTile {
  int64_t column, number, begin, values, tiles; ///< values and tiles of the column
};

/// Where the rows of a part of an uncut column begin.
__device__ inline void copyOffsets(const ColumnDescriptor &column, const FoundTile &tile) {
  constexpr int kDepth = 6; // loads of a thread under way together
  const int64_t begin = tile.begin,
                each = (column.rows + tile.tiles) / tile.tiles, // of rows + 1
      row = tile.number * each + threadIdx.x;
  const int64_t *from = column.offsets + row;
  int64_t *to = column.outOffsets + row;
  constexpr int kRound = kDepth * kColumnThreads;
  for (int64_t left = min((tile.number + 1) * each, column.rows + 1) - row; left > 0;
       left -= kRound, from += kRound, to += kRound) {
    int64_t own[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      own[d] = d * kColumnThreads < left ? from[d * kColumnThreads] : 0;
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      if (d * kColumnThreads < left)
        to[d * kColumnThreads] = own[d] - begin;
  }
}

constexpr int kColumnEach = kColumnTile / kColumnThreads;

/// Where a thread's values of a cut column lie, of the tile whose values go to `first` and on. Its
/// rows are found once, then each value among these, all under way together.
__device__ inline void findKept(const ColumnDescriptor &column, int64_t first, int64_t end,
                                int64_t (&from)[kColumnEach]) {
  const int64_t *offsets = column.offsets, *outOffsets = column.outOffsets;
  const int64_t begin = lastAtMostByWarp(outOffsets, column.rows + 1, first),
                last = lastAtMostByWarp(outOffsets, column.rows + 1, end - 1);
  int64_t row[kColumnEach];
#pragma unroll
  for (int i = 0; i < kColumnEach; ++i)
    row[i] = begin;
#pragma unroll 1
  for (int64_t count = last - begin + 1; count > 1;) {
    const int64_t half = count / 2;
#pragma unroll
    for (int i = 0; i < kColumnEach; ++i)
      if (outOffsets[row[i] + half] <= first + threadIdx.x + i * kColumnThreads)
        row[i] += half;
    count -= half;
  }
  // The first values of a row that are kept go with where it begins, the last ones with its end.
  const int64_t *nearOffsets = offsets + (column.keepsFirst ? 0 : 1),
                *nearOut = outOffsets + (column.keepsFirst ? 0 : 1);
#pragma unroll
  for (int i = 0; i < kColumnEach; ++i) {
    const int64_t at = min(first + threadIdx.x + i * kColumnThreads, end - 1);
    from[i] = at + nearOffsets[row[i]] - nearOut[row[i]];
  }
}

/// The values of a tile of a column: all that a thread has are under way together, and beside them
/// where rows of an uncut column begin.
template <class Program, bool IsCut>
__device__ void transformTile(const ColumnDescriptor &column, const FoundTile &tile) {
  const int64_t first = tile.number * kColumnTile,
                total = IsCut ? column.outOffsets[column.rows] : tile.values,
                end = min(first + kColumnTile, total);
  // In registers: what is written could be them.
  ColumnParameters parameters[kMostColumnOps];
#pragma unroll
  for (int op = 0; op < kMostColumnOps; ++op)
    parameters[op] = column.parameters[op];
  const int64_t *values = column.values;
  int64_t *out = column.out;
  int64_t own[kColumnEach];
#pragma unroll
  for (int i = 0; i < kColumnEach; ++i)
    own[i] = tile.begin + first + threadIdx.x + i * kColumnThreads;
  if (IsCut && total != tile.values && first < end)
    findKept(column, first, end, own);
#pragma unroll
  for (int i = 0; i < kColumnEach; ++i)
    own[i] = first + threadIdx.x + i * kColumnThreads < end ? values[own[i]] : 0;
  if (!IsCut)
    copyOffsets(column, tile);
  Program::run(own, parameters);
#pragma unroll
  for (int i = 0; i < kColumnEach; ++i)
    if (first + threadIdx.x + i * kColumnThreads < end)
      out[first + threadIdx.x + i * kColumnThreads] = own[i];
}

/// A block per tile of any column. Which tiles are whose each block adds up for itself, as many
/// columns at a time as it has threads: two loads behind one another, where a search would take one
/// per step and another launch.
template <class Program, bool IsCut>
__global__ void __launch_bounds__(kColumnThreads, 4)
    transformColumns(const ColumnDescriptor *columns, int64_t count) {
  __shared__ FoundTile found;
  int64_t tile = blockIdx.x, before = 0;
  for (int64_t base = 0; base < count; base += kColumnThreads) {
    const int64_t mine = base + threadIdx.x;
    ColumnTiles own;
    if (mine < count)
      own = ColumnTiles(columns[mine]);
    int64_t sum;
    const int64_t begin = before + exclusiveBlockSum<kColumnThreads>(own.tiles, sum);
    for (before += sum; tile < before; tile += gridDim.x) {
      if (begin <= tile && tile < begin + own.tiles)
        found = {mine, tile - begin, own.begin, own.values, own.tiles};
      __syncthreads(); // the tile is known
      transformTile<Program, IsCut>(columns[found.column], found);
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
  const LaunchShape shape{dim3(static_cast<unsigned>(tiles)), dim3(detail::kColumnThreads)};
  if (isCut)
    GENREC_CUDA_LAUNCH(stream, shape, (detail::transformColumns<Program, true>), columns, count);
  else
    GENREC_CUDA_LAUNCH(stream, shape, (detail::transformColumns<Program, false>), columns, count);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_COLUMNS_H
