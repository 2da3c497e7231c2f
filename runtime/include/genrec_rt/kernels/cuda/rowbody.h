//===- rowbody.h - What bodies of row kernels call --------------*- C++ -*-===//
//
// What works on a whole row, by its L lanes, on which elements lie in packs of V (lanes.h).
// Reductions add in the order of cpu/rowbody.h, so both targets have the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROWBODY_H
#define GENREC_RT_KERNELS_CUDA_ROWBODY_H

#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/cuda/remainder.h"
#include "genrec_rt/kernels/shared/random.h"
#include "genrec_rt/kernels/shared/rowbody.h"

#include <type_traits>
#include <utility>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

//===----------------------------------------------------------------------===//
// Reductions: 16 columns, column c takes elements c, c + 16, …; then columns c and
// c + 8, c + 4, c + 2, c + 1 are combined. Every lane ends with the result.
//===----------------------------------------------------------------------===//

namespace detail {

struct AddColumns {
  static constexpr float kRest = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct MaxColumns {
  static constexpr float kRest = -__builtin_inff();
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct MinColumns {
  static constexpr float kRest = __builtin_inff();
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};

/// Combines columns c and c + By for c < By, then those By / 2 apart, and so on. By is no loop's:
/// of two loops, one of which bounds the other, nvcc may unroll none, and `totals` lies in memory.
template <int By, int C, class Combine>
__device__ inline float combineHalves(float (&totals)[C], Combine combine) {
  if constexpr (By == 0) {
    return totals[0];
  } else {
#pragma unroll
    for (int c = 0; c < By; ++c)
      totals[c] = combine(totals[c], totals[c + By]);
    return combineHalves<By / 2>(totals, combine);
  }
}

/// The same of columns on several lanes; `totals` are neighbours from C (lane % (16 / C)) on.
template <int64_t L, int C, class Combine>
__device__ inline float combineColumns(float (&totals)[C], Combine combine) {
#pragma unroll
  for (int by = 8; by >= C; by /= 2) {
    const bool isUpper = lane<L>() & (by / C);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const float other = __shfl_xor_sync(laneMask<L>(), totals[c], by / C);
      totals[c] = isUpper ? combine(other, totals[c]) : combine(totals[c], other);
    }
  }
  return combineHalves<C / 2>(totals, combine);
}

/// One lane has all elements.
template <int64_t N, class X, class Combine>
__device__ inline float reduceAlone(const X &x, Combine combine) {
  float totals[16];
#pragma unroll
  for (int c = 0; c < 16; ++c)
    totals[c] = Combine::kRest;
#pragma unroll
  for (int64_t i = 0; i < N; ++i)
    totals[i % 16] = combine(totals[i % 16], x[i]);
  return combineHalves<8>(totals, combine);
}

/// A lane's pack from element `first` on; `rest` behind the N-th element. Rows in memory may be
/// aligned for whole packs, which only their addresses say here.
template <int64_t N, class X, size_t V>
__device__ inline void loadOwn(const X &x, int64_t slot, int64_t first, float rest,
                               float (&own)[V]) {
  constexpr auto kSize = static_cast<int64_t>(V);
  if constexpr (std::is_pointer_v<X> && V > 1)
    if (first + kSize <= N && reinterpret_cast<uintptr_t>(x + first) % sizeof(own) == 0)
      return loadPack<kSize>(x + first, own);
#pragma unroll
  for (int64_t c = 0; c < kSize; ++c)
    own[c] = first + c < N ? elementOf(x, slot + c, first + c) : rest;
}

/// Columns lie on 16 / V lanes; where there are more lanes, the next elements of a column come from
/// the next 16 / V of them.
template <int64_t N, int64_t L, int64_t V, class X, class Combine>
__device__ inline float reduceByShuffles(const X &x, Combine combine) {
  constexpr int64_t kLanesOfColumns = 16 / V, kRounds = L / kLanesOfColumns;
  static_assert(kRounds >= 1, "the lanes hold at least 16 neighbours");
  float totals[V];
#pragma unroll
  for (int64_t c = 0; c < V; ++c)
    totals[c] = Combine::kRest;
#pragma unroll
  for (int64_t pack = 0; pack < kPacks<N, L, V>; ++pack) {
    float own[V];
    loadOwn<N>(x, pack * V, firstOfPack<L, V>(pack), Combine::kRest, own);
#pragma unroll
    for (int64_t round = 0; round < kRounds; ++round)
#pragma unroll
      for (int64_t c = 0; c < V; ++c) {
        if (pack * L * V + round * 16 >= N)
          continue; // as the CPU, which has no such elements
        const int64_t from = lane<L>() % kLanesOfColumns + round * kLanesOfColumns;
        totals[c] = combine(totals[c], kRounds == 1 ? own[c] : valueOf<L>(own[c], from));
      }
  }
  return combineColumns<L, static_cast<int>(V)>(totals, combine);
}

/// Through the first N floats of the row's shared memory: a warp or more has each column on a lane,
/// and once more on others.
template <int64_t N, int64_t L, int64_t V, class X, class Combine>
__device__ inline float reduceByMemory(const X &x, float *memory, Combine combine) {
  constexpr int64_t kInWarp = kLanesOfWarp<L>;
  meet<L>(); // the last reduction has been read
  forElements<N, L, V>(
      [&](int64_t slot, int64_t element) { memory[element] = elementOf(x, slot, element); });
  meet<L>();
  float total[1] = {Combine::kRest};
#pragma unroll 8
  for (int64_t i = lane<L>() % 16; i < N; i += 16)
    total[0] = combine(total[0], memory[i]);
  return combineColumns<kInWarp, 1>(total, combine);
}

/// Shuffles where they are few, else through `memory`: row_mapping.h says which, as emission keeps
/// room there.
template <int64_t N, int64_t L, int64_t V, class X, class Combine>
__device__ inline float reduceColumns(const X &x, [[maybe_unused]] float *memory, Combine combine) {
  if constexpr (L == 1)
    return reduceAlone<N>(x, combine);
  else if constexpr (reducesByMemory(L, V))
    return reduceByMemory<N, L, V>(x, memory, combine);
  else
    return reduceByShuffles<N, L, V>(x, combine);
}

/// Other element types, in memory: one after another, in every lane.
template <int64_t N, class X, class Combine>
__device__ inline auto reduceInOrder(const X &x, Combine combine) {
  auto total = x[0];
  for (int64_t i = 1; i < N; ++i)
    total = combine(total, x[i]);
  return total;
}

/// Whether `x[i]` is a float.
template <class X>
constexpr bool kHasFloats =
    std::is_same_v<std::remove_cvref_t<decltype(std::declval<X &>()[0])>, float>;

} // namespace detail

/// Sums and extremes of N elements that lanes keep or that lie in memory; of other types than
/// float in memory. `memory`: shared, for N floats, where reducesByMemory.
template <int64_t N, int64_t L, int64_t V, class X>
__device__ inline auto rowSum(const X &x, float *memory = nullptr) {
  if constexpr (detail::kHasFloats<const X>)
    return detail::reduceColumns<N, L, V>(x, memory, detail::AddColumns());
  else
    return detail::reduceInOrder<N>(x, [](auto a, auto b) { return a + b; });
}
/// NaN where any element is NaN; and so for rowMin.
template <int64_t N, int64_t L, int64_t V, class X>
__device__ inline auto rowMax(const X &x, float *memory = nullptr) {
  if constexpr (detail::kHasFloats<const X>)
    return detail::reduceColumns<N, L, V>(x, memory, detail::MaxColumns());
  else
    return detail::reduceInOrder<N>(x, [](auto a, auto b) { return maximum(a, b); });
}
template <int64_t N, int64_t L, int64_t V, class X>
__device__ inline auto rowMin(const X &x, float *memory = nullptr) {
  if constexpr (detail::kHasFloats<const X>)
    return detail::reduceColumns<N, L, V>(x, memory, detail::MinColumns());
  else
    return detail::reduceInOrder<N>(x, [](auto a, auto b) { return minimum(a, b); });
}

//===----------------------------------------------------------------------===//
// Gathers and scatters of one row
//===----------------------------------------------------------------------===//

namespace detail {
template <class T, int64_t D> struct ZeroRow {
  __device__ static const T *get() {
    alignas(16) static __device__ const T values[D] = {};
    return values;
  }
};
} // namespace detail

/// Row `index`, `stride` elements from row to row; a row of D zeros for -1.
template <int64_t D, class T>
__device__ inline const T *rowAt(const T *base, int64_t stride, int64_t index) {
  return index < 0 ? detail::ZeroRow<T, D>::get() : base + index * stride;
}

/// Row `index` += value, D floats; nothing for -1. The row is this row's lanes' alone.
template <int64_t D, int64_t L, int64_t V, class X>
__device__ inline void addRow(float *base, int64_t stride, int64_t index, const X &value) {
  if (index < 0)
    return;
  float *row = base + index * stride;
  forElements<D, L, V>(
      [&](int64_t slot, int64_t element) { row[element] += elementOf(value, slot, element); });
}

template <int64_t L, int64_t V, class T>
__device__ inline void addElement(T *base, int64_t index, T value) {
  if (index >= 0 && isFirstLane<L>())
    base[index] += value;
}

/// Where chunk `chunk` leaves its `floats` sums.
__device__ inline float *chunkSums(float *sums, int64_t chunk, int64_t floats) {
  return sums + chunk * floats;
}

/// Adds N sums of the rows [first, first + teamRows) of a chunk, which has [begin, end), to those
/// of its rows before, in the order of rows. `addends` is this row's shared memory, of `Bytes`
/// bytes, from its addends on: written by the row's lanes, and again when this returns.
template <int64_t N, int64_t L, int64_t Bytes>
__device__ inline void addRows(float *sums, const float *addends, int64_t first, int64_t begin,
                               int64_t end) {
  constexpr int64_t kRow = Bytes / static_cast<int64_t>(sizeof(float));
  const float *of = addends - rowOfTeam<L>() * kRow;
  const int64_t left = end - first, rows = left < teamRows<L>() ? left : teamRows<L>();
  for (int64_t i = threadOfTeam<L>(); i < N; i += teamSize<L>()) {
    float total = first == begin ? 0 : sums[i];
#pragma unroll 8
    for (int64_t row = 0; row < rows; ++row)
      total += of[row * kRow + i];
    sums[i] = total;
  }
}

/// Zeros for sums of a chunk that stay in memory.
template <int64_t L> __device__ inline void clearSums(float *sums, int64_t floats) {
  for (int64_t i = lane<L>(); i < floats; i += L)
    sums[i] = 0;
  meet<L>();
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

namespace detail {
template <int64_t L, int64_t V, class T, size_t S, class Draw>
__device__ inline void drawInto(T (&out)[S], int64_t count, const Draw &draw) {
  constexpr int64_t kNeighbours = L == 1 ? int64_t(S) : V;
#pragma unroll
  for (int64_t slot = 0; slot < int64_t(S); ++slot) {
    const int64_t element = firstOfPack<L, kNeighbours>(slot / kNeighbours) + slot % kNeighbours;
    if (element < count)
      out[slot] = draw(element);
  }
}
template <int64_t L, int64_t V, class T, class Draw>
__device__ inline void drawInto(T *const &out, int64_t count, const Draw &draw) {
  for (int64_t element = lane<L>(); element < count; element += L)
    out[element] = draw(element);
  meet<L>();
}
} // namespace detail

/// `count` row numbers in [0, rows), by the elements 0, 1, … of a row's stream.
template <int64_t L, int64_t V, class Out>
__device__ inline void drawRows(const RandomStream &stream, uint64_t row, int64_t rows,
                                int64_t count, Out &&out) {
  detail::drawInto<L, V>(out, count, [&](int64_t element) -> int64_t {
    return drawIndex(philoxWord(stream, row, static_cast<uint64_t>(element)),
                     static_cast<uint32_t>(rows));
  });
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

namespace detail {
/// The greatest power of two that is at most Count; 0 of 0.
template <int64_t Count> constexpr int64_t kHighestBit = 2 * kHighestBit<Count / 2>;
template <> inline constexpr int64_t kHighestBit<1> = 1;
template <> inline constexpr int64_t kHighestBit<0> = 0;
} // namespace detail

/// bucketOf for a number of edges known when compiling: as many steps for every x, each a load and
/// a selection.
template <int64_t Count, class T> __device__ inline int64_t bucketAmong(T x, const double *edges) {
  const double value = static_cast<double>(x);
  int64_t below = 0; // edges that are <= x
#pragma unroll
  for (int64_t step = detail::kHighestBit<Count>; step > 0; step /= 2) {
    const int64_t next = below + step;
    below = next <= Count && edges[next - 1] <= value ? next : below;
  }
  return below;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROWBODY_H
