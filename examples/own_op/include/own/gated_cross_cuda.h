//===- gated_cross_cuda.h - the kernel for a device -------------*- C++ -*-===//
//
// In place of gated_cross.h in models for CUDA, and on the emulated device: the same function. The
// host queues work on the step's stream; how many rows there are is known on the device alone.
//
//===----------------------------------------------------------------------===//

#ifndef OWN_GATED_CROSS_CUDA_H
#define OWN_GATED_CROSS_CUDA_H

#include "genrec_rt/kernels/cuda/launch.h"

namespace own {
inline namespace GENREC_RT_ISA {

/// An element of y has a thread, which computes what gated_cross.h does, in its order.
template <int D>
__global__ void __launch_bounds__(genrec::rt::cuda::kThreads)
    gatedCrossElements(const genrec_domain *domain, const float *x0, int64_t ldX0, const float *x,
                       int64_t ldX, const float *weight, const float *bias, const float *gate,
                       float *y) {
  const int64_t count = domain->count * D, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += step) {
    const int64_t row = at / D, j = at % D;
    float u = bias[j], z = 0;
    for (int i = 0; i < D; ++i) {
      const float value = x[row * ldX + i];
      u += value * weight[i * D + j];
      z += value * gate[i * D + j];
    }
    y[at] = x0[row * ldX0 + j] * u / (1.0f + genrec::rt::kernels::exp(-z)) + x[row * ldX + j];
  }
}

/// For the rows of `domain`, of which the host knows a capacity.
template <int D>
void gatedCross(genrec_step *step, const genrec_domain *domain, const float *x0, int64_t ldX0,
                const float *x, int64_t ldX, const float *weight, const float *bias,
                const float *gate, float *y) {
  namespace cuda = genrec::rt::cuda;
  if (domain->capacity > 0)
    GENREC_CUDA_LAUNCH(genrec::rt::kernels::streamOf(step),
                       cuda::shapeOfThreads(domain->capacity * D, cuda::kThreads),
                       (gatedCrossElements<D>), domain->device, x0, ldX0, x, ldX, weight, bias,
                       gate, y);
}

} // namespace GENREC_RT_ISA
} // namespace own

#endif // OWN_GATED_CROSS_CUDA_H
