//===- attention_key_sums.h - Sums over queries, by key ----------*- C++ -*-===//
//
// What keys gain from a block of queries in attention's backward pass: tiles of a product with a
// transposed matrix.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_KEY_SUMS_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_KEY_SUMS_H

#include "genrec_rt/kernels/cpu/attention_common.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// out[key][...] (+)= sum over queries [begin, end) of a block of
/// matrix[query][key] * right[query][...], for keys [keyBegin, keyEnd).
template <int D> struct KeySums {
  static constexpr ColumnPlan plan = planColumns(4 * kLanes, D);

  template <int NV>
  static __attribute__((noinline)) void
  tile(const float *matrix, int64_t ldMatrix, const float *right,
       int64_t ldRight, int64_t queries, int keys, bool first, float *out,
       int64_t ldOut, int lastLanes) {
    constexpr int R = tileRows(NV);
    const LaneMask last = laneMask(lastLanes);
    VecF acc[R][NV];
    tileClear(acc);
    if (!first) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        if (r >= keys)
          break;
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) {
          const float *from = out + r * ldOut + v * kLanes;
          acc[r][v] = v == NV - 1 ? loadMasked(from, last) : load(from);
        }
      }
    }
    tileMultiply(acc, matrix, 1, ldMatrix, right, kLanes, ldRight, queries);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      if (r >= keys)
        break;
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) {
        float *to = out + r * ldOut + v * kLanes;
        if (v == NV - 1)
          storeMasked(to, acc[r][v], last);
        else
          store(to, acc[r][v]);
      }
    }
  }
};

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_KEY_SUMS_H
