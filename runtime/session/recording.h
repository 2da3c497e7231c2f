//===- recording.h - How calls of generated code fail ------------*- C++ -*-===//
//
// Nothing that generated code calls throws: what goes wrong is recorded in the step
// and thrown by the runtime once the stage has returned. Only memory that is not there
// ends a stage at once, as what the calls behind it read was not written.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_RECORDING_H
#define GENREC_RT_SESSION_RECORDING_H

#include "genrec_rt/error.h"
#include "step_slot.h"

#include <atomic>
#include <new>

namespace genrec::rt {

/// Runs `body` and records what it throws.
template <class Body> void guarded(StepSlot &slot, const Body &body) {
  try {
    body();
  } catch (const Error &error) {
    slot.failure.record(error.what(), error.help());
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    slot.failure.record(error.what());
  }
}

/// Rows that a chunk of a check's parallel loop looks through.
inline constexpr int64_t kCheckGrain = 4096;

/// Rows that chunks of a parallel loop look through: the first bad one among them.
class FirstBad {
public:
  explicit FirstBad(int64_t count) : count(count), least(count) {}

  void note(int64_t row) {
    int64_t seen = least.load(std::memory_order_relaxed);
    while (row < seen && !least.compare_exchange_weak(seen, row, std::memory_order_relaxed))
      ;
  }
  bool any() const { return row() < count; }
  int64_t row() const { return least.load(std::memory_order_relaxed); }

private:
  int64_t count;
  std::atomic<int64_t> least;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_RECORDING_H
