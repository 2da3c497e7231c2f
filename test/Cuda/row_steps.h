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
#include "genrec_rt/kernels/cuda/segments.h"

namespace genrec::rt::cuda::test {

/// No state.
struct Descend {
  static constexpr int kStates = 0;
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *) const {
    return weight - rate * gradient;
  }
};

/// The gradient itself.
struct Copied {
  static constexpr int kStates = 0;
  __host__ __device__ float operator()(float, float gradient, float *) const { return gradient; }
};

/// One state: the sum of the squares.
struct Accumulate {
  static constexpr int kStates = 1;
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *states) const {
    states[0] += gradient * gradient;
    return weight - rate * gradient / (states[0] + 1);
  }
};

/// Two states: moving means of the gradient and its square.
struct Average {
  static constexpr int kStates = 2;
  float rate;
  __host__ __device__ float operator()(float weight, float gradient, float *states) const {
    states[0] += 0.1f * (gradient - states[0]);
    states[1] += 0.1f * (gradient * gradient - states[1]);
    return weight - rate * states[0] / (states[1] + 1);
  }
};

constexpr int kStepThreads = 128, kStepWarps = kStepThreads / kWarp;

/// A warp per row, as generated kernels have it: D elements of T, rounded up to 4 bytes, then
/// states of D floats each. Null rows are left out. `count` rows, of which *used exist (null: all).
template <class T, int64_t D, class Step>
__global__ void __launch_bounds__(kStepThreads)
    stepRows(T *const *rows, int64_t count, const uint32_t *used, const SegmentSums *sums,
             Step step) {
  constexpr int64_t kPack = sizeof(T) == 4 && D % 4 == 0 ? 4 : 1;
  const int64_t present = used && *used < count ? *used : count;
  for (int64_t u = blockIdx.x * kStepWarps + warpOf(); u < present; u += gridDim.x * kStepWarps) {
    T *row = rows[u];
    if (!row)
      continue;
    float gradient[kernels::kSlots<D, kWarp, kPack>];
    kernels::segmentSum<D, kWarp, kPack>(sums, u, gradient);
    auto *states = reinterpret_cast<float *>(reinterpret_cast<char *>(row) +
                                             (D * static_cast<int64_t>(sizeof(T)) + 3) / 4 * 4);
#pragma unroll
    for (int64_t pack = 0; pack < kernels::kPacks<D, kWarp, kPack>; ++pack) {
      const int64_t first = kernels::firstOfPack<kWarp, kPack>(pack);
      if (first >= D)
        continue;
      T values[kPack];
      float ofStates[Step::kStates + 1][kPack]; // there are no arrays of none
      kernels::loadPack<kPack>(row + first, values);
      for (int s = 0; s < Step::kStates; ++s)
        kernels::loadPack<kPack>(states + s * D + first, ofStates[s]);
#pragma unroll
      for (int64_t j = 0; j < kPack; ++j) {
        float own[Step::kStates + 1];
        for (int s = 0; s < Step::kStates; ++s)
          own[s] = ofStates[s][j];
        values[j] = fromFloat<T>(step(toFloat(values[j]), gradient[pack * kPack + j], own));
        for (int s = 0; s < Step::kStates; ++s)
          ofStates[s][j] = own[s];
      }
      kernels::storePack<kPack>(row + first, values);
      for (int s = 0; s < Step::kStates; ++s)
        kernels::storePack<kPack>(states + s * D + first, ofStates[s]);
    }
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
