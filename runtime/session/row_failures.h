//===- row_failures.h - What is wrong with a row, in words -------*- C++ -*-===//
//
// Whoever finds a row that a step cannot go on with, the host at once or a device by a note
// (device_notes.h), says so here: with the same words.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_ROW_FAILURES_H
#define GENREC_RT_SESSION_ROW_FAILURES_H

#include "genrec_rt/error.h"
#include "step_slot.h"

#include <string>

namespace genrec::rt {

/// `where` is StepSlot::describeRow of the row.
Error idBeyondTable(const StepSlot &slot, int32_t table, const std::string &where, int64_t id);
/// Of a feature, -1: none.
Error idNotInCatalogue(const StepSlot &slot, int32_t feature, const std::string &where, int64_t id);

/// What genrec_rt_require_range asks for.
struct RangeRule {
  int32_t op;
  const char *what;
  int32_t feature; ///< -1: none
  int32_t type;
  double low, high; ///< high: the greatest float where the range has no end (StepCallsSink.cpp)
  int64_t items = -1; ///< rows of the catalogue; -1: there is none

  /// Whether the catalogue's rows are what bounds the values.
  bool endsWithItems() const { return items >= 0 && static_cast<double>(items) - 1 < high; }
  double most() const { return endsWithItems() ? static_cast<double>(items) - 1 : high; }
};
/// `value` points at the row's value, of the rule's type.
Error valueBeyond(const StepSlot &slot, const RangeRule &rule, const std::string &where,
                  const void *value);

/// With --check-finite; `origin`: StepSlot::describeNonFinite.
Error notFinite(const StepSlot &slot, const std::string &origin);

/// genrec_rt_fail and genrec_rt_fail_row.
Error failedOp(const StepSlot &slot, int32_t op, const char *message);
Error failedRow(const StepSlot &slot, int32_t op, const std::string &where, const char *message);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_ROW_FAILURES_H
