//===- rowbody.h - What bodies of row kernels call --------------*- C++ -*-===//
//
// What works on a whole row, by a warp (warp.h). Reductions add in the order of
// cpu/rowbody.h, so both targets have the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROWBODY_H
#define GENREC_RT_KERNELS_CUDA_ROWBODY_H

#include "genrec_rt/kernels/cuda/warp.h"
#include "genrec_rt/kernels/shared/random.h"
#include "genrec_rt/kernels/shared/rowbody.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

//===----------------------------------------------------------------------===//
// Reductions: 16 lanes, lane l takes elements l, l + 16, …; then lanes l and
// l + 8, l + 4, l + 2, l + 1 are combined. The upper half of the warp does the
// same once more, so that every lane ends with the result.
//===----------------------------------------------------------------------===//

namespace detail {

struct AddLanes {
  static constexpr float kRest = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct MaxLanes {
  static constexpr float kRest = -__builtin_inff();
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct MinLanes {
  static constexpr float kRest = __builtin_inff();
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};

template <int64_t N, class Combine>
__device__ inline float reduceLanes(const float *x, Combine combine) {
  const int64_t first = lane() % 16;
  float total = Combine::kRest;
#pragma unroll
  for (int64_t base = 0; base < N; base += 16)
    total = combine(total, base + first < N ? x[base + first] : Combine::kRest);
  for (int by = 8; by > 0; by /= 2)
    total = combine(total, __shfl_xor_sync(kWholeWarp, total, by));
  return total;
}

} // namespace detail

template <int64_t N> __device__ inline float rowSum(const float *x) {
  return detail::reduceLanes<N>(x, detail::AddLanes());
}
/// NaN where any element is NaN; and so for rowMin.
template <int64_t N> __device__ inline float rowMax(const float *x) {
  return detail::reduceLanes<N>(x, detail::MaxLanes());
}
template <int64_t N> __device__ inline float rowMin(const float *x) {
  return detail::reduceLanes<N>(x, detail::MinLanes());
}

/// Other element types: one after another, in every lane.
template <int64_t N, class T> __device__ inline T rowSum(const T *x) {
  T total = x[0];
  for (int64_t i = 1; i < N; ++i)
    total += x[i];
  return total;
}
template <int64_t N, class T> __device__ inline T rowMax(const T *x) {
  T most = x[0];
  for (int64_t i = 1; i < N; ++i)
    most = maximum(most, x[i]);
  return most;
}
template <int64_t N, class T> __device__ inline T rowMin(const T *x) {
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
  __device__ static const T *get() {
    static __device__ const T values[D] = {};
    return values;
  }
};
} // namespace detail

/// Row `index`, `stride` elements from row to row; a row of D zeros for -1.
template <int64_t D, class T>
__device__ inline const T *rowAt(const T *base, int64_t stride, int64_t index) {
  return index < 0 ? detail::ZeroRow<T, D>::get() : base + index * stride;
}

/// Row `index` += value, D floats; nothing for -1. The row is this warp's alone.
template <int64_t D>
__device__ inline void addRow(float *base, int64_t stride, int64_t index, const float *value) {
  if (index < 0)
    return;
  for (int64_t i = lane(); i < D; i += kWarpLanes)
    base[index * stride + i] += value[i];
  __syncwarp();
}

template <class T> __device__ inline void addElement(T *base, int64_t index, T value) {
  if (index >= 0 && lane() == 0)
    base[index] += value;
  __syncwarp();
}

__device__ inline float *chunkSums(float *sums, int64_t chunk, int64_t floats) {
  float *own = sums + chunk * floats;
  for (int64_t i = lane(); i < floats; i += kWarpLanes)
    own[i] = 0;
  __syncwarp();
  return own;
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

/// `count` row numbers in [0, rows), by the elements 0, 1, … of a row's stream.
__device__ inline void drawRows(const RandomStream &stream, uint64_t row, int64_t rows,
                                int64_t count, int64_t *out) {
  for (int64_t i = lane(); i < count; i += kWarpLanes)
    out[i] =
        drawIndex(philoxWord(stream, row, static_cast<uint64_t>(i)), static_cast<uint32_t>(rows));
  __syncwarp();
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

/// bucketOf for a number of edges known when compiling.
template <int64_t Count, class T>
__device__ inline int64_t bucketAmong(T x, const double *edges) {
  return bucketOf(x, edges, Count);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROWBODY_H
