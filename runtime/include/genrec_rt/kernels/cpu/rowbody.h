//===- rowbody.h - What bodies of row kernels call --------------*- C++ -*-===//
//
// Reductions of a row, gathers of one row or element, draws: the phases between the
// loops that `outline-kernels` makes. Sizes are those of one row.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ROWBODY_H
#define GENREC_RT_KERNELS_CPU_ROWBODY_H

#include "genrec_rt/kernels/cpu/random.h"
#include "genrec_rt/kernels/shared/rowbody.h"

#include <string.h>
#include <type_traits>
#include <utility>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

#if defined(__clang__)
#if __has_feature(coverage_sanitizer)
#define GENREC_COUNTS_ACCESSES 1
#endif
#endif

/// x % divisor as C has it, where the divisor is known when the kernel runs.
GENREC_HOST_DEVICE int64_t remainderBy(int64_t x, int64_t divisor) { return x % divisor; }

/// Asks for the first `Floats` of the table row of `Ahead` rows on, if there is one. A build that
/// counts accesses does nothing: the handle would count twice.
template <int64_t Floats, int64_t Ahead>
GENREC_HOST_DEVICE void prefetchRow([[maybe_unused]] float *const *handles,
                                    [[maybe_unused]] int64_t row, [[maybe_unused]] int64_t count) {
#if !defined(GENREC_COUNTS_ACCESSES)
  if (row + Ahead >= count)
    return;
  const auto *next = reinterpret_cast<const char *>(handles[row + Ahead]);
#pragma GCC unroll 16
  for (int64_t byte = 0; byte < Floats * 4; byte += 64)
    __builtin_prefetch(next + byte);
#endif
}

//===----------------------------------------------------------------------===//
// Reductions: 16 lanes, lane l takes elements l, l + 16, …; then lanes l and
// l + 8, l + 4, l + 2, l + 1 are combined. The same on every machine.
//===----------------------------------------------------------------------===//

namespace detail {

typedef float Lanes16 __attribute__((vector_size(64)));
typedef float Lanes8 __attribute__((vector_size(32)));
typedef float Lanes4 __attribute__((vector_size(16)));

/// Up to 16 elements, the others `rest`.
template <int64_t Count> GENREC_SIMD Lanes16 loadLanes(const float *x, float rest) {
  if constexpr (Count == 16) {
    Lanes16 lanes;
    __builtin_memcpy(&lanes, x, 64);
    return lanes;
  } else {
    Lanes16 lanes = rest - Lanes16{};
#pragma GCC unroll 16
    for (int64_t lane = 0; lane < Count; ++lane)
      lanes[lane] = x[lane];
    return lanes;
  }
}

struct AddLanes {
  static constexpr float kRest = 0;
  template <class V> GENREC_SIMD V operator()(V a, V b) const { return a + b; }
};
struct MaxLanes {
  static constexpr float kRest = -__builtin_inff();
  template <class V> GENREC_SIMD V operator()(V a, V b) const {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct MinLanes {
  static constexpr float kRest = __builtin_inff();
  template <class V> GENREC_SIMD V operator()(V a, V b) const {
    return ((a < b) | (a != a)) ? a : b;
  }
};

/// Without a loop where there are few: of many loops in a kernel clang takes time with the square.
template <int64_t Count, class Combine>
GENREC_SIMD Lanes16 combineWhole(const float *x, Combine combine) {
  Lanes16 total = Combine::kRest - Lanes16{};
  if constexpr (Count <= 8) {
    [&]<int64_t... Index>(std::integer_sequence<int64_t, Index...>)
        __attribute__((always_inline)) {
          ((total = combine(total, loadLanes<16>(x + 16 * Index, 0))), ...);
        }(std::make_integer_sequence<int64_t, Count>());
  } else {
    for (int64_t index = 0; index < Count; ++index)
      total = combine(total, loadLanes<16>(x + 16 * index, 0));
  }
  return total;
}

template <int64_t N, class Combine> GENREC_SIMD float reduceLanes(const float *x, Combine combine) {
  constexpr int64_t kWhole = N / 16 * 16;
  Lanes16 total = combineWhole<N / 16>(x, combine);
  if constexpr (kWhole < N)
    total = combine(total, loadLanes<N - kWhole>(x + kWhole, Combine::kRest));
  Lanes8 a = combine(__builtin_shufflevector(total, total, 0, 1, 2, 3, 4, 5, 6, 7),
                     __builtin_shufflevector(total, total, 8, 9, 10, 11, 12, 13, 14, 15));
  Lanes4 b =
      combine(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7));
  Lanes4 c = combine(b, __builtin_shufflevector(b, b, 2, 3, 0, 1));
  Lanes4 d = combine(c, __builtin_shufflevector(c, c, 1, 0, 3, 2));
  return d[0];
}

} // namespace detail

template <int64_t N> GENREC_SIMD float rowSum(const float *x) {
  return detail::reduceLanes<N>(x, detail::AddLanes());
}
/// NaN where any element is NaN; and so for rowMin.
template <int64_t N> GENREC_SIMD float rowMax(const float *x) {
  return detail::reduceLanes<N>(x, detail::MaxLanes());
}
template <int64_t N> GENREC_SIMD float rowMin(const float *x) {
  return detail::reduceLanes<N>(x, detail::MinLanes());
}

/// Other element types: one after another.
template <int64_t N, class T> inline T rowSum(const T *x) {
  T total = x[0];
  for (int64_t i = 1; i < N; ++i)
    total += x[i];
  return total;
}
template <int64_t N, class T> inline T rowMax(const T *x) {
  T most = x[0];
  for (int64_t i = 1; i < N; ++i)
    most = maximum(most, x[i]);
  return most;
}
template <int64_t N, class T> inline T rowMin(const T *x) {
  T least = x[0];
  for (int64_t i = 1; i < N; ++i)
    least = minimum(least, x[i]);
  return least;
}

//===----------------------------------------------------------------------===//
// Gathers and scatters of one row
//===----------------------------------------------------------------------===//

namespace detail {
template <class T, int64_t D> struct ZeroRow {
  alignas(64) static constexpr T values[D] = {};
};
} // namespace detail

/// Row `index`, `stride` elements from row to row; a row of D zeros for -1.
template <int64_t D, class T> inline const T *rowAt(const T *base, int64_t stride, int64_t index) {
  return index < 0 ? detail::ZeroRow<T, D>::values : base + index * stride;
}

/// Row `index` += value, D floats; nothing for -1.
template <int64_t D>
inline void addRow(float *base, int64_t stride, int64_t index, const float *value) {
  if (index < 0)
    return;
  float *row = base + index * stride;
  for (int64_t i = 0; i < D; ++i)
    row[i] += value[i];
}

template <class T> GENREC_HOST_DEVICE void addElement(T *base, int64_t index, T value) {
  if (index >= 0)
    base[index] += value;
}

/// Where a chunk of rows adds up `floats` sums: zeros, or, for ~chunk, what earlier rows of
/// the chunk left (row_blocks.h).
inline float *chunkSums(float *sums, int64_t chunk, int64_t floats) {
  if (chunk < 0)
    return sums + ~chunk * floats;
  memset(sums + chunk * floats, 0, static_cast<size_t>(floats) * 4);
  return sums + chunk * floats;
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

/// `count` row numbers in [0, rows), by the elements 0, 1, … of a row's stream.
inline void drawRows(const RandomStream &stream, uint64_t row, int64_t rows, int64_t count,
                     int64_t *out) {
  constexpr int64_t kWords = 256;
  uint32_t words[kWords];
  for (int64_t begin = 0; begin < count; begin += kWords) {
    int64_t left = count - begin < kWords ? count - begin : kWords;
    fillBits(stream, row, static_cast<uint64_t>(begin), left, words);
    for (int64_t i = 0; i < left; ++i)
      out[begin + i] = drawIndex(words[i], static_cast<uint32_t>(rows));
  }
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

namespace detail {

/// The least float that is not below `edge`: x >= edge and x >= atLeast(edge) are the same for
/// floats, of which a vector holds twice as many as doubles.
GENREC_HOST_DEVICE float atLeast(double edge, float) {
  auto near = static_cast<float>(edge);
  if (static_cast<double>(near) >= edge || edge != edge)
    return near;
  // The next float up: from a negative one its bits, of sign and magnitude, go down.
  int32_t bits;
  __builtin_memcpy(&bits, &near, 4);
  bits = near == 0 ? 1 : bits < 0 ? bits - 1 : bits + 1;
  __builtin_memcpy(&near, &bits, 4);
  return near;
}
GENREC_HOST_DEVICE double atLeast(double edge, double) { return edge; }

/// A search of x among up to 63 edges, as the middles of a tree that is full: which edge is next
/// is selected by what the comparisons before it said. No branch and no memory, so that a loop
/// over rows runs in vectors; half of what comparing with all 15 edges takes.
template <int64_t Count, class T> struct EdgeTree {
  static constexpr int kLevels = 64 - __builtin_clzll(Count);

  /// The middle of edges [first, last] after `level - depth` more of the comparisons `isAbove`.
  template <int64_t First, int64_t Last, int Depth, int Level>
  GENREC_HOST_DEVICE static T middle(const bool (&isAbove)[kLevels], const double *edges) {
    constexpr int64_t kMiddle = (First + Last) / 2;
    if constexpr (Depth == Level) {
      // Nothing is above what fills the tree up.
      return kMiddle < Count ? atLeast(edges[kMiddle], T()) : static_cast<T>(__builtin_nan(""));
    } else {
      T above = middle<kMiddle + 1, Last, Depth + 1, Level>(isAbove, edges);
      T below = middle<First, kMiddle - 1, Depth + 1, Level>(isAbove, edges);
      return isAbove[Depth] ? above : below;
    }
  }

  template <int Level>
  GENREC_HOST_DEVICE static int32_t descend(T x, bool (&isAbove)[kLevels], const double *edges) {
    if constexpr (Level == kLevels) {
      return 0;
    } else {
      isAbove[Level] = x >= middle<0, (int64_t(1) << kLevels) - 2, 0, Level>(isAbove, edges);
      int32_t half = isAbove[Level] ? 1 << (kLevels - 1 - Level) : 0;
      return half + descend<Level + 1>(x, isAbove, edges);
    }
  }
};

} // namespace detail

/// bucketOf for a number of edges known when compiling.
template <int64_t Count, class T> GENREC_HOST_DEVICE int64_t bucketAmong(T x, const double *edges) {
  if constexpr (Count > 0 && Count < 64 && std::is_floating_point_v<T>) {
    using Tree = detail::EdgeTree<Count, T>;
    bool isAbove[Tree::kLevels];
    return Tree::template descend<0>(x, isAbove, edges);
  } else {
    return bucketOf(x, edges, Count);
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ROWBODY_H
