//===- interaction.h - Dot products of all pairs of vectors -----*- C++ -*-===//
//
// Rows of Count vectors of Size floats, end to end. The products of a row are v_i . v_j for
// j < i (with Self: j <= i) in the order of i, then j. A row is a matrix X, and its products are
// the lower triangle of X X^T: tiles of it are register-blocked as in any matrix product, each
// element one chain of multiply-adds in ascending order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_INTERACTION_H
#define GENREC_RT_KERNELS_CPU_INTERACTION_H

#include "genrec_rt/kernels/cpu/bf16.h"
#include "genrec_rt/kernels/cpu/launch.h"
#include "genrec_rt/kernels/cpu/pack.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

template <int Count, int Size, bool Self> struct Interaction {
  static constexpr int64_t kGrain = 64;
  static constexpr int kPairs = Count * (Self ? Count + 1 : Count - 1) / 2;

  /// Vectors are taken in blocks of nearly equal height: a lower last one would wait for its
  /// few chains.
  static constexpr int kBlocks = (Count + tileRows(1) - 1) / tileRows(1);
  static constexpr int kHeight = (Count + kBlocks - 1) / kBlocks;
  static constexpr int kLastHeight = Count - (kBlocks - 1) * kHeight;
  static_assert(kLastHeight > 0);

  /// Calls `block<Height>(first vector)`, from the first block to the last.
  template <class Block> GENREC_SIMD static void forEachBlock(const Block &block) {
    for (int i = 0; i + 1 < kBlocks; ++i)
      block.template operator()<kHeight>(i * kHeight);
    block.template operator()<kLastHeight>((kBlocks - 1) * kHeight);
  }

  /// Where the products of vector `i` with those before it begin.
  static constexpr int64_t start(int64_t i) { return i * (Self ? i + 1 : i - 1) / 2; }

  //===-- products ---------------------------------------------------------===//

  /// A tile: `Height` vectors from `first` on, and those of group `group` (of kLanes).
  template <int Height>
  GENREC_SIMD static void multiply(const float *x, const float *transposed, int first, int group,
                                   float *products) {
    VecF sums[Height][1];
    tileClear(sums);
    tileMultiply(sums, x + first * Size, Size, 1, transposed + group * Size * kLanes, 0, kLanes,
                 Size);
#pragma GCC unroll 16
    for (int r = 0; r < Height; ++r) {
      int before = first + r + Self - group * kLanes;
      if (before > 0)
        storeTail(products + start(first + r) + group * kLanes, sums[r][0],
                  before < kLanes ? before : kLanes);
    }
  }

  static void multiplyRow(const float *x, float *products) {
    constexpr int kGroups = (Count + kLanes - 1) / kLanes;
    alignas(64) float transposed[kGroups * Size * kLanes];
    transposeRows<Size>(x, Size, Count, transposed);
    forEachBlock([&]<int Height>(int first) {
      for (int group = 0; group * kLanes < first + Height - 1 + Self; ++group)
        multiply<Height>(x, transposed, first, group, products);
    });
  }

  //===-- their gradient ---------------------------------------------------===//

  // dx_i is the sum over j of the gradient of pair {i, j} times v_j, j ascending. For a block
  // of i, those of vectors before it are in rows of the triangle, those of vectors behind it in
  // columns, and those within it in both.

  /// The gradient of the block's pair of vectors `r` and `c`: rows[r] begins with (first + r, 0).
  template <int Height>
  GENREC_SIMD static float within(const float *const (&rows)[Height], int first, int r, int c) {
    return r == c ? 2 * rows[r][first + r] : r > c ? rows[r][first + c] : rows[c][first + r];
  }

  /// The first `columns` of a group of kLanes of the gradients of `Height` vectors from `first`
  /// on; `x` and `dx` begin at the group, vectors of x `ldX` apart.
  template <int Height>
  GENREC_SIMD static void addUp(const float *x, int64_t ldX, const float *gradient, int first,
                                float *dx, int columns) {
    const float *rows[Height];
#pragma GCC unroll 16
    for (int r = 0; r < Height; ++r)
      rows[r] = gradient + start(first + r);
    VecF sums[Height][1];
    tileClear(sums);
    tileMultiplyRows(sums, rows, x, 0, ldX, first);
#pragma GCC unroll 16
    for (int c = 0; c < Height; ++c) {
      VecF vector = load(x + (first + c) * ldX);
#pragma GCC unroll 16
      for (int r = 0; r < Height; ++r)
        if (Self || r != c)
          sums[r][0] = fma(splat(within<Height>(rows, first, r, c)), vector, sums[r][0]);
    }
    for (int64_t j = first + Height; j < Count; ++j)
      tileMultiply(sums, gradient + start(j) + first, 1, 0, x + j * ldX, 0, 0, 1);
#pragma GCC unroll 16
    for (int r = 0; r < Height; ++r)
      storeTail(dx + (first + r) * Size, sums[r][0], columns);
  }

  static void differentiateRow(const float *x, const float *gradient, float *dx) {
    constexpr int kGroups = (Size + kLanes - 1) / kLanes, kPadded = kGroups * kLanes;
    constexpr bool kPads = Size % kLanes != 0; // whole vectors are read
    alignas(64) float padded[kPads ? Count * kPadded : 1];
    if constexpr (kPads) {
      for (int i = 0; i < Count; ++i)
        for (int c = 0; c < kPadded; ++c)
          padded[i * kPadded + c] = c < Size ? x[i * Size + c] : 0;
      x = padded;
    }
    forEachBlock([&]<int Height>(int first) {
      for (int column = 0; column < Size; column += kLanes)
        addUp<Height>(x + column, kPadded, gradient, first, dx + column,
                      Size - column < kLanes ? Size - column : kLanes);
    });
  }
};

} // namespace detail

/// `products` of each of `rows` rows of x; with Bf16 the vectors are rounded to bfloat16.
template <int64_t Count, int64_t Size, bool Self, bool Bf16 = false>
inline void dotInteraction(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                           float *products) {
  using Rows = detail::Interaction<Count, Size, Self>;
  parallelFor(step->pool, rows, Rows::kGrain, [&](int64_t begin, int64_t end, int64_t) {
    alignas(64) float rounded[Bf16 ? Count * Size : 1];
    for (int64_t row = begin; row < end; ++row) {
      const float *vectors = x + row * ldX;
      if constexpr (Bf16)
        roundBf16(vectors, Count * Size, rounded), vectors = rounded;
      Rows::multiplyRow(vectors, products + row * Rows::kPairs);
    }
  });
}

/// dx of each row, from the gradient of its products; with Bf16 both factors are rounded.
template <int64_t Count, int64_t Size, bool Self, bool Bf16 = false>
inline void dotInteractionGradient(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                                   const float *gradient, int64_t ldGradient, float *dx) {
  using Rows = detail::Interaction<Count, Size, Self>;
  parallelFor(step->pool, rows, Rows::kGrain, [&](int64_t begin, int64_t end, int64_t) {
    alignas(64) float rounded[Bf16 ? Count * Size : 1], factors[Bf16 ? Rows::kPairs : 1];
    for (int64_t row = begin; row < end; ++row) {
      const float *vectors = x + row * ldX, *pairs = gradient + row * ldGradient;
      if constexpr (Bf16) {
        roundBf16(vectors, Count * Size, rounded), vectors = rounded;
        roundBf16(pairs, Rows::kPairs, factors), pairs = factors;
      }
      Rows::differentiateRow(vectors, pairs, dx + row * Count * Size);
    }
  });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_INTERACTION_H
