//===- distinct.h - Matrix products per distinct looked-up row --*- C++ -*-===//
//
// The rows that lookups found, joined by columns, times a weight: a product per
// distinct row of a lookup, added to every row of the batch that found it. So the
// products shrink by how often rows repeat, and what is added is one row of the result
// instead. distinct_gradient.h has the way back.
//
// Source: "factorized" learning over joined tables, of Kumar et al., SIGMOD 2015, and
// Chen et al., VLDB 2017; here the join is the lookup.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_DISTINCT_H
#define GENREC_RT_KERNELS_CPU_DISTINCT_H

#include "genrec_rt/kernels/cpu/gemm_bf16.h"
#include "genrec_rt/kernels/shared/distinct_lookups.h"
#include "genrec_rt/scratch_sizes.h"

namespace genrec::rt::kernels {

inline namespace GENREC_RT_ISA {
namespace detail {

/// Vectors of a row that are added up in registers.
inline constexpr int kSumVectors = kRegisters == 32 ? 8 : 4;
/// Rows of the batch per chunk.
inline constexpr int64_t kSumRows = 64;

/// Floats from a product to the next: whole vectors, so that no load is masked.
template <int N> constexpr int64_t productStride() { return roundUp(N, kWidestLanes); }

/// Lookups [first, last), whose products are added up for rows [begin, end) of the batch: to what y
/// has with `adds`.
struct SummedProducts {
  int64_t first, last;
  const float *products;
  int64_t begin, end;
  bool adds;
};

/// y[row] (+)= the products that were found for it, columns from `column` on.
template <int N, int NV>
inline void addProducts(const DistinctLookups &lookups, const SummedProducts &of, int column,
                        float *y, int64_t ldY) {
  constexpr int64_t ld = productStride<N>();
  const int64_t origin = lookups.starts[of.first];
  LaneMask masks[NV];
  for (int v = 0; v < NV; ++v) {
    int left = N - column - v * kLanes;
    masks[v] = laneMask(left < 0 ? 0 : left < kLanes ? left : kLanes);
  }
  for (int64_t row = of.begin; row < of.end; ++row) {
    float *to = y + row * ldY + column;
    VecF sum[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
      sum[v] = of.adds ? loadMasked(to + v * kLanes, masks[v]) : VecF{};
    for (int64_t part = of.first; part < of.last; ++part) {
      int64_t product = lookups.starts[part] - origin + lookups.index[part * lookups.count + row];
      const float *from = of.products + product * ld + column;
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v)
        sum[v] = sum[v] + load(from + v * kLanes);
    }
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
      storeMasked(to + v * kLanes, sum[v], masks[v]);
  }
}

/// All columns, a few vectors at a time.
template <int N, int Column = 0>
inline void addAllProducts(const DistinctLookups &lookups, const SummedProducts &of, float *y,
                           int64_t ldY) {
  constexpr int left = vectorsFor(N) - Column / kLanes;
  constexpr int NV = left < kSumVectors ? left : kSumVectors;
  addProducts<N, NV>(lookups, of, Column, y, ldY);
  if constexpr (left > NV)
    addAllProducts<N, Column + NV * kLanes>(lookups, of, y, ldY);
}

/// Distinct rows whose products are in memory at a time: those of one part at least.
inline int64_t rowsAtOnce(const DistinctLookups &lookups) {
  const int64_t most = lookups.mostRows();
  return most < kDistinctRowsAtOnce ? kDistinctRowsAtOnce : most;
}

} // namespace detail

/// Bytes of scratch for distinctLinear<D, N>.
template <int D, int N>
inline int64_t distinctLinearScratchBytes(const DistinctLookups &lookups, int32_t threads) {
  const int64_t most = detail::rowsAtOnce(lookups);
  return 4 * most * detail::productStride<N>() + threads * matmulScratchBytes<D, N>();
}

/// y[row] (+)= the sum over parts p of values[the distinct row of (p, row)] times rows columns[p]
/// to columns[p] + D of the weight [., N]; added in the order of the parts, to what y has with
/// `adds`. With Bf16 values and weight are rounded to bfloat16.
template <int D, int N, bool Bf16 = false>
inline void distinctLinear(genrec_rt_pool *pool, const DistinctLookups &lookups,
                           const float *values, int64_t ldValues, const float *weight,
                           const int64_t *columns, float *y, int64_t ldY, bool adds,
                           void *scratch) {
  constexpr int64_t ld = detail::productStride<N>();
  const int64_t most = detail::rowsAtOnce(lookups);
  auto *products = static_cast<float *>(scratch);
  char *packs = reinterpret_cast<char *>(products + most * ld);
  auto multiply = [&](genrec_rt_pool *within, int64_t part, float *to, void *pack) {
    const float *rows = values + lookups.before(part) * ldValues, *own = weight + columns[part] * N;
    if constexpr (Bf16)
      matmulBf16<D, N>(within, lookups.size(part), rows, ldValues, own, N, to, ld, Epilogue<>{},
                       pack);
    else
      matmul<D, N>(within, lookups.size(part), rows, ldValues, own, N, to, ld, Epilogue<>{}, pack);
  };
  for (int64_t first = 0, last; first < lookups.parts; first = last) {
    last = first + 1;
    while (last < lookups.parts && lookups.starts[last + 1] - lookups.starts[first] <= most)
      ++last;
    auto productsOf = [&](int64_t part) {
      return products + (lookups.starts[part] - lookups.starts[first]) * ld;
    };
    if (last == first + 1)
      multiply(pool, first, products, packs);
    else
      parallelFor(pool, last - first, 1, [&](int64_t begin, int64_t, int64_t) {
        void *pack = packs + genrec_rt_worker_index() * matmulScratchBytes<D, N>();
        multiply(nullptr, first + begin, productsOf(first + begin), pack);
      });
    parallelFor(pool, lookups.count, detail::kSumRows, [&](int64_t begin, int64_t end, int64_t) {
      detail::addAllProducts<N>(lookups, {first, last, products, begin, end, adds || first > 0}, y,
                                ldY);
    });
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_DISTINCT_H
