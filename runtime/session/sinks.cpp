//===- sinks.cpp - What leaves a step: losses, metrics, outputs, errors ---===//
//
// Nothing here throws; see recording.h.
//
//===----------------------------------------------------------------------===//

#include "sinks.h"

#include "genrec_rt/abi.h"

#include "device_step.h"
#include "recording.h"
#include "row_failures.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace genrec::rt;

namespace {

void copyRootRows(const genrec_domain *domain, OutputRows &to) {
  int64_t *roots = to.rootRows.ensure(std::max<int64_t>(domain->count, 1));
  for (int64_t row = 0; row < domain->count; ++row)
    roots[row] = StepSlot::rootRow(domain, row);
}

/// The first row, among those that count, that lies outside of [low, high].
template <class T>
void findBeyond(genrec_rt_pool *pool, const T *values, int64_t count, const float *weight,
                const uint8_t *valid, double low, double high, FirstBad &bad) {
  parallelFor(pool, count, kCheckGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row) {
      auto value = static_cast<double>(values[row]);
      bool isWithin = value >= low && value <= high; // false for NaN
      if (!isWithin && !(valid && !valid[row]) && !(weight && weight[row] == 0))
        return bad.note(row);
    }
  });
}

/// Calls `body` with `values` as a pointer to what `type` says.
template <class Body> void withValues(int32_t type, const void *values, const Body &body) {
  switch (type) {
  case GENREC_I32:
    return body(static_cast<const int32_t *>(values));
  case GENREC_I64:
    return body(static_cast<const int64_t *>(values));
  case GENREC_F64:
    return body(static_cast<const double *>(values));
  default:
    return body(static_cast<const float *>(values));
  }
}

} // namespace

void genrec::rt::hostReportLoss(StepSlot &slot, int32_t loss, float sum, float weight) {
  if (slot.isFindingNonFinite)
    return;
  slot.losses[loss].add({sum, weight});
  bool isFinite = std::isfinite(sum) && std::isfinite(weight);
  bool isAsked = slot.state().explainNonFinite && slot.mode == static_cast<int32_t>(Mode::train);
  if (isFinite || !isAsked || !slot.nonFiniteOrigin.empty() || slot.failure.any())
    return;
  slot.hasNonFiniteLoss = true;
  if (slot.onDevice) // whose step has ended, but for what it has reported besides
    return;
  try {
    slot.findNonFinite();
  } catch (const std::exception &) {
    // Without memory for it, the loss is named without its origin.
  }
}

void genrec::rt::hostReportMetric(StepSlot &slot, int32_t op, int32_t metric,
                                  const genrec_domain *domain, const void *x, const float *label,
                                  const uint8_t *valid, const int64_t *key, const float *weight) {
  guarded(slot, [&] {
    MetricRows rows{domain->count,
                    x,
                    label,
                    valid,
                    key,
                    weight,
                    domain->offsets,
                    domain->parent_domain ? domain->parent_domain->count : 0};
    try {
      slot.state().metrics.add(metric, rows);
    } catch (const BadRow &bad) {
      throw Error(slot.describeRow(bad.isList ? domain->parent_domain : domain, bad.row) + ": " +
                      bad.problem + ", in the metric '" + slot.state().model.metrics[metric].name +
                      "'" + slot.describePlace(op),
                  bad.help);
    }
  });
}

void genrec::rt::hostReportOutput(StepSlot &slot, int32_t output, const genrec_domain *domain,
                                  const void *x, const uint8_t *valid) {
  guarded(slot, [&] {
    OutputRows &to = slot.state().output(slot.portion, output);
    to.count = domain->count;
    to.given = true;
    int64_t width = std::max<int64_t>(to.width, 1);
    int64_t bytes = domain->count * width * elementBytes(to.type);
    if (bytes > 0)
      std::memcpy(to.values.ensure(bytes), x, static_cast<size_t>(bytes));
    int64_t flags = domain->count * (to.nulls == Nulls::elements ? width : 1);
    if (to.nulls != Nulls::none && flags > 0)
      std::memcpy(to.valid.ensure(flags), valid, static_cast<size_t>(flags));
    copyRootRows(domain, to);
  });
}

void genrec::rt::hostRequireRange(StepSlot &slot, int32_t op, const char *what, int32_t feature,
                                  const genrec_domain *domain, int32_t type, const void *values,
                                  const float *weight, const uint8_t *valid,
                                  const genrec_domain *items, double low, double high) {
  guarded(slot, [&] {
    RangeRule rule{op, what, feature, type, low, high, items ? items->count : -1};
    withValues(type, values, [&](const auto *typed) {
      FirstBad bad(domain->count);
      findBeyond(slot.pool, typed, domain->count, weight, valid, low, rule.most(), bad);
      if (bad.any())
        throw valueBeyond(slot, rule, slot.describeRow(domain, bad.row()), typed + bad.row());
    });
  });
}

void genrec::rt::hostCheckFinite(StepSlot &slot, int32_t op, const float *values, int64_t rows,
                                 int64_t row_size, int64_t stride) {
  if (slot.isFindingNonFinite && (slot.isPastKnown || !slot.nonFiniteOrigin.empty()))
    return;
  guarded(slot, [&] {
    for (int64_t i = 0; i < rows * row_size; ++i) {
      int64_t row = i / row_size, element = i % row_size;
      float value = values[row * stride + element];
      if (std::isfinite(value))
        continue;
      std::string what = slot.describeNonFinite(op, value, row, element);
      if (slot.isFindingNonFinite) {
        slot.nonFiniteOrigin = what;
        return;
      }
      throw notFinite(slot, what);
    }
  });
}

extern "C" {

void genrec_rt_report_loss(genrec_step *step, int32_t loss, float sum, float weight) {
  hostReportLoss(StepSlot::of(step), loss, sum, weight);
}

void genrec_rt_report_device_loss(genrec_step *step, int32_t loss, const float *sum,
                                  const float *weight) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] { slot.onDevice->reports().loss(loss, sum, weight); });
}

void genrec_rt_report_metric(genrec_step *step, int32_t op, int32_t metric,
                             const genrec_domain *domain, const void *x, const float *label,
                             const uint8_t *valid, const int64_t *key, const float *weight) {
  StepSlot &slot = StepSlot::of(step);
  if (!slot.onDevice)
    return hostReportMetric(slot, op, metric, domain, x, label, valid, key, weight);
  guarded(slot, [&] {
    slot.onDevice->reports().metric(op, metric, domain, x, label, valid, key, weight);
  });
}

void genrec_rt_report_output(genrec_step *step, int32_t output, const genrec_domain *domain,
                             const void *x, const uint8_t *valid) {
  StepSlot &slot = StepSlot::of(step);
  if (!slot.onDevice)
    return hostReportOutput(slot, output, domain, x, valid);
  guarded(slot, [&] { slot.onDevice->reports().output(output, domain, x, valid); });
}

void genrec_rt_require_range(genrec_step *step, int32_t op, const char *what, int32_t feature,
                             const genrec_domain *domain, int32_t type, const void *values,
                             const float *weight, const uint8_t *valid, const genrec_domain *items,
                             double low, double high) {
  StepSlot &slot = StepSlot::of(step);
  if (!slot.onDevice)
    return hostRequireRange(slot, op, what, feature, domain, type, values, weight, valid, items,
                            low, high);
  guarded(slot, [&] {
    slot.onDevice->reports().requireRange({op, what, feature, type, low, high}, domain, values,
                                          weight, valid, items);
  });
}

void genrec_rt_fail(genrec_step *step, int32_t op, const char *message) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] { throw failedOp(slot, op, message); });
}

void genrec_rt_fail_row(genrec_step *step, int32_t op, const genrec_domain *domain, int64_t row,
                        const char *message) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] { throw failedRow(slot, op, slot.describeRow(domain, row), message); });
}

genrec_row_note *genrec_rt_note_failure(genrec_step *step, int32_t op, const genrec_domain *domain,
                                        const char *const *reasons) {
  return StepSlot::of(step).onDevice->reports().noteFailure(op, domain, reasons);
}

void genrec_rt_check_finite(genrec_step *step, int32_t op, const float *values, int64_t rows,
                            int64_t row_size, int64_t stride) {
  hostCheckFinite(StepSlot::of(step), op, values, rows, row_size, stride);
}

void genrec_rt_check_device_finite(genrec_step *step, int32_t op, const float *values,
                                   const genrec_domain *domain, int64_t row_size, int64_t stride) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot,
          [&] { slot.onDevice->reports().checkFinite(op, values, domain, row_size, stride); });
}

} // extern "C"
