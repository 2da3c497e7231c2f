//===- distinct_gradient.h - Gradients of products per distinct row -*- C++ -*-===//
//
// distinct.h backward: the gradients of the rows of the batch that found a distinct row are
// added, and the sum is multiplied twice, for the gradient of the row and for that of the
// weight. Rows of the batch are sorted by what they found, so that a sum is made in registers,
// and sums are taken a block at a time, so that they never leave the first-level cache.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_DISTINCT_GRADIENT_H
#define GENREC_RT_KERNELS_CPU_DISTINCT_GRADIENT_H

#include "genrec_rt/kernels/cpu/distinct.h"
#include "genrec_rt/kernels/cpu/scratch.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Rows of the batch that are asked for before they are added.
inline constexpr int kRowsAhead = 4;

/// The rows of the batch by what they found: distinct row i was found by rows[begins[i]] to
/// rows[begins[i + 1]], ascending.
struct FoundBy {
  const int32_t *begins, *rows;
};

/// Sorts `count` rows by what they found; `begins` has room for size + 2, `rows` for count +
/// kRowsAhead.
inline FoundBy sortByIndex(int64_t count, int64_t size, const int32_t *index, int32_t *begins,
                           int32_t *rows) {
  for (int64_t i = 0; i < size + 2; ++i)
    begins[i] = 0;
  for (int64_t row = 0; row < count; ++row)
    ++begins[index[row] + 2];
  for (int64_t i = 2; i < size + 2; ++i)
    begins[i] += begins[i - 1];
  for (int64_t row = 0; row < count; ++row)
    rows[begins[index[row] + 1]++] = static_cast<int32_t>(row);
  for (int i = 0; i < kRowsAhead; ++i)
    rows[count + i] = 0;
  return {begins, rows};
}

/// sums[i - first] = the sum of the gradients of the rows that found i, NV vectors from `column`
/// on; lanes past N are zero.
template <int N, int NV>
inline void sumGradients(const FoundBy &found, int64_t first, int64_t last, const float *gradient,
                         int64_t ldGradient, int column, float *sums) {
  const int left = N - column - (NV - 1) * kLanes;
  const LaneMask tail = laneMask(left < kLanes ? left : kLanes);
  const float *from = gradient + column;
  int32_t at = found.begins[first];
  for (int64_t i = first; i < last; ++i) {
    VecF sum[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
      sum[v] = VecF{};
    for (const int32_t end = found.begins[i + 1]; at < end; ++at) {
      const float *row = from + found.rows[at] * ldGradient;
      const float *ahead = from + found.rows[at + kRowsAhead] * ldGradient;
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v)
        __builtin_prefetch(ahead + v * kLanes);
#pragma GCC unroll 8
      for (int v = 0; v < NV - 1; ++v)
        sum[v] = sum[v] + load(row + v * kLanes);
      sum[NV - 1] = sum[NV - 1] + loadMasked(row + (NV - 1) * kLanes, tail);
    }
    float *to = sums + (i - first) * productStride<N>() + column;
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
      store(to + v * kLanes, sum[v]);
  }
}

/// All columns, a few vectors at a time.
template <int N, int Column = 0>
inline void sumAllGradients(const FoundBy &found, int64_t first, int64_t last,
                            const float *gradient, int64_t ldGradient, float *sums) {
  constexpr int left = vectorsFor(N) - Column / kLanes;
  constexpr int NV = left < kSumVectors ? left : kSumVectors;
  sumGradients<N, NV>(found, first, last, gradient, ldGradient, Column, sums);
  if constexpr (left > NV)
    sumAllGradients<N, Column + NV * kLanes>(found, first, last, gradient, ldGradient, sums);
}

/// Whether a vector holds several whole rows of D floats.
template <int D> constexpr bool isNarrow() { return 2 * D <= kLanes && kLanes % D == 0; }

/// to[row] = sums[row] weight^T, [rows, D], for narrow rows. The tiles of a product would leave
/// most lanes empty: these are dot products along N, as many at a time as there are lanes.
template <int D, int N>
inline void multiplyNarrow(const float *sums, int64_t rows, const float *weight, float *to) {
  constexpr int R = kLanes / D, NV = vectorsFor(N);
  const LaneMask tail = laneMask(N - (NV - 1) * kLanes);
  for (int64_t row = 0; row < rows; row += R) {
    const float *from[R];
    for (int r = 0; r < R; ++r)
      from[r] = sums + (row + r < rows ? row + r : row) * productStride<N>();
    VecF dots[kLanes] = {};
    for (int v = 0; v < NV; ++v) {
      VecF right[D];
#pragma GCC unroll 8
      for (int d = 0; d < D; ++d)
        right[d] = v == NV - 1 ? loadMasked(weight + d * N + v * kLanes, tail)
                               : load(weight + d * N + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        VecF left = load(from[r] + v * kLanes);
#pragma GCC unroll 8
        for (int d = 0; d < D; ++d)
          dots[r * D + d] = fma(left, right[d], dots[r * D + d]);
      }
    }
    const int64_t floats = (rows - row) * D;
    storeTail(to + row * D, sumEach(dots), floats < kLanes ? static_cast<int>(floats) : kLanes);
  }
}

/// to[r] += the sum over `rows` rows of x[row][r] * sums[row], for R rows of the result.
template <int R, int NV>
__attribute__((noinline)) void contractSums(const float *x, int64_t ldx, const float *sums,
                                            int64_t ld, int64_t rows, float *to) {
  VecF acc[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      acc[r][v] = load(to + r * ld + v * kLanes);
  tileMultiply(acc, x, 1, ldx, sums, kLanes, ld, rows);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      store(to + r * ld + v * kLanes, acc[r][v]);
}

/// to[D, N] += x[rows, D]^T sums[rows, N].
template <int D, int N, int Column = 0>
inline void contractBlock(const float *x, int64_t ldx, const float *sums, int64_t rows, float *to) {
  constexpr int64_t ld = productStride<N>();
  constexpr int left = vectorsFor(N) - Column / kLanes;
  constexpr int NV = left < kMaxTileVectors ? left : kMaxTileVectors;
  constexpr int R = bestTileRows(D, NV);
  int d = 0;
  for (; d + R <= D; d += R)
    contractSums<R, NV>(x + d, ldx, sums + Column, ld, rows, to + d * ld + Column);
  if constexpr (D % R != 0)
    contractSums<D % R, NV>(x + d, ldx, sums + Column, ld, rows, to + d * ld + Column);
  if constexpr (left > NV)
    contractBlock<D, N, Column + NV * kLanes>(x, ldx, sums, rows, to);
}

/// What one part needs beside its operands, for a pool of `threads`.
template <int D, int N> struct GradientScratch {
  float *blocks, *partials;
  void *pack;
  int32_t *begins, *rows;
  int64_t bytes;

  GradientScratch(const DistinctLookups &lookups, int32_t threads, void *memory) {
    constexpr int64_t ld = productStride<N>();
    const int64_t most = lookups.mostRows();
    ScratchCursor cursor(memory);
    blocks = cursor.take<float>(threads * kDistinctBlock * ld);
    partials = cursor.take<float>(mostDistinctChunks(most, D, N) * D * ld);
    pack = cursor.take<char>(matmulScratchBytes<N, D>());
    begins = cursor.take<int32_t>(most + 2);
    rows = cursor.take<int32_t>(lookups.count + kRowsAhead);
    bytes = cursor.bytes();
  }
};

} // namespace detail

/// Bytes of scratch for one part of distinctLinearGradient<D, N> with a pool of `threads`.
template <int D, int N>
inline int64_t distinctLinearGradientScratchBytes(const DistinctLookups &lookups, int32_t threads) {
  return detail::GradientScratch<D, N>(lookups, threads, nullptr).bytes;
}

/// One part: the gradients of its distinct rows, [., D], and of its rows of the weight, [D, N].
/// With Bf16 the sums per distinct row, the values and the weight are rounded to bfloat16.
template <int D, int N, bool Bf16 = false>
inline void distinctLinearGradient(genrec_rt_pool *pool, const DistinctLookups &lookups,
                                   int64_t part, const float *values, int64_t ldValues,
                                   const float *weight, const int64_t *columns,
                                   const float *gradient, int64_t ldGradient, float *dvalues,
                                   float *dweight, void *memory) {
  using namespace detail;
  constexpr int64_t ld = productStride<N>();
  const int64_t size = lookups.size(part), start = lookups.before(part);
  const GradientScratch<D, N> scratch(lookups, pool ? genrec_rt_pool_threads(pool) : 1, memory);
  const FoundBy foundBy = sortByIndex(lookups.count, size, lookups.index + part * lookups.count,
                                      scratch.begins, scratch.rows);
  const float *own = weight + columns[part] * N;
  auto *pack = static_cast<float *>(scratch.pack);
  if constexpr (Bf16)
    packBf16Columns<N, D>(own, N, /*transposed=*/true, pack);
  else if constexpr (!isNarrow<D>())
    packColumns(planColumns(N, D), own, N, /*transposed=*/true, N, pack);
  const SumChunks chunks = distinctChunks(size, D, N);
  parallelFor(pool, size, chunks.grain, [&](int64_t begin, int64_t end, int64_t chunk) {
    float *sums = scratch.blocks + (pool ? genrec_rt_worker_index() : 0) * kDistinctBlock * ld;
    float *partial = scratch.partials + chunk * D * ld;
    __builtin_memset(partial, 0, D * ld * sizeof(float));
    for (int64_t first = begin; first < end; first += kDistinctBlock) {
      const int64_t rows = end - first < kDistinctBlock ? end - first : kDistinctBlock;
      float *to = dvalues + (start + first) * D;
      sumAllGradients<N>(foundBy, first, first + rows, gradient, ldGradient, sums);
      const MatmulSides sides{sums, ld, pack, to, D, N};
      const float *found = values + (start + first) * ldValues;
      if constexpr (Bf16) {
        matmulBf16Range<N, D>(sides, Epilogue<>{}, 0, rows);
        contractBf16Range<D, N>({found, ldValues, sums, ld}, 0, rows, partial, ld, /*first=*/false);
        continue;
      }
      if constexpr (isNarrow<D>())
        multiplyNarrow<D, N>(sums, rows, own, to);
      else
        matmulRange<N, D>(sides, Epilogue<>{}, 0, rows);
      contractBlock<D, N>(found, ldValues, sums, rows, partial);
    }
  });
  addPartials(pool, scratch.partials, chunks.count, D, N, ld, /*accumulate=*/false,
              dweight + part * D * N, N);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_DISTINCT_GRADIENT_H
