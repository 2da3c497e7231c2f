//===- tile.h - Register-blocked product of a small tile --------*- C++ -*-===//
//
// The one inner loop of matrix products and attention: R rows by NV vectors of
// accumulators, to which broadcast values of the left side times vectors of the
// right side are added, one step of the contraction at a time in ascending
// order. So every result element is one chain of multiply-adds in a fixed order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_TILE_H
#define GENREC_RT_KERNELS_CPU_TILE_H

#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// The widest tile, in vectors.
inline constexpr int kMaxTileVectors = kRegisters == 32 ? 4 : 2;

/// Rows of a tile that is `vectors` wide: as many accumulators as fit beside
/// the right side's vectors and one broadcast value.
constexpr int tileRows(int vectors) {
  if (kRegisters == 32)
    return vectors <= 2 ? 12 : vectors == 3 ? 8 : 6;
  return vectors == 1 ? 8 : 6;
}

/// Vectors that hold `columns` floats.
constexpr int vectorsFor(int columns) {
  return (columns + kLanes - 1) / kLanes;
}

/// acc[r][v] += sum over s < depth of a[r * aRow + s * aStep] * b[s * bStep + v * bVector ...].
template <int R, int NV>
GENREC_SIMD void tileMultiply(VecF (&acc)[R][NV], const float *a, int64_t aRow,
                              int64_t aStep, const float *b, int64_t bVector,
                              int64_t bStep, int64_t depth) {
  for (int64_t s = 0; s < depth; ++s) {
    VecF right[NV];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      right[v] = load(b + v * bVector);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      VecF left = splat(a[r * aRow]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v)
        acc[r][v] = fma(left, right[v], acc[r][v]);
    }
    a += aStep;
    b += bStep;
  }
}

/// acc[r][v] += sum over s < depth of rows[r][s] * b[s * bStep + v * bVector ...].
template <int R, int NV>
GENREC_SIMD void tileMultiplyRows(VecF (&acc)[R][NV],
                                  const float *const (&rows)[R], const float *b,
                                  int64_t bVector, int64_t bStep,
                                  int64_t depth) {
  for (int64_t s = 0; s < depth; ++s) {
    VecF right[NV];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      right[v] = load(b + v * bVector);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      VecF left = splat(rows[r][s]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v)
        acc[r][v] = fma(left, right[v], acc[r][v]);
    }
    b += bStep;
  }
}

template <int R, int NV> GENREC_SIMD void tileClear(VecF (&acc)[R][NV]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      acc[r][v] = VecF{};
}

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_TILE_H
