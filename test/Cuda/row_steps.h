//===- row_steps.h - Kernels that step rows, for tests of sums ---*- C++ -*-===//
//
// Steps as simple as can be, in place of those that are generated from the optimizers' bodies
// (test/EndToEnd/test_cuda_kernels.py runs these): what is tested and measured with them is the
// reduction, and the memory that a step reads and writes.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_ROW_STEPS_H
#define GENREC_TEST_CUDA_ROW_STEPS_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/segment_sums.h"

namespace genrec::rt::cuda::test {

/// No state.
struct Descend {
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *, int64_t) const {
    return weight - rate * gradient;
  }
};

/// The gradient itself.
struct Copied {
  __host__ __device__ float operator()(float, float gradient, float *, int64_t) const {
    return gradient;
  }
};

/// One state: the sum of the squares.
struct Accumulate {
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *states, int64_t) const {
    states[0] += gradient * gradient;
    return weight - rate * gradient / (states[0] + 1);
  }
};

/// Two states, as far apart as a row has elements: moving means of the gradient and its square.
struct Average {
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *states,
                                       int64_t dim) const {
    states[0] += 0.1f * (gradient - states[0]);
    states[dim] += 0.1f * (gradient * gradient - states[dim]);
    return weight - rate * states[0] / (states[dim] + 1);
  }
};

constexpr int kStepThreads = 128, kStepWarps = kStepThreads / kWarp;

/// A warp per row: D elements of T, rounded up to 4 bytes, then states of D floats. Null rows are
/// left out. `count` rows, of which *used exist (null: all).
template <class T, int64_t D, class Step>
__global__ void __launch_bounds__(kStepThreads)
    stepRows(T *const *rows, int64_t count, const uint32_t *used, const SegmentSums *sums,
             Step step) {
  __shared__ float gradients[kStepWarps][D];
  const int64_t present = used && *used < count ? *used : count;
  for (int64_t u = blockIdx.x * kStepWarps + warpOf(); u < present; u += gridDim.x * kStepWarps) {
    T *row = rows[u];
    if (!row)
      continue;
    const float *gradient = segmentSum<D>(sums, u, gradients[warpOf()]);
    auto *states = reinterpret_cast<float *>(reinterpret_cast<char *>(row) +
                                             (D * static_cast<int64_t>(sizeof(T)) + 3) / 4 * 4);
    for (int64_t c = laneOf(); c < D; c += kWarp)
      row[c] = fromFloat<T>(step(toFloat(row[c]), gradient[c], states + c, D));
    __syncwarp(); // the gradients have been read
  }
}

template <class T, int64_t D, class Step>
void launchStep(T *const *rows, int64_t count, const uint32_t *used, const SegmentSums *sums,
                const Step &step, cudaStream_t stream) {
  const LaunchShape shape{dim3(static_cast<unsigned>(blocksFor(count, kStepWarps))),
                          dim3(kStepThreads)};
  auto kernel = stepRows<T, D, Step>;
  GENREC_CUDA_LAUNCH(stream, shape, kernel, rows, count, used, sums, step);
}

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_ROW_STEPS_H
