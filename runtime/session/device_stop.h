//===- device_stop.h - Steps that change nothing behind a NaN ----*- C++ -*-===//
//
// The host knows of a loss that is not finite when the step has ended, and perhaps the next one is
// queued. So that the step can run once more and say where the NaN comes from, parameters and rows
// must be what they were when it began: the device finds out by itself, and leaves them.
//
//   losses       are reported by a kernel, which stops steps where one is not finite
//   parameters   their domains of updated rows have no rows in a stopped step
//   tables       domains of updated rows are copies of those of touched rows, and have none; with
//                several portions a step has copies of the rows that it looked up
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_STOP_H
#define GENREC_RT_SESSION_DEVICE_STOP_H

#include "device_memory.h"

#include <span>
#include <vector>

namespace genrec::rt {

class DeviceStop {
public:
  DeviceStop(Device &device, const genrec_model_desc &model);

  /// Domains of rows of parameters that a step updates, in the device's memory, by number. Copied
  /// before the first step.
  std::span<const int32_t> updated() const { return numbers; }
  void *updatedOnDevice() const { return ofDomains.data(); }

  /// Queues what brings a loss to `to`, which is pinned: its sum and weight. `domains` are those of
  /// the device's step.
  void report(const float *sum, const float *weight, float *to, genrec_domain *domains);
  /// 1 on the device where steps are stopped, else 0.
  const uint32_t *flag() const { return word(); }
  /// Steps that are queued from here on run as they should.
  void clear() { device.fill(word(), 0, sizeof(uint32_t)); }

private:
  uint32_t *word() const { return reinterpret_cast<uint32_t *>(stopped.data()); }

  Device &device;
  std::vector<int32_t> numbers;
  DeviceMemory ofDomains, stopped;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_STOP_H
