//===- warp.h - What the bodies of row kernels call on a device --*- C++ -*-===//
//
// The functions of rowbody.h, rows.h and fillBits for CUDA, where a warp has a
// row and elements are on lanes: element i belongs to lane i % 32. Each is called
// by all lanes of a warp with equal arguments; what it writes into shared arrays
// may be read by every lane when it returns. Reductions add in the order of
// rowbody.h, so both targets have the same bits.
//
// Used in place of those under nvcc, and on the host where GENREC_WARP_ROWS is
// defined (tests, over the stand-in for <cuda_runtime.h>).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_WARP_H
#define GENREC_RT_KERNELS_WARP_H

#include "genrec_rt/kernels/random.h"
#include "genrec_rt/kernels/rowmath.h"

#include <cuda_runtime.h>

#if !defined(GENREC_WARP_ROWS)
#error "warp.h is for code that runs on a device"
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

constexpr int64_t kWarpLanes = 32;
/// Warps of a block of row kernels: launch them with 128 threads.
constexpr int64_t kRowWarps = 4;
constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;

__device__ inline int64_t lane() { return threadIdx.x % kWarpLanes; }
/// The first row of this warp, which is its number in the grid, and the number of warps.
__device__ inline int64_t firstRow() { return blockIdx.x * kRowWarps + threadIdx.x / kWarpLanes; }
__device__ inline int64_t rowStep() { return gridDim.x * kRowWarps; }

/// This warp's array number `Array` of N elements.
template <class T, int64_t N, int64_t Array> __device__ inline T *sharedRow() {
  __shared__ T rows[kRowWarps][N];
  return rows[threadIdx.x / kWarpLanes];
}

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

/// The sum over all 32 lanes, in every lane.
__device__ inline float sumOfLanes(float x) {
  for (int by = 16; by > 0; by /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, by);
  return x;
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

/// The words of the elements [0, N) of a row, as philoxWord.
template <int64_t N>
__device__ inline void fillBits(const RandomStream &stream, uint64_t row, uint32_t *out) {
  for (int64_t i = lane(); i < N; i += kWarpLanes)
    out[i] = philoxWord(stream, row, static_cast<uint64_t>(i));
  __syncwarp();
}

/// Uniform numbers in [0, 1) of the elements [0, N) of a row, from their words.
template <int64_t N>
__device__ inline void fillUniform(const RandomStream &stream, uint64_t row, float *out) {
  for (int64_t i = lane(); i < N; i += kWarpLanes)
    out[i] = uniformFromBits(philoxWord(stream, row, static_cast<uint64_t>(i)));
  __syncwarp();
}

/// `count` row numbers in [0, rows), by the elements 0, 1, … of a row's stream.
__device__ inline void drawRows(const RandomStream &stream, uint64_t row, int64_t rows,
                                int64_t count, int64_t *out) {
  for (int64_t i = lane(); i < count; i += kWarpLanes)
    out[i] =
        drawIndex(philoxWord(stream, row, static_cast<uint64_t>(i)), static_cast<uint32_t>(rows));
  __syncwarp();
}

//===----------------------------------------------------------------------===//
// Products with gathered rows: those of rows.h, in another order of addition
//===----------------------------------------------------------------------===//

/// out[j] = dot(row index[j], q) for j < n.
template <int64_t D, class Index>
__device__ inline void gatherDot(const float *base, int64_t ld, const Index *index, int64_t n,
                                 const float *q, float *out) {
  for (int64_t j = 0; j < n; ++j) {
    const float *row = base + static_cast<int64_t>(index[j]) * ld;
    float total = 0;
    for (int64_t i = lane(); i < D; i += kWarpLanes)
      total = detail::mulAdd(row[i], q[i], total);
    total = detail::sumOfLanes(total);
    if (lane() == 0)
      out[j] = total;
  }
  __syncwarp();
}

/// out[D] = sum over j < n of coefficients[j] * row index[j]; zeros for n = 0.
template <int64_t D, class Index>
__device__ inline void gatherSum(const float *base, int64_t ld, const Index *index,
                                 const float *coefficients, int64_t n, float *out) {
  for (int64_t i = lane(); i < D; i += kWarpLanes) {
    float total = 0;
    for (int64_t j = 0; j < n; ++j)
      total = detail::mulAdd(coefficients[j], base[static_cast<int64_t>(index[j]) * ld + i], total);
    out[i] = total;
  }
  __syncwarp();
}

/// row index[j] of the accumulator += coefficients[j] * q, one j after another.
template <int64_t D, class Index>
__device__ inline void scatterAddOuter(float *base, int64_t ld, const Index *index,
                                       const float *coefficients, int64_t n, const float *q) {
  for (int64_t j = 0; j < n; ++j) {
    float *row = base + static_cast<int64_t>(index[j]) * ld;
    for (int64_t i = lane(); i < D; i += kWarpLanes)
      row[i] = detail::mulAdd(coefficients[j], q[i], row[i]);
  }
  __syncwarp();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

namespace kernels = genrec::rt::kernels; // as generated code calls it: launch.h has the same

#endif // GENREC_RT_KERNELS_WARP_H
