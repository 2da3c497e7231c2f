//===- rows.cu - Gathering and pooling rows -------------------------------===//

#include "genrec_rt/kernels/cuda/rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace genrec::rt::cuda {

namespace {

constexpr int kRowThreads = 128, kRowWarps = kRowThreads / kWarp;

LaunchShape shapeOf(int64_t rows) { return shapeOfThreads(rows * kWarp, kRowThreads); }

__device__ int64_t warpInGrid() { return static_cast<int64_t>(blockIdx.x) * kRowWarps + warpOf(); }
__device__ int64_t warpsInGrid() { return static_cast<int64_t>(gridDim.x) * kRowWarps; }

template <class From, class To>
using WithConstOf = std::conditional_t<std::is_const_v<From>, const To, To>;

/// Rows that a thread has under way: their addresses are loaded together, then what lies there, so
/// that it waits for memory twice per kRows rows.
constexpr int kRows = 4;

/// Copies rows into a matrix or, where `Row` is not const, out of one, in words of `Unit`, which
/// divides rows and their places. 2^`shift` threads have a row, so that short rows keep all lanes
/// of a warp busy.
template <class Row, class Matrix, class Unit>
__global__ void __launch_bounds__(kRowThreads)
    copyRows(Row *const *rows, int64_t count, int64_t units, int shift, Matrix *matrix,
             int64_t ld) {
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
        unit[r] = row[r] ? loadWhole<Unit>(kToRows ? other + u : row[r] + u) : Unit{};
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = first + r * groups;
        if constexpr (kToRows) {
          if (row[r])
            storeWhole(row[r] + u, unit[r]);
        } else if (i < count) {
          storeWhole(reinterpret_cast<MatrixUnit *>(matrix + i * ld) + u, unit[r]);
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

/// What a lane has of a list's sum: so many elements as a `Unit` of a row holds.
template <class T, class Unit> struct UnitSum {
  static constexpr int kEach = sizeof(Unit) / sizeof(T);
  using Word = std::conditional_t<kEach == 4, uint4, float>;
  float total[kEach] = {};

  __device__ void add(const Unit &unit) {
    T elements[kEach];
    __builtin_memcpy(elements, &unit, sizeof unit);
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      total[c] += toFloat(elements[c]);
  }
  /// Writes it, divided by `size`, and begins the next.
  __device__ void write(float *out, Pool kind, int size) {
    if (kind == Pool::mean)
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        total[c] /= static_cast<float>(size);
    Word word;
    __builtin_memcpy(&word, total, sizeof word);
    storeWhole(out, word);
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      total[c] = 0;
  }
};

/// A warp has `each` lists, 32 at most, one after the other: it goes through the rows of all of
/// them as if they were one list, 32 addresses at a time, so that short lists wait no longer for
/// memory than long ones.
template <class T, class Unit>
__global__ void __launch_bounds__(kRowThreads, 8)
    pool(const T *const *rows, const uint32_t *inverse, const int64_t *offsets, int64_t parents,
         int each, int64_t units, Pool kind, float *out, int64_t ldOut) {
  using Sum = UnitSum<T, Unit>;
  for (int64_t parent = warpInGrid() * each; parent < parents; parent += warpsInGrid() * each) {
    const auto lists = static_cast<int>(min(static_cast<int64_t>(each), parents - parent));
    // Entries are counted from the first of them on. Those of a batch are below 2^31.
    const int64_t begin = offsets[parent];
    const auto ownEnd = static_cast<int>(offsets[parent + min(laneOf() + 1, lists)] - begin);
    const int count = __shfl_sync(kAllLanes, ownEnd, lists - 1);
    for (int64_t unit = laneOf(); unit - laneOf() < units; unit += kWarp) {
      const bool hasUnit = unit < units;
      float *into = out + parent * ldOut + unit * Sum::kEach;
      Sum sum;
      int list = 0, from = 0, to = __shfl_sync(kAllLanes, ownEnd, 0); // of what is summed now
      auto close = [&](int entry) { // lists that end before the entry
        while (list < lists && to <= entry) {
          if (hasUnit)
            sum.write(into, kind, max(to - from, 1));
          into += ldOut;
          from = to;
          to = __shfl_sync(kAllLanes, ownEnd, ++list % kWarp);
        }
      };
      for (int block = 0; block < count; block += kWarp) {
        const int own = block + laneOf();
        const auto address =
            reinterpret_cast<uint64_t>(own < count ? rows[inverse[begin + own]] : nullptr);
        for (int at = 0; at < kWarp && block + at < count; at += kRows) {
          const Unit *row[kRows];
          Unit values[kRows];
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            row[r] = reinterpret_cast<const Unit *>(__shfl_sync(kAllLanes, address, at + r));
            if (row[r] && hasUnit)
              values[r] = loadWhole<Unit>(row[r] + unit);
          }
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            close(min(block + at + r, count));
            if (row[r] && hasUnit)
              sum.add(values[r]);
          }
        }
      }
      close(count);
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
  if (parents == 0)
    return;
  // So many warps have a list each. On the host they are few, so that tests see several lists.
  constexpr int64_t kMostWarps = deviceSize(1 << 14, 2);
  const auto each = static_cast<int>(std::clamp<int64_t>(parents / kMostWarps, 1, kWarp));
  auto launch = [&](auto kernel, int64_t units) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(blocksFor(parents, each)), kernel, rows, inverse, offsets,
                       parents, each, units, kind, out, ldOut);
  };
  // Rows of the store are aligned to 64 bytes; what is written may not be.
  using Four = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
  if (dim % 4 == 0 && ldOut % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0)
    launch(pool<T, Four>, dim / 4);
  else
    launch(pool<T, T>, dim);
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
