//===- step_clock.cpp - The times of training steps -----------------------===//

#include "genrec_rt/step_clock.h"

#include <algorithm>

namespace genrec::rt {

/// Rounded down, before 1970 too.
static int64_t periodOf(int64_t seconds, int64_t length) {
  return seconds / length - (seconds % length < 0 ? 1 : 0);
}

void StepClock::watch(int64_t ttl) {
  current.periods[ttl].reserve(kMostPeriods + 1); // steps allocate nothing
  leaving[ttl] = -1;
}

void StepClock::end(int64_t step, std::optional<int64_t> seconds) {
  for (auto &[ttl, latest] : leaving)
    latest = -1;
  if (!seconds || (current.seconds && *seconds < *current.seconds))
    seconds = current.seconds;
  current.seconds = seconds;
  if (!seconds)
    return;
  for (auto &[ttl, periods] : current.periods) {
    const int64_t length = periodSeconds(ttl), now = periodOf(*seconds, length);
    if (!periods.empty() && periods.back().period == now)
      continue;
    periods.push_back({now, step});
    // (now - period - 1) * length + 1 >= ttl
    const int64_t oldest = now - 1 - (ttl - 1 + length - 1) / length;
    auto young = std::find_if(periods.begin(), periods.end(),
                              [&](const Period &each) { return each.period > oldest; });
    if (young == periods.begin())
      continue;
    leaving.at(ttl) = young->firstStep - 1;
    periods.erase(periods.begin(), young);
  }
}

int64_t StepClock::expired(int64_t ttl) const {
  auto found = leaving.find(ttl);
  return found == leaving.end() ? -1 : found->second;
}

void StepClock::restore(const State &saved) {
  current.seconds = saved.seconds;
  for (auto &[ttl, periods] : current.periods) {
    auto found = saved.periods.find(ttl);
    periods.clear();
    if (found != saved.periods.end())
      periods.insert(periods.end(), found->second.begin(), found->second.end());
    leaving.at(ttl) = -1;
  }
}

} // namespace genrec::rt
