//===- sinks.h - What leaves a step, from memory of the host -----*- C++ -*-===//
//
// The calls of abi.h of the same names, with values and descriptors of the host: of a model for a
// device they come when the step has ended (device_step.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_SINKS_H
#define GENREC_RT_SESSION_SINKS_H

#include "step_slot.h"

namespace genrec::rt {

void hostReportLoss(StepSlot &slot, int32_t loss, float sum, float weight);
void hostReportMetric(StepSlot &slot, int32_t op, int32_t metric, const genrec_domain *domain,
                      const void *x, const float *label, const uint8_t *valid, const int64_t *key,
                      const float *weight);
void hostReportOutput(StepSlot &slot, int32_t output, const genrec_domain *domain, const void *x,
                      const uint8_t *valid);
void hostRequireRange(StepSlot &slot, int32_t op, const char *what, int32_t feature,
                      const genrec_domain *domain, int32_t type, const void *values,
                      const float *weight, const uint8_t *valid, const genrec_domain *items,
                      double low, double high);
void hostCheckFinite(StepSlot &slot, int32_t op, const float *values, int64_t rows,
                     int64_t row_size, int64_t stride);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_SINKS_H
