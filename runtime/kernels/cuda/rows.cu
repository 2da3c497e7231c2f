//===- rows.cu - Gathering, pooling, updating rows ------------------------===//

#include "genrec_rt/cuda/rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/launch.h"

#include <algorithm>
#include <cmath>

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

/// What the host works out once per step.
struct StepFactors {
  float rate, weightDecay, beta1, beta2, epsilon;
  float stepSize;       ///< rate / (1 - beta1^step)
  float rootCorrection; ///< sqrt(1 - beta2^step)
};

/// One step for one weight; states are `states[0]` and `states[stride]`.
template <OptimizerKind Kind>
__device__ float stepped(float weight, float gradient, float *states, int64_t stride,
                         const StepFactors &f) {
  if (Kind == OptimizerKind::adamw)
    weight -= f.rate * f.weightDecay * weight;
  else
    gradient += f.weightDecay * weight;
  if (Kind == OptimizerKind::sgd)
    return weight - f.rate * gradient;
  if (Kind == OptimizerKind::adagrad) {
    states[0] += gradient * gradient;
    return weight - f.rate * gradient / (__fsqrt_rn(states[0]) + f.epsilon);
  }
  const float first = f.beta1 * states[0] + (1 - f.beta1) * gradient;
  const float second = f.beta2 * states[stride] + (1 - f.beta2) * gradient * gradient;
  states[0] = first;
  states[stride] = second;
  return weight - f.stepSize * first / (__fsqrt_rn(second) / f.rootCorrection + f.epsilon);
}

template <class T, OptimizerKind Kind>
__global__ void __launch_bounds__(kThreads)
    update(T *const *rows, int64_t count, const uint32_t *used, int64_t dim, const uint32_t *order,
           const int64_t *segments, RowGradients gradients, StepFactors factors) {
  const int64_t present = used ? min(count, static_cast<int64_t>(*used)) : count;
  const int64_t valueBytes = (dim * static_cast<int64_t>(sizeof(T)) + 3) / 4 * 4;
  for (int64_t u = warpInGrid(); u < present; u += warpsInGrid()) {
    T *row = rows[u];
    if (!row)
      continue;
    float *states = reinterpret_cast<float *>(reinterpret_cast<char *>(row) + valueBytes);
    const int64_t begin = segments[u], end = segments[u + 1];
    for (int64_t base = laneOf(); base < dim; base += kChunk) {
      float total[kEach] = {};
      for (int64_t at = begin; at < end; ++at) {
        const int64_t occurrence = order[at];
        const int64_t parent = gradients.parents ? gradients.parents[occurrence] : occurrence;
        float share = 1;
        if (gradients.listOffsets)
          share = 1 / static_cast<float>(gradients.listOffsets[parent + 1] -
                                         gradients.listOffsets[parent]);
        const float *gradient = gradients.gradients + parent * gradients.ld;
#pragma unroll
        for (int c = 0; c < kEach; ++c)
          if (base + c * kWarp < dim)
            total[c] += gradient[base + c * kWarp] * share;
      }
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        const int64_t column = base + c * kWarp;
        if (column < dim)
          row[column] = fromFloat<T>(
              stepped<Kind>(toFloat(row[column]), total[c], states + column, dim, factors));
      }
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

template <class T>
void updateRows(T *const *rows, int64_t count, const uint32_t *used, int64_t dim,
                const uint32_t *order, const int64_t *segments, const RowGradients &gradients,
                const RowOptimizer &optimizer, cudaStream_t stream) {
  if (count == 0)
    return;
  const double step = static_cast<double>(optimizer.step);
  const StepFactors factors{
      optimizer.rate,
      optimizer.weightDecay,
      optimizer.beta1,
      optimizer.beta2,
      optimizer.epsilon,
      static_cast<float>(optimizer.rate /
                         (1 - std::pow(static_cast<double>(optimizer.beta1), step))),
      static_cast<float>(std::sqrt(1 - std::pow(static_cast<double>(optimizer.beta2), step)))};
  auto launch = [&](auto kernel) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), kernel, rows, count, used, dim, order, segments,
                       gradients, factors);
  };
  switch (optimizer.kind) {
  case OptimizerKind::sgd:
    return launch(update<T, OptimizerKind::sgd>);
  case OptimizerKind::adagrad:
    return launch(update<T, OptimizerKind::adagrad>);
  case OptimizerKind::adam:
    return launch(update<T, OptimizerKind::adam>);
  case OptimizerKind::adamw:
    return launch(update<T, OptimizerKind::adamw>);
  }
}

#define GENREC_ROWS(T)                                                                             \
  template void gatherRows<T>(const T *const *, int64_t, int64_t, T *, int64_t, cudaStream_t);     \
  template void poolRows<T>(const T *const *, const uint32_t *, const int64_t *, int64_t, int64_t, \
                            Pool, float *, int64_t, cudaStream_t);                                 \
  template void updateRows<T>(T *const *, int64_t, const uint32_t *, int64_t, const uint32_t *,    \
                              const int64_t *, const RowGradients &, const RowOptimizer &,         \
                              cudaStream_t);
GENREC_ROWS(float)
GENREC_ROWS(Bf16)
#undef GENREC_ROWS

} // namespace genrec::rt::cuda
