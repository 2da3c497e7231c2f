//===- dispatch_ahead.h - Dispatch of the next step beside a step -*- C++ -*-===//
//
// Who does what, where several ranks run a program over many batches:
//
//   reading thread       reads batches and runs their copy stages, as far ahead as there are slots
//   dispatching thread   of the step after the one that runs: dispatch stages, keys to owners,
//                        rows that the running step does not update. On a duplicate of the
//                        communicator
//   calling thread       the rows of the others, compute, sums, update; then the next step
//
// The dispatching thread works only between `start` and `take`. Every rank calls `start` once per
// step, at the same place between two rounds of its own, so all dispatching threads run the same
// steps, whatever ends a run. In between, the calling thread changes no table but the values of
// rows that its step asked for, and removes rows of tables with rules only: those the dispatching
// thread leaves alone.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DISPATCH_AHEAD_H
#define GENREC_RT_SESSION_DISPATCH_AHEAD_H

#include "pipeline.h"
#include "ranks.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace genrec::rt {

/// A step on its way, and the slots of its portions; none at the end of the data.
struct DispatchedStep {
  RankStep *step = nullptr;
  std::span<StepSlot *const> slots;
};

/// Runs the dispatch stages of a step on a thread of its own.
class DispatchAhead {
public:
  /// Collective. Programs that change rows in the middle of a step have no early rows.
  DispatchAhead(Ranks &ranks, Pipeline &pipeline, const genrec_program_desc &program,
                Overlap overlap);
  /// Ends what is under way where the run ends by an exception.
  ~DispatchAhead();
  DispatchAhead(const DispatchAhead &) = delete;
  DispatchAhead &operator=(const DispatchAhead &) = delete;

  /// Begins the dispatch of the next step, beside `running`; null: none runs.
  void start(const RankStep *running = nullptr);
  /// Waits for it, and throws what went wrong there. The slots stay until the call after the next
  /// one.
  DispatchedStep take();
  /// Waits for what is under way, which nobody takes: the run ends after the step that runs.
  /// Returns `rounds`.
  int64_t stop();
  int64_t rounds() const { return comm->rounds(); }
  /// Ends what is under way on all ranks, as the run ends by `failure`, and throws that, or what
  /// went wrong there on this rank, where it is what others ended with.
  [[noreturn]] void fail(const std::exception &failure);

private:
  enum class State { idle, working, done, ending };

  void waitForThread();
  void work();
  void dispatch();
  bool takeSlots();

  Ranks &ranks;
  Pipeline &pipeline;
  const bool isTraining, hasEarlyRows;
  std::unique_ptr<Communicator> comm;
  std::vector<StepSlot *> slots[2]; ///< by step, in turns
  size_t turn = 0;
  const RankStep *running = nullptr;
  DispatchedStep result;
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable changed;
  State state = State::idle;
  std::thread thread;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DISPATCH_AHEAD_H
