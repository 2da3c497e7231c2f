//===- patience.h - When training no longer helps ----------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_PATIENCE_H
#define GENREC_RT_TRAINER_PATIENCE_H

#include "progress.h"

#include <string>

namespace genrec::rt {

/// The state of early stopping. It is computed from the history alone, which checkpoints keep, so a
/// resumed run stops in the same epoch as an uninterrupted one.
struct Patience {
  int64_t evaluations = 0; ///< in which the monitored value was looked for
  int64_t since = 0;       ///< evaluations since the best one
  double best = 0;
  int64_t bestEpoch = 0, bestStep = 0;

  bool hasBest() const { return bestEpoch > 0; }
  /// Whether the last evaluation is the best so far.
  bool isBest() const { return hasBest() && since == 0; }
};

/// A loss gets better by falling ("loss", "ne"); every other metric by rising.
bool improvesByFalling(const std::string &monitored);

/// The value of `monitored` in an evaluation; NaN if it has none.
double monitoredValue(const Json &evaluation, const std::string &monitored);

/// Goes through the epochs' evaluations. A value that is undefined or not finite is no
/// improvement.
Patience patienceOf(const Json &history, const std::string &monitored);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_PATIENCE_H
