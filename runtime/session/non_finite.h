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

/// What the first portion of the batch that knows of any says, on every rank. `portions`: this
/// rank's, after a step whose loss is not finite. Collective.
NonFiniteCause agreeOnCause(Communicator &comm, std::span<StepSlot *const> portions);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_NON_FINITE_H
