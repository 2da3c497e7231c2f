//===- row_rules.h - When rows come into a table and leave it ----*- C++ -*-===//
//
// The rules that the stores of all devices share, so that the same rows leave:
//
//   - A step of training *sees* an id once, however often and in whatever order its
//     lookups have it: which rows a table has depends on the sets of ids that steps
//     had, not on calls, threads or order. Evaluation and prediction see nothing.
//   - Within a step rows only come. `evict`, called once at the end of a step, lets
//     rows leave: a row that was found keeps its place until its update.
//   - `ttl`: rows last seen in step t - ttl or before leave at the end of step t. This
//     is looked at in the steps that max(1, ttl / 16) divides, so a row stays for up
//     to a sixteenth longer, and a step pays for few rows.
//   - `ttlSeconds`, instead: rows that steps have not seen for so many seconds leave. A clock of
//     the run says which step was how long ago (step_clock.h); stores know steps alone, and are
//     told of which step and before rows leave.
//   - `bound`: where a step leaves more rows than this, the lowest leave until
//     bound - bound / 16 remain; the search for them is so paid by bound / 16 new rows.
//     Lowest are, for `lru`, those of the earliest last step; for `lfu`, those seen
//     in the fewest steps since they came, of these the earliest; then the lower id.
//   - `admitAfter`: an id has a row from the step on in which it is seen for this many
//     steps. Waiting ids are counted in a table of their own, which `ttl` and `bound`
//     hold for, too.
//   - `hotAfter`: a row is hot from the step on that is the n-th to see it since it came. A hot
//     row of bf16 keeps the lower halves of its floats as well (kernels/shared/row_values.h).
//
// Tables that share a store have the same rules, and each has them for itself: `bound` is
// the most rows of one of them, on all ranks together (embedding/global_bound.h).
//
// What leaves takes its optimizer state and its counts along.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_ROW_RULES_H
#define GENREC_RT_ROW_RULES_H

#include "genrec_rt/kinds.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace genrec::rt {

/// Which rows leave a bounded table first: the least recently, or least often, seen.
enum class Eviction : int32_t { lru = GENREC_EVICT_LRU, lfu = GENREC_EVICT_LFU };

struct RowRules {
  int64_t bound = 0; ///< most rows of a table after a step; 0: any number
  Eviction eviction = Eviction::lru;
  int64_t ttl = 0;        ///< steps without being seen after which rows leave; 0: never
  int64_t admitAfter = 0; ///< steps in which an id must be seen to get a row
  int64_t ttlSeconds = 0; ///< seconds of the run's clock instead of `ttl`; 0: never
  int64_t hotAfter = 0;   ///< steps in which a row must be seen to be hot; 0: none is

  bool hasTtl() const { return ttl > 0 || ttlSeconds > 0; }
  bool any() const { return bound > 0 || admitAfter > 0 || hasTtl() || hotAfter > 0; }
  /// Whether a row that was seen in `steps` steps since it came is hot.
  bool isHot(int64_t steps) const { return hotAfter > 0 && steps >= hotAfter; }
  /// Whether the end of `step` looks at ttl.
  bool checksTime(int64_t step) const {
    return ttl > 0 && step % std::max<int64_t>(1, ttl / 16) == 0;
  }
  /// Rows last seen in the returned step or before leave at the end of `step`; below 0: none do.
  /// `expired` is what the clock says of ttlSeconds.
  int64_t latestLeaving(int64_t step, int64_t expired) const {
    return std::max(checksTime(step) ? step - ttl : -1, expired);
  }
  /// How many of `rows` leave because of the bound.
  int64_t excess(int64_t rows) const {
    return bound > 0 && rows > bound ? rows - (bound - bound / 16) : 0;
  }
};

/// When training saw the id of a row. Of a row that was read from a file: {0, 0}.
struct Sighting {
  int64_t lastStep = 0;
  int64_t steps = 0; ///< since the row came

  /// The lowest leave first.
  using Rank = std::tuple<int64_t, int64_t, int64_t>;
  Rank rank(Eviction eviction, int64_t id) const {
    return {eviction == Eviction::lfu ? steps : 0, lastStep, id};
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_ROW_RULES_H
