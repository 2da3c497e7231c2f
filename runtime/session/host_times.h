//===- host_times.h - What a step on a device takes the host -----*- C++ -*-===//

#ifndef GENREC_RT_SESSION_HOST_TIMES_H
#define GENREC_RT_SESSION_HOST_TIMES_H

#include "genrec_rt/session.h"
#include "profile.h"

#include <array>

namespace genrec::rt {

/// What the thread that queues a device's steps does, one after another.
enum class HostWork { data, batch, dispatch, stages, wait, end };

/// Where the time of that thread goes. What it does beside steps that take memory or are captured,
/// as the first ones do, is left out.
class HostTimes {
public:
  /// Steps come one after another from here on. What was before, and has not ended, is not counted.
  void start() {
    begin(HostWork::data);
    queued = 0;
    step = {};
  }
  /// What runs until the next call.
  void begin(HostWork work) {
    const int64_t now = profileClock();
    step[static_cast<size_t>(current)] += now - since;
    since = now;
    current = work;
    queued += work == HostWork::stages;
  }
  /// A step has ended; others may be queued. `launched`: those so far that were one launch, of
  /// portions each.
  void endStep(int64_t launched) {
    begin(HostWork::data);
    if (launched - launchedBefore == queued) {
      steps += queued;
      for (size_t work = 0; work < step.size(); ++work)
        all[work] += step[work];
    }
    launchedBefore = launched;
    queued = 0;
    step = {};
  }

  HostSeconds perStep() const {
    const auto seconds = [&](HostWork work) {
      return steps ? static_cast<double>(all[static_cast<size_t>(work)]) * 1e-9 /
                         static_cast<double>(steps)
                   : 0;
    };
    return {steps,
            seconds(HostWork::data),
            seconds(HostWork::batch),
            seconds(HostWork::dispatch),
            seconds(HostWork::stages),
            seconds(HostWork::wait),
            seconds(HostWork::end)};
  }

private:
  std::array<int64_t, 6> step = {}, all = {}; ///< nanoseconds, by HostWork
  int64_t since = 0, queued = 0, steps = 0, launchedBefore = 0;
  HostWork current = HostWork::data;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_HOST_TIMES_H
