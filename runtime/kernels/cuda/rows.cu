//===- rows.cu - Gathering and pooling rows -------------------------------===//

#include "genrec_rt/kernels/cuda/rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
/// Columns that a lane keeps at once.
constexpr int kEach = 4;
constexpr int64_t kChunk = kWarp * kEach;

LaunchShape shapeOf(int64_t rows) {
  return shapeOfThreads(rows * kWarp, kThreads);
}

__device__ int64_t warpInGrid() { return static_cast<int64_t>(blockIdx.x) * kWarps + warpOf(); }
__device__ int64_t warpsInGrid() { return static_cast<int64_t>(gridDim.x) * kWarps; }

template <class From, class To>
using WithConstOf = std::conditional_t<std::is_const_v<From>, const To, To>;

/// Rows that a thread has under way: their addresses are loaded together, then what lies there, so
/// that it waits for memory twice per kRows rows.
constexpr int kRows = 4;

/// Copies rows into a matrix or, where `Row` is not const, out of one, in words of `Unit`, which
/// divides rows and their places. 2^`shift` threads have a row, so that short rows keep all lanes
/// of a warp busy.
template <class Row, class Matrix, class Unit>
__global__ void __launch_bounds__(kThreads) copyRows(Row *const *rows, int64_t count, int64_t units,
                                                     int shift, Matrix *matrix, int64_t ld) {
  constexpr bool kToRows = !std::is_const_v<Row>;
  using RowUnit = WithConstOf<Row, Unit>;
  using MatrixUnit = WithConstOf<Matrix, Unit>;
  const int64_t lanes = int64_t(1) << shift, groups = threadsInGrid() >> shift;
  for (int64_t first = threadInGrid() >> shift; first < count; first += kRows * groups) {
    RowUnit *row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = first + r * groups;
      row[r] = i < count ? reinterpret_cast<RowUnit *>(rows[i]) : nullptr;
    }
    for (int64_t u = threadInGrid() & (lanes - 1); u < units; u += lanes) {
      Unit unit[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        auto *other = reinterpret_cast<MatrixUnit *>(matrix + (first + r * groups) * ld);
        unit[r] = !row[r] ? Unit{} : kToRows ? other[u] : row[r][u];
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = first + r * groups;
        if constexpr (kToRows) {
          if (row[r])
            row[r][u] = unit[r];
        } else if (i < count) {
          reinterpret_cast<MatrixUnit *>(matrix + i * ld)[u] = unit[r];
        }
      }
    }
  }
}

template <class Row, class Matrix>
void launchCopy(Row *const *rows, int64_t count, int64_t dim, Matrix *matrix, int64_t ld,
                cudaStream_t stream) {
  if (count == 0 || dim == 0)
    return;
  using Element = std::remove_const_t<Row>;
  const int64_t bytes = dim * static_cast<int64_t>(sizeof(Element)),
                step = ld * static_cast<int64_t>(sizeof(Element));
  auto launch = [&](auto kernel, int64_t units) {
    const int shift =
        std::min(5, static_cast<int>(std::bit_width(static_cast<uint64_t>(units - 1))));
    GENREC_CUDA_LAUNCH(stream, shapeOf(blocksFor(blocksFor(count, kRows) << shift, kWarp)), kernel,
                       rows, count, units, shift, matrix, ld);
  };
  // Rows of the store are aligned to 64 bytes; the matrix may not be.
  if (bytes % 16 == 0 && step % 16 == 0 && reinterpret_cast<uintptr_t>(matrix) % 16 == 0)
    launch(copyRows<Row, Matrix, uint4>, bytes / 16);
  else
    launch(copyRows<Row, Matrix, Element>, dim);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    pool(const T *const *rows, const uint32_t *inverse, const int64_t *offsets, int64_t parents,
         int64_t dim, Pool kind, float *out, int64_t ldOut) {
  for (int64_t parent = warpInGrid(); parent < parents; parent += warpsInGrid()) {
    const int64_t begin = offsets[parent], end = offsets[parent + 1];
    const float size = static_cast<float>(end > begin ? end - begin : 1);
    for (int64_t base = laneOf(); base < dim; base += kChunk) {
      float total[kEach] = {};
      for (int64_t first = begin; first < end; first += kRows) {
        const T *row[kRows];
        T values[kRows][kEach];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          row[r] = first + r < end ? rows[inverse[first + r]] : nullptr;
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int c = 0; c < kEach; ++c)
            if (row[r] && base + c * kWarp < dim)
              values[r][c] = row[r][base + c * kWarp];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int c = 0; c < kEach; ++c)
            if (row[r] && base + c * kWarp < dim)
              total[c] += toFloat(values[r][c]);
      }
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < dim)
          out[parent * ldOut + base + c * kWarp] = kind == Pool::mean ? total[c] / size : total[c];
    }
  }
}

} // namespace

template <class T>
void gatherRows(const T *const *rows, int64_t count, int64_t dim, T *out, int64_t ldOut,
                cudaStream_t stream) {
  launchCopy(rows, count, dim, out, ldOut, stream);
}

template <class T>
void scatterRows(T *const *rows, int64_t count, int64_t dim, const T *values, int64_t ldValues,
                 cudaStream_t stream) {
  launchCopy(rows, count, dim, values, ldValues, stream);
}

template <class T>
void poolRows(const T *const *rows, const uint32_t *inverse, const int64_t *offsets,
              int64_t parents, int64_t dim, Pool kind, float *out, int64_t ldOut,
              cudaStream_t stream) {
  if (parents > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOf(parents), pool<T>, rows, inverse, offsets, parents, dim,
                       kind, out, ldOut);
}

#define GENREC_ROWS(T)                                                                             \
  template void gatherRows<T>(const T *const *, int64_t, int64_t, T *, int64_t, cudaStream_t);     \
  template void scatterRows<T>(T *const *, int64_t, int64_t, const T *, int64_t, cudaStream_t);    \
  template void poolRows<T>(const T *const *, const uint32_t *, const int64_t *, int64_t, int64_t, \
                            Pool, float *, int64_t, cudaStream_t);
GENREC_ROWS(float)
GENREC_ROWS(Bf16)
#undef GENREC_ROWS

} // namespace genrec::rt::cuda
