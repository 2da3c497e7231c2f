//===- pipeline.h - Two batches in flight ------------------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_PIPELINE_H
#define GENREC_RT_SESSION_PIPELINE_H

#include "step_slot.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace genrec::rt {

/// Reads batches and runs their copy stages on a thread of its own, one batch
/// ahead of the caller, who takes them in order. Errors of that thread are thrown
/// to the caller in the place of the batch they belong to.
class Pipeline {
public:
  static constexpr int kSlots = kBatchesInFlight;

  struct Place {
    StepSlot *slot;
    Batch *batch;
  };

  /// `firstStep` is the step number of the first batch; it rises by `stride` (1
  /// for training, 0 otherwise).
  Pipeline(const genrec_program_desc &program, BatchSource &source,
           std::array<Place, kSlots> places, uint64_t firstStep, uint64_t stride);
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;
  Pipeline &operator=(const Pipeline &) = delete;

  /// The next batch, its copy stage done; null at the end.
  Place *take();
  /// Gives back the batch taken last.
  void release();

private:
  enum class State { empty, ready, failed, ended };

  void readAhead();
  State fill(Place &place, uint64_t step);

  const genrec_program_desc &program;
  BatchSource &source;
  std::array<Place, kSlots> places;
  uint64_t nextStep, stride;
  std::mutex mutex;
  std::condition_variable changed;
  std::array<State, kSlots> states{};
  std::exception_ptr error;
  bool stopping = false;
  int current = 0;
  std::thread reader;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PIPELINE_H
