//===- step_clock.h - The times of training steps ----------------*- C++ -*-===//
//
// A table whose rows leave after some seconds (RowRules::ttlSeconds) needs no time in its rows:
// they have the step that saw them last, and a clock knows how old steps are. Every step of
// training has a time in seconds since 1970, a time column's or the machine's; it never goes back.
// For each ttl, time is cut into periods of ttl / 16 seconds (rounded down, at least 1). At the end
// of the first step of period k, rows leave whose last step was in a period j with (k - j - 1) *
// period + 1 >= ttl: they have not been seen for ttl seconds at least, and for an eighth more at
// most when the first step after that ends. So a step pays for few rows, and what is kept of all
// steps, in checkpoints too, is the first one of each of the last periods: 33 at most.
//
// Steps before the first known time count as of the first known period: rows of a checkpoint that
// was trained without a clock, or that were read from a file, begin to age when a clock begins.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_STEP_CLOCK_H
#define GENREC_RT_STEP_CLOCK_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace genrec::rt {

class StepClock {
public:
  /// From `firstStep` on, until the next one, steps are in period number `period`.
  struct Period {
    int64_t period = 0, firstStep = 0;
    bool operator==(const Period &) const = default;
  };
  /// What a checkpoint keeps.
  struct State {
    std::optional<int64_t> seconds; ///< of the last step; none: no step has had a time
    std::map<int64_t, std::vector<Period>> periods; ///< by ttl in seconds, ascending
    bool operator==(const State &) const = default;
  };

  static constexpr int64_t kMostPeriods = 33; ///< that are kept of a ttl, and one more for a moment

  /// Seconds of a period.
  static int64_t periodSeconds(int64_t ttl) { return ttl < 32 ? 1 : ttl / 16; }

  /// Tables with this ttl, in seconds, are in the model.
  void watch(int64_t ttl);
  /// Whether a table needs times.
  bool isNeeded() const { return !current.periods.empty(); }

  /// The end of `step`, at `seconds`. The time stays where `seconds` is earlier, or none.
  void end(int64_t step, std::optional<int64_t> seconds);
  /// Of the step that has ended: rows of a table with this ttl that were last seen in the returned
  /// step or before leave. -1: none.
  int64_t expired(int64_t ttl) const;

  const State &state() const { return current; }
  /// Goes on with a state that was saved. Of ttls that it does not have, ages begin with the next
  /// step; those that no table has are forgotten.
  void restore(const State &saved);

private:
  State current;
  std::map<int64_t, int64_t> leaving; ///< by ttl, what `expired` says; -1: none
};

} // namespace genrec::rt

#endif // GENREC_RT_STEP_CLOCK_H
