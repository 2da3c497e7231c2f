//===- non_finite.h - Where a NaN or an infinity comes from ------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_NON_FINITE_H
#define GENREC_RT_SESSION_NON_FINITE_H

#include "step_slot.h"

#include <span>
#include <string>

namespace genrec::rt {

/// StepReport::nonFiniteOrigin and describeNonFiniteInput.
struct NonFiniteCause {
  std::string origin, input;
};

/// "table 'item' held a NaN or an infinity in the row of id 3 when the step began". `key`: an id,
/// with the number of its table where tables are merged.
std::string describeNonFiniteRow(const genrec_model_desc &model, int32_t table, int64_t key);

/// A row that was no longer finite when the step began is where a NaN comes from, not its lookup.
/// `keys`: as above; `rows` that are null or `zeros` are not of the table.
void noteNonFiniteRow(StepSlot &slot, int32_t table, const int64_t *keys, int64_t count,
                      float *const *rows, const float *zeros);

/// What the first portion of the batch that knows of any says, on every rank. `portions`: this
/// rank's, after a step whose loss is not finite. Collective.
NonFiniteCause agreeOnCause(Communicator &comm, std::span<StepSlot *const> portions);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_NON_FINITE_H
