//===- step_in_batch.h - In-batch softmax as emitted stages call it -*- C++ -*-===//
//
// The calls of cpu/step_in_batch.h. Rows are counted on the device.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_IN_BATCH_H
#define GENREC_RT_KERNELS_CUDA_STEP_IN_BATCH_H

#include "genrec_rt/kernels/cuda/in_batch_softmax.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

/// As cpu/in_batch_softmax.h has it; the domain is the host's step's.
struct InBatchArgs {
  const genrec_domain *rows = nullptr;
  int64_t size = 0;
  const float *query = nullptr;
  int64_t ldQuery = 0;
  const float *item = nullptr;
  int64_t ldItem = 0;
  const int64_t *id = nullptr;
  const float *logQ = nullptr;
  const uint8_t *valid = nullptr;
  float temperature = 1;

  cuda::InBatch onDevice() const {
    return {rows->device, rows->capacity, size,  query,          ldQuery, item, ldItem,
            id,           logQ,           valid, 1 / temperature};
  }
};

inline void inBatchSoftmax(genrec_step *step, const InBatchArgs *args, float *loss, float *kept) {
  cuda::inBatchForward(args->onDevice(), loss, kept, streamOf(step));
}

inline void inBatchSoftmaxGradient(genrec_step *step, const InBatchArgs *args, const float *kept,
                                   const float *dLoss, float *dQuery, float *dItem) {
  cuda::inBatchBackward(args->onDevice(), kept, dLoss, dQuery, dItem, streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_STEP_IN_BATCH_H
