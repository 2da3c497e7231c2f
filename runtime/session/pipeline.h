//===- pipeline.h - Batches in flight ----------------------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_PIPELINE_H
#define GENREC_RT_SESSION_PIPELINE_H

#include "step_slot.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace genrec::rt {

/// Reads batches and runs their copy stages on a thread of its own, as far ahead of the caller, who
/// takes them in order, as there are places. A batch is that of a portion; those of this rank's
/// portions of one global batch are taken together. Errors of that thread are thrown to the caller
/// in the place of the batch they belong to.
class Pipeline {
public:
  struct Place {
    StepSlot *slot;
    Batch *batch;
  };

  /// `places` are those of some global batches of `portions` each, two at least. `firstStep` is the step
  /// number of the first one; it rises by `stride` (1 for training, 0 otherwise).
  Pipeline(const genrec_program_desc &program, BatchSource &source, std::vector<Place> places,
           size_t portions, uint64_t firstStep, uint64_t stride);
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;
  Pipeline &operator=(const Pipeline &) = delete;

  /// The portions of the next global batch, their copy stages done; none at the end. Any thread, one at
  /// a time.
  std::span<Place> take();
  /// What the next `take` returns, if it would not wait; else none. Its places stay as they are
  /// until then.
  std::span<Place> peek();
  /// Gives back the global batch that was taken first of those that are out.
  void release();
  /// Reads no more, and ends a `take` that waits: there are no more batches.
  void stop();

private:
  enum class State { empty, ready, failed, ended };

  void readAhead();
  State fill(Place &place, uint64_t step);

  const genrec_program_desc &program;
  BatchSource &source;
  std::vector<Place> places;
  size_t portions; ///< of a global batch
  uint64_t nextStep, stride;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<State> states; ///< by place
  std::exception_ptr error;
  bool stopping = false;
  size_t next = 0;   ///< the first place of the global batch to take
  size_t oldest = 0; ///< that of the one to release
  std::thread reader;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PIPELINE_H
