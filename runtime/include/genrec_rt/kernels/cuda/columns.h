//===- columns.h - Transforms of many ragged columns at once ------*- C++ -*-===//
//
// A prototype of what fuse-transforms will emit: columns whose transforms are the same
// sequence of operations, but for their parameters, share one launch. What differs is a
// row of a table of descriptors on the device; what is the same, the program, is
// compiled. There is no dispatch per value.
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

namespace detail {

__host__ __device__ inline uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }
__host__ __device__ inline int64_t lowBits(uint64_t hash, int64_t bits) {
  return static_cast<int64_t>(hash & ((uint64_t(1) << bits) - 1));
}

} // namespace detail

/// XXH3_64bits_withSeed (Collet, xxHash 0.8) of the eight bytes of a value.
struct HashXxh3 {
  __host__ __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    const uint64_t seed = static_cast<uint64_t>(p.seed);
    const uint32_t low = static_cast<uint32_t>(seed);
    const uint32_t swapped = low << 24 | (low & 0xFF00) << 8 | (low >> 8 & 0xFF00) | low >> 24;
    const uint64_t mixed = seed ^ static_cast<uint64_t>(swapped) << 32;
    // Bytes 8 to 15 of the default secret, by exclusive or with bytes 16 to 23.
    const uint64_t flip = 0xC73AB174C5ECD5A2ull - mixed;
    const uint64_t word = static_cast<uint64_t>(value);
    uint64_t hash = (word << 32 | word >> 32) ^ flip;
    hash ^= detail::rotated(hash, 49) ^ detail::rotated(hash, 24);
    hash *= 0x9FB21C651E98DF25ull;
    hash ^= (hash >> 35) + 8;
    hash *= 0x9FB21C651E98DF25ull;
    return detail::lowBits(hash ^ hash >> 28, p.bits);
  }
};

/// The first 64 bits of MurmurHash3_x64_128 (Appleby) of the eight bytes of a value.
struct HashMurmur3 {
  __host__ __device__ static uint64_t finished(uint64_t x) {
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDull;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53ull;
    return x ^ x >> 33;
  }
  __host__ __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    uint64_t low = static_cast<uint32_t>(p.seed), high = low;
    low ^= detail::rotated(static_cast<uint64_t>(value) * 0x87C37B91114253D5ull, 31) *
           0x4CF5AD432745937Full;
    low = (low ^ 8) + (high ^ 8);
    high = (high ^ 8) + low;
    return detail::lowBits(finished(low) + finished(high), p.bits);
  }
};

namespace detail {

/// value % divisor as C has it, for a divisor from 1. The quotient is a product with the
/// reciprocal, off by less than 2^12, then a second time by at most one (as in shared/rowbody.h): a
/// fraction of the instructions of a division. The reciprocal is the same for a column; that of 1
/// may round to 2^63.
__host__ __device__ inline int64_t remainderOf(int64_t value, int64_t divisor) {
  if (divisor == 1)
    return 0;
  const double reciprocal = 1 / static_cast<double>(divisor);
  auto less = [&](int64_t x) {
    const auto quotient = static_cast<int64_t>(static_cast<double>(x) * reciprocal);
    return static_cast<int64_t>(static_cast<uint64_t>(x) -
                                static_cast<uint64_t>(quotient) * static_cast<uint64_t>(divisor));
  };
  int64_t rest = less(less(value));
  rest = rest >= divisor ? rest - divisor : rest <= -divisor ? rest + divisor : rest;
  rest = value >= 0 && rest < 0 ? rest + divisor : rest;
  return value < 0 && rest > 0 ? rest - divisor : rest;
}

} // namespace detail

/// The Euclidean remainder, in [0, divisor).
struct Modulo {
  __host__ __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
    const int64_t rest = detail::remainderOf(value, p.divisor);
    return rest < 0 ? rest + p.divisor : rest;
  }
};

/// The number of edges that are <= value.
struct Bucketize {
  __host__ __device__ static int64_t apply(int64_t value, const ColumnParameters &p) {
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
  __host__ __device__ static int64_t run(int64_t value, const ColumnParameters *parameters) {
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
/// its tiles. A thread has kLayOutEach rows at a time, so that most columns take a round or two.
constexpr int kLayOutThreads = 512, kLayOutEach = 8;
__global__ void __launch_bounds__(kLayOutThreads)
    layOutColumns(const ColumnDescriptor *columns, int64_t *tileOffsets) {
  const ColumnDescriptor &column = columns[blockIdx.x];
  const int64_t rows = column.rows, most = column.most;
  const int64_t *offsets = column.offsets;
  int64_t *out = column.outOffsets;
  int64_t before = 0;
  for (int64_t base = 0; base < rows; base += kLayOutThreads * kLayOutEach) {
    const int64_t first = base + static_cast<int64_t>(threadIdx.x) * kLayOutEach;
    int64_t begins[kLayOutEach + 1], kept = 0, total;
#pragma unroll
    for (int i = 0; i <= kLayOutEach; ++i)
      begins[i] = offsets[min(first + i, rows)];
#pragma unroll
    for (int i = 0; i < kLayOutEach; ++i)
      kept += min(begins[i + 1] - begins[i], most);
    int64_t at = before + exclusiveBlockSum<kLayOutThreads>(kept, total);
#pragma unroll
    for (int i = 0; i < kLayOutEach; ++i) {
      if (first + i < rows)
        out[first + i] = at;
      at += min(begins[i + 1] - begins[i], most);
    }
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
