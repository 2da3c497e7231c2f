//===- device_profile.h - When the calls of a step run on a device -*- C++ -*-===//
//
// With --profile: marks in the queues where stages and calls begin and end, read when the step has
// ended. An op's time is that of its kernels and of what the host needed to queue them, whichever
// is longer, as the calls of a profiled step are not captured.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_PROFILE_H
#define GENREC_RT_SESSION_DEVICE_PROFILE_H

#include "genrec_rt/device.h"
#include "profile.h"

#include <memory>
#include <vector>

namespace genrec::rt {

class DeviceProfile {
public:
  explicit DeviceProfile(Device &device) : device(device) {}

  void begin() { count = 0; }
  /// A stage begins in the queue in use, or op `what` of it, and what ran before has ended; `end`
  /// for the end of a stage.
  void note(int32_t what) { place(what); }
  void end() { place(kEnd); }
  /// Adds the spans to `spans`; the host has waited for the step.
  void finish(SpanRecorder &spans);

private:
  static constexpr int32_t kEnd = INT32_MIN;
  void place(int32_t what);

  struct Mark {
    int32_t what;
    std::unique_ptr<DeviceMark> mark;
  };
  Device &device;
  std::vector<Mark> marks; ///< kept from step to step
  size_t count = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_PROFILE_H
