//===- stopped_steps.cu - Steps whose losses are not finite ----------------===//

#include "genrec_rt/kernels/cuda/stopped_steps.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/row_checks.h"

namespace genrec::rt::cuda {

namespace {

__global__ void lossKernel(DeviceLoss loss) {
  const float sum = *loss.sum, weight = *loss.weight;
  loss.to[0] = sum;
  loss.to[1] = weight;
  if (isFinite(sum) && isFinite(weight) && *loss.stopped == 0)
    return;
  *loss.stopped = 1;
  for (int32_t i = 0; i < loss.updatedCount; ++i)
    loss.domains[loss.updated[i]].count = 0;
}

__global__ void __launch_bounds__(kThreads)
    copyKernel(float *to, const float *from, int64_t count, const uint32_t *stopped) {
  if (*stopped != 0)
    return;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to[i] = from[i];
}

} // namespace

void reportLoss(const DeviceLoss &loss, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), lossKernel, loss);
}

void copyUnlessStopped(float *to, const float *from, int64_t count, const uint32_t *stopped,
                       cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), copyKernel, to, from, count,
                       stopped);
}

} // namespace genrec::rt::cuda
