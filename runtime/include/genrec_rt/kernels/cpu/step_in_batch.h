//===- step_in_batch.h - In-batch softmax as emitted stages call it -*- C++ -*-===//
//
// in_batch_softmax.h with scratch from the step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_STEP_IN_BATCH_H
#define GENREC_RT_KERNELS_CPU_STEP_IN_BATCH_H

#include "genrec_rt/kernels/cpu/in_batch_softmax.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {
inline void *inBatchScratch(genrec_step *step, const InBatchArgs *args) {
  return genrec_rt_thread_scratch(
      step, inBatchScratchBytes(args->rows->count, args->size, genrec_rt_pool_threads(step->pool)));
}
} // namespace detail

inline void inBatchSoftmax(genrec_step *step, const InBatchArgs *args, float *loss, float *kept) {
  inBatchForward(step->pool, *args, loss, kept, detail::inBatchScratch(step, args));
}

inline void inBatchSoftmaxGradient(genrec_step *step, const InBatchArgs *args, const float *kept,
                                   const float *dLoss, float *dQuery, float *dItem) {
  inBatchBackward(step->pool, *args, kept, dLoss, dQuery, dItem,
                  detail::inBatchScratch(step, args));
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_IN_BATCH_H
