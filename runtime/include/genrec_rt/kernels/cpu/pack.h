//===- pack.h - Copies of matrices into the layouts of tiles ----*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_PACK_H
#define GENREC_RT_KERNELS_CPU_PACK_H

#include "genrec_rt/kernels/cpu/tile.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

//===----------------------------------------------------------------------===//
// How columns are cut
//===----------------------------------------------------------------------===//

inline constexpr int kMaxTailColumns = 4;

/// Columns [0, tailBegin) in `panels` panels, the first `wideCount` of them
/// `wide` vectors wide and the others one less. The few columns that would
/// leave most of one more vector empty come after, as a tail.
struct ColumnPlan {
  int columns, tailBegin, panels, wide, wideCount;

  constexpr int tail() const { return columns - tailBegin; }
  /// The first vector of a panel.
  constexpr int panelBegin(int panel) const {
    return panel * wide - (panel > wideCount ? panel - wideCount : 0);
  }
  constexpr int panelVectors(int panel) const {
    return panel < wideCount ? wide : wide - 1;
  }
  constexpr int vectors() const { return vectorsFor(tailBegin); }
  /// Lanes of the last vector that hold columns.
  constexpr int lastLanes() const {
    return tailBegin - (vectors() - 1) * kLanes;
  }
};

constexpr ColumnPlan planColumns(int64_t depth, int64_t columns) {
  int n = static_cast<int>(columns);
  int tail = n % kLanes;
  // A tail costs a reduction per row, which needs some depth to pay.
  bool asTail = n > kLanes && tail > 0 && tail <= kLanes / 4 &&
                tail <= kMaxTailColumns && depth >= 2 * kLanes;
  int tailBegin = asTail ? n - tail : n;
  int vectors = vectorsFor(tailBegin);
  int panels = (vectors + kMaxTileVectors - 1) / kMaxTileVectors;
  int wide = panels ? (vectors + panels - 1) / panels : 0;
  return {n, tailBegin, panels, wide, vectors - panels * (wide - 1)};
}

constexpr int64_t packedFloats(int64_t depth, int64_t columns) {
  ColumnPlan plan = planColumns(depth, columns);
  return depth * plan.vectors() * kLanes +
         plan.tail() * roundUp(depth, kLanes);
}

/// Packs W [depth, columns] (or its transpose) into panels, each row-major
/// [depth, vectors * kLanes] and padded with zeros, followed by the tail
/// columns, each contiguous along the depth and padded with zeros.
inline void packColumns(const ColumnPlan &plan, const float *w, int64_t ldw,
                        bool transposed, int64_t depth, float *packed) {
  const int64_t padded = roundUp(depth, kLanes);
  for (int panel = 0; panel < plan.panels; ++panel) {
    const int begin = plan.panelBegin(panel) * kLanes;
    const int width = plan.panelVectors(panel) * kLanes;
    const int left = plan.tailBegin - begin;
    const int valid = left < width ? left : width;
    if (valid < width)
      __builtin_memset(packed, 0, static_cast<size_t>(depth * width) * 4);
    if (transposed) {
      for (int n = 0; n < valid; ++n)
        for (int64_t k = 0; k < depth; ++k)
          packed[k * width + n] = w[(begin + n) * ldw + k];
    } else {
      for (int64_t k = 0; k < depth; ++k)
        __builtin_memcpy(packed + k * width, w + k * ldw + begin,
                         static_cast<size_t>(valid) * 4);
    }
    packed += depth * width;
  }
  for (int n = plan.tailBegin; n < plan.columns; ++n, packed += padded) {
    for (int64_t k = 0; k < depth; ++k)
      packed[k] = transposed ? w[n * ldw + k] : w[k * ldw + n];
    for (int64_t k = depth; k < padded; ++k)
      packed[k] = 0;
  }
}

/// packColumns of `rows` rows of D floats with the widths known: panels and
/// tail of planColumns(4 * kLanes, D).
template <int D>
inline void packRows(const float *from, int64_t ld, int64_t rows, float *to) {
  constexpr ColumnPlan plan = planColumns(4 * kLanes, D);
  const LaneMask last = laneMask(plan.lastLanes());
  for (int p = 0; p < plan.panels; ++p) {
    const int vectors = plan.panelVectors(p);
    const float *row = from + plan.panelBegin(p) * kLanes;
    for (int64_t i = 0; i < rows; ++i, row += ld, to += vectors * kLanes)
      for (int v = 0; v < vectors; ++v) {
        bool partial = plan.lastLanes() < kLanes && p == plan.panels - 1 &&
                       v == vectors - 1;
        store(to + v * kLanes, partial ? loadMasked(row + v * kLanes, last)
                                       : load(row + v * kLanes));
      }
  }
  const int64_t padded = roundUp(rows, kLanes);
  for (int t = 0; t < plan.tail(); ++t, to += padded) {
    const float *row = from + plan.tailBegin + t;
    for (int64_t i = 0; i < rows; ++i)
      to[i] = row[i * ld];
    for (int64_t i = rows; i < padded; ++i)
      to[i] = 0;
  }
}

template <int D> constexpr int64_t packedRowsFloats(int64_t rows) {
  constexpr ColumnPlan plan = planColumns(4 * kLanes, D);
  return rows * plan.vectors() * kLanes + plan.tail() * roundUp(rows, kLanes);
}

//===----------------------------------------------------------------------===//
// Transposition
//===----------------------------------------------------------------------===//

/// Transposes 4 columns of kLanes rows: lane i of out[c] is column c of row i.
/// Each row is given as its 4 columns.
GENREC_SIMD void transposeFour(const VecF4 (&row)[kLanes], VecF (&out)[4]) {
  VecF w[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#if defined(GENREC_AVX512)
    VecF8 lo = __builtin_shufflevector(row[i], row[4 + i], 0, 1, 2, 3, 4, 5, 6, 7);
    VecF8 hi = __builtin_shufflevector(row[8 + i], row[12 + i], 0, 1, 2, 3, 4, 5, 6, 7);
    w[i] = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                   12, 13, 14, 15);
#elif defined(GENREC_AVX2)
    w[i] = __builtin_shufflevector(row[i], row[4 + i], 0, 1, 2, 3, 4, 5, 6, 7);
#else
    w[i] = row[i];
#endif
  }
  // Within each quarter of the lanes: a 4 by 4 transposition.
#if defined(GENREC_AVX512)
#define GENREC_LOW_ 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define GENREC_HIGH_ 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define GENREC_FIRST_ 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define GENREC_SECOND_ 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#elif defined(GENREC_AVX2)
#define GENREC_LOW_ 0, 8, 1, 9, 4, 12, 5, 13
#define GENREC_HIGH_ 2, 10, 3, 11, 6, 14, 7, 15
#define GENREC_FIRST_ 0, 1, 8, 9, 4, 5, 12, 13
#define GENREC_SECOND_ 2, 3, 10, 11, 6, 7, 14, 15
#else
#define GENREC_LOW_ 0, 4, 1, 5
#define GENREC_HIGH_ 2, 6, 3, 7
#define GENREC_FIRST_ 0, 1, 4, 5
#define GENREC_SECOND_ 2, 3, 6, 7
#endif
  VecF t0 = __builtin_shufflevector(w[0], w[1], GENREC_LOW_);
  VecF t1 = __builtin_shufflevector(w[0], w[1], GENREC_HIGH_);
  VecF t2 = __builtin_shufflevector(w[2], w[3], GENREC_LOW_);
  VecF t3 = __builtin_shufflevector(w[2], w[3], GENREC_HIGH_);
  out[0] = __builtin_shufflevector(t0, t2, GENREC_FIRST_);
  out[1] = __builtin_shufflevector(t0, t2, GENREC_SECOND_);
  out[2] = __builtin_shufflevector(t1, t3, GENREC_FIRST_);
  out[3] = __builtin_shufflevector(t1, t3, GENREC_SECOND_);
#undef GENREC_LOW_
#undef GENREC_HIGH_
#undef GENREC_FIRST_
#undef GENREC_SECOND_
}

template <int Columns, bool AllRows>
GENREC_SIMD void transposeColumns(const float *from, int64_t ld, int rows,
                                  float *to) {
  VecF4 row[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    row[i] = VecF4{};
    if (AllRows || i < rows)
      __builtin_memcpy(&row[i], from + i * ld, Columns * 4);
  }
  VecF out[4];
  transposeFour(row, out);
#pragma GCC unroll 4
  for (int c = 0; c < Columns; ++c)
    store(to + c * kLanes, out[c]);
}

/// Transposes `rows` rows of D floats in groups of kLanes: group g is
/// [D][kLanes] at to + g * D * kLanes; rows past the end are zeros.
template <int D>
inline void transposeRows(const float *from, int64_t ld, int64_t rows,
                          float *to) {
  for (int64_t row = 0; row < rows; row += kLanes, from += kLanes * ld) {
    int count = rows - row < kLanes ? static_cast<int>(rows - row) : kLanes;
    for (int c = 0; c + 4 <= D; c += 4, to += 4 * kLanes) {
      if (count == kLanes)
        transposeColumns<4, true>(from + c, ld, count, to);
      else
        transposeColumns<4, false>(from + c, ld, count, to);
    }
    if constexpr (D % 4 != 0) {
      transposeColumns<D % 4, false>(from + D / 4 * 4, ld, count, to);
      to += D % 4 * kLanes;
    }
  }
}

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_PACK_H
