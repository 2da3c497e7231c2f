//===- interaction.h - Dot products of all pairs of vectors -----*- C++ -*-===//
//
// Rows of Count vectors of Size floats, end to end. The products of a row are v_i . v_j for
// j < i (with Self: j <= i) in the order of i, then j. Each product adds its terms in lanes of
// 16, as rowSum does, so that it has the same bits on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_INTERACTION_H
#define GENREC_RT_KERNELS_INTERACTION_H

#include "genrec_rt/kernels/launch.h"
#include "genrec_rt/kernels/rowbody.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

inline constexpr int64_t kInteractionGrain = 64;

/// a . b.
template <int64_t Size> GENREC_SIMD float dotVectors(const float *a, const float *b) {
  constexpr int64_t kWhole = Size / 16 * 16;
  Lanes16 total = {};
  for (int64_t i = 0; i < kWhole; i += 16)
    total += loadLanes<16>(a + i, 0) * loadLanes<16>(b + i, 0);
  if constexpr (kWhole < Size)
    total += loadLanes<Size - kWhole>(a + kWhole, 0) * loadLanes<Size - kWhole>(b + kWhole, 0);
  float lanes[16];
  __builtin_memcpy(lanes, &total, sizeof lanes);
  return rowSum<16>(lanes);
}

} // namespace detail

/// `products` of each of `rows` rows of x.
template <int64_t Count, int64_t Size, bool Self>
inline void dotInteraction(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                           float *products) {
  constexpr int64_t kPairs = Count * (Self ? Count + 1 : Count - 1) / 2;
  parallelFor(step->pool, rows, detail::kInteractionGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t row = begin; row < end; ++row) {
                  const float *from = x + row * ldX;
                  float *to = products + row * kPairs;
                  for (int64_t i = 0; i < Count; ++i)
                    for (int64_t j = 0; j < i + Self; ++j)
                      *to++ = detail::dotVectors<Size>(from + i * Size, from + j * Size);
                }
              });
}

/// dx of each row, from the gradient of its products.
template <int64_t Count, int64_t Size, bool Self>
inline void dotInteractionGradient(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                                   const float *gradient, int64_t ldGradient, float *dx) {
  parallelFor(step->pool, rows, detail::kInteractionGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t row = begin; row < end; ++row) {
                  const float *from = x + row * ldX, *g = gradient + row * ldGradient;
                  float *to = dx + row * Count * Size;
                  auto at = [&](int64_t i, int64_t j) {
                    return i < j ? g[j * (Self ? j + 1 : j - 1) / 2 + i]
                                 : g[i * (Self ? i + 1 : i - 1) / 2 + j];
                  };
                  for (int64_t i = 0; i < Count; ++i) {
                    // The pair of a vector with itself counts twice.
                    float sum[Size];
                    float own = Self ? 2 * at(i, i) : 0;
                    for (int64_t column = 0; column < Size; ++column)
                      sum[column] = own * from[i * Size + column];
                    for (int64_t j = 0; j < Count; ++j) {
                      if (j == i)
                        continue;
                      float factor = at(i, j);
                      for (int64_t column = 0; column < Size; ++column)
                        sum[column] += factor * from[j * Size + column];
                    }
                    for (int64_t column = 0; column < Size; ++column)
                      to[i * Size + column] = sum[column];
                  }
                }
              });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_INTERACTION_H
