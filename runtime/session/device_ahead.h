//===- device_ahead.h - Dispatch of the next step beside a device's -*- C++ -*-===//
//
// What dispatch_ahead.h does for several ranks with devices, without a thread of its own: a device
// is called by one thread, and works beside it. Once all of a step is queued, the host queues the
// dispatch stages of the next one in DeviceQueue::dispatch, waits for their counts, and sends their
// keys, on a duplicate of the communicator. Rows are found and brought when the running step has
// ended: nothing that it reads or writes is touched before.
//
// All ranks call NCCL in the same order, since one thread of each does: the communicator's rounds
// of a step, the duplicate's of the next one, the communicator's.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_AHEAD_H
#define GENREC_RT_SESSION_DEVICE_AHEAD_H

#include "dispatch_ahead.h"

#include <exception>
#include <vector>

namespace genrec::rt {

class DeviceAhead {
public:
  /// Collective.
  DeviceAhead(Ranks &ranks, Pipeline &pipeline, Device &device);

  /// Dispatches the next step and asks for its rows. Collective. What goes wrong is thrown by
  /// `take`, as the step that runs is whole without it.
  void start();
  /// The step that was started last. The slots stay until the call after the next one.
  DispatchedStep take();
  /// The run ends, and nobody takes the step that was started, nor what went wrong with it: waits
  /// for what is queued of it. Returns `rounds`. Collective.
  int64_t stop();
  /// The run ends by an exception: throws that, or what went wrong with the step that was started
  /// on this rank, where it is what others ended with.
  [[noreturn]] void fail() { throwOwnFirst(std::current_exception(), error); }
  /// Of this run, so far; not behind `stop`.
  int64_t rounds() const { return comm.rounds() - roundsBefore; }

private:
  void dispatch();

  Ranks &ranks;
  Pipeline &pipeline;
  Device &device;
  Communicator &comm;
  const int64_t roundsBefore;       ///< of other runs
  std::vector<StepSlot *> slots[2]; ///< by step, in turns
  size_t turn = 0;
  DispatchedStep result;
  std::exception_ptr error;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_AHEAD_H
