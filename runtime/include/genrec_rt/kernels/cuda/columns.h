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
//   runColumns<Program>(descriptors, columns, tiles, stream);
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

/// A block per column: where rows begin when the rest is cut off, and in tileOffsets[column + 1]
/// its tiles. A warp has kLayOutEach times 32 rows at a time, neighbours on neighbouring lanes, so
/// that most columns take a round or two.
constexpr int kLayOutThreads = 512, kLayOutEach = 8;
__global__ void __launch_bounds__(kLayOutThreads)
    layOutColumns(const ColumnDescriptor *columns, int64_t *tileOffsets) {
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
  if (threadIdx.x != 0)
    return;
  out[rows] = before;
  tileOffsets[blockIdx.x + 1] = (before + kColumnTile - 1) / kColumnTile;
}

/// One block: tiles of a column become those of it and the columns before.
__global__ void __launch_bounds__(kColumnThreads) addTiles(int64_t *tileOffsets, int64_t columns) {
  int64_t before = 0;
  if (threadIdx.x == 0)
    tileOffsets[0] = 0;
  for (int64_t base = 0; base < columns; base += kColumnThreads) {
    const int64_t at = base + threadIdx.x;
    const int64_t own = at < columns ? tileOffsets[at + 1] : 0;
    int64_t total;
    const int64_t exclusive = exclusiveBlockSum<kColumnThreads>(own, total);
    if (at < columns)
      tileOffsets[at + 1] = before + exclusive + own;
    before += total;
  }
}

/// A block per tile of any column.
template <class Program>
__global__ void __launch_bounds__(kColumnThreads, 6)
    transformColumns(const ColumnDescriptor *columns, int64_t count, const int64_t *tileOffsets) {
  for (int64_t tile = blockIdx.x; tile < tileOffsets[count]; tile += gridDim.x) {
    const int64_t number = lastAtMost(tileOffsets, count + 1, tile);
    const ColumnDescriptor &column = columns[number];
    const int64_t first = (tile - tileOffsets[number]) * kColumnTile,
                  total = column.outOffsets[column.rows];
    // In registers: what is written could be them.
    ColumnParameters parameters[kMostColumnOps];
#pragma unroll
    for (int op = 0; op < kMostColumnOps; ++op)
      parameters[op] = column.parameters[op];
    const int64_t begin = column.offsets[0];
    const bool isWhole = total == column.offsets[column.rows] - begin;
    for (int64_t at = first + threadIdx.x; at < min(first + kColumnTile, total);
         at += kColumnThreads) {
      int64_t from = begin + at;
      if (!isWhole) {
        const int64_t row = lastAtMost(column.outOffsets, column.rows + 1, at);
        const int64_t kept = column.outOffsets[row + 1] - column.outOffsets[row];
        const int64_t skipped = column.offsets[row + 1] - column.offsets[row] - kept;
        from =
            column.offsets[row] + (column.keepsFirst ? 0 : skipped) + at - column.outOffsets[row];
      }
      column.out[at] = Program::run(column.values[from], parameters);
    }
  }
}

} // namespace detail

/// Transforms `count` columns. `columns` is on the device; `tileOffsets` has room for count + 1
/// entries there; `mostValues` bounds the values of all columns together.
template <class Program>
void runColumns(const ColumnDescriptor *columns, int64_t count, int64_t mostValues,
                int64_t *tileOffsets, cudaStream_t stream) {
  if (count == 0)
    return;
  const int64_t tiles =
      std::clamp<int64_t>(blocksFor(mostValues, detail::kColumnTile) + count, 1, kMostBlocks);
  const dim3 block(detail::kColumnThreads);
  GENREC_CUDA_LAUNCH(
      stream, (LaunchShape{dim3(static_cast<unsigned>(count)), dim3(detail::kLayOutThreads)}),
      detail::layOutColumns, columns, tileOffsets);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, block}), detail::addTiles, tileOffsets, count);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{dim3(static_cast<unsigned>(tiles)), block}),
                     detail::transformColumns<Program>, columns, count, tileOffsets);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_COLUMNS_H
