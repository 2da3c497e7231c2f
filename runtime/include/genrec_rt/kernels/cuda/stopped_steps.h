//===- stopped_steps.h - Steps whose losses are not finite -------*- C++ -*-===//
//
// The kernel that reports a loss looks whether it is finite. From the first that is not, a word in
// the device's memory says that steps are stopped, until the host clears it: what is queued behind
// changes no parameters and no rows. So a step that turns out to have made a NaN can run once more
// on the values that it began with (session/device_stop.h), without the host having looked.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STOPPED_STEPS_H
#define GENREC_RT_KERNELS_CUDA_STOPPED_STEPS_H

#include "genrec_rt/device.h"

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Copies a loss to pinned memory. Where steps are stopped, or are from here on, domains of rows
/// that the step updates have none.
void reportLoss(const DeviceLoss &loss, cudaStream_t stream);

/// Where steps are not stopped.
void copyUnlessStopped(float *to, const float *from, int64_t count, const uint32_t *stopped,
                       cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_STOPPED_STEPS_H
