//===- rows.cu - Gathering and pooling rows -------------------------------===//

#include "genrec_rt/cuda/rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/launch.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
/// Columns that a lane keeps at once.
constexpr int kEach = 4;
constexpr int64_t kChunk = kWarp * kEach;

LaunchShape shapeOf(int64_t rows) {
  constexpr int64_t kMostBlocks = 16384;
  return {dim3(static_cast<unsigned>(std::clamp<int64_t>(blocksFor(rows, kWarps), 1, kMostBlocks))),
          dim3(kThreads)};
}

__device__ int64_t warpInGrid() { return static_cast<int64_t>(blockIdx.x) * kWarps + warpOf(); }
__device__ int64_t warpsInGrid() { return static_cast<int64_t>(gridDim.x) * kWarps; }

/// Copies in words of `Unit`, which divides rows and their places.
template <class T, class Unit>
__global__ void __launch_bounds__(kThreads)
    gather(const T *const *rows, int64_t count, int64_t units, T *out, int64_t ldOut) {
  for (int64_t i = warpInGrid(); i < count; i += warpsInGrid()) {
    const Unit *from = reinterpret_cast<const Unit *>(rows[i]);
    Unit *to = reinterpret_cast<Unit *>(out + i * ldOut);
    for (int64_t u = laneOf(); u < units; u += kWarp)
      to[u] = from ? from[u] : Unit{};
  }
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
      for (int64_t i = begin; i < end; ++i) {
        const T *row = rows[inverse[i]];
#pragma unroll
        for (int c = 0; c < kEach; ++c)
          if (row && base + c * kWarp < dim)
            total[c] += toFloat(row[base + c * kWarp]);
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
  if (count == 0)
    return;
  const int64_t bytes = dim * static_cast<int64_t>(sizeof(T)),
                step = ldOut * static_cast<int64_t>(sizeof(T));
  // Rows of the store are aligned to 64 bytes; where they go may not be.
  const bool isWide =
      bytes % 16 == 0 && step % 16 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0;
  if (isWide)
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), (gather<T, uint4>), rows, count, bytes / 16, out,
                       ldOut);
  else
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), (gather<T, T>), rows, count, dim, out, ldOut);
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
  template void poolRows<T>(const T *const *, const uint32_t *, const int64_t *, int64_t, int64_t, \
                            Pool, float *, int64_t, cudaStream_t);
GENREC_ROWS(float)
GENREC_ROWS(Bf16)
#undef GENREC_ROWS

} // namespace genrec::rt::cuda
