//===- session_impl.h - The state of a session, and its steps ---*- C++ -*-===//

#pragma once

#include "genrec_rt/session.h"

#include "non_finite.h"
#include "pipeline.h"
#include "placement_chooser.h"
#include "ranks.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace genrec::rt {

struct Session::Impl {
  using OnStep = std::function<bool(const StepReport &)>;
  using LooksAfter = std::function<bool(uint64_t)>;

  Impl(const genrec_model_desc &model, const SessionOptions &options);
  ~Impl();

  /// Throws where the program cannot run on several ranks, or several portions on a rank.
  void requireRanks(const genrec_program_desc &program) const;

  uint64_t stepNumber(Mode mode) const { return mode == Mode::train ? steps + 1 : steps; }

  /// The slots of this rank's portions of one global batch.
  size_t portions() const { return ownPortions; }

  /// Runs prepared slots, one per portion, and reports.
  StepReport runStep(Mode mode, std::span<StepSlot *const> portions);

  /// Runs the steps of a pipeline one after another.
  int64_t runInTurn(Mode mode, Pipeline &pipeline, const OnStep &onStep);

  /// The same on a device, of one portion on one rank: a step is queued behind the one before, and
  /// only then the host waits for that one, so the device has always something to do.
  int64_t runQueued(Mode mode, Pipeline &pipeline, const OnStep &onStep, const LooksAfter &looks);

  /// The same, each beside the dispatch of the next one: `run(step, isAlone)` runs what `ahead` has
  /// dispatched, and starts the next one unless it is alone.
  template <class Ahead, class Run>
  int64_t runDispatched(Mode mode, Pipeline &pipeline, const OnStep &onStep, Ahead &ahead,
                        const Run &run);
  /// On the host (dispatch_ahead.h).
  int64_t runAhead(Mode mode, Pipeline &pipeline, const genrec_program_desc &program,
                   const OnStep &onStep);
  /// On a device (device_ahead.h).
  int64_t runAheadOnDevice(Mode mode, Pipeline &pipeline, const OnStep &onStep);
  /// Of several portions on devices, as `overlap` says. What goes wrong on this rank, between two
  /// steps, too, ends the others first: what it has queued may wait for them, and they for it.
  int64_t runRanksOnDevices(Mode mode, Pipeline &pipeline, const OnStep &onStep);

  void choosePlacement(const SessionOptions &options);

  genrec_runtime state;
  std::unique_ptr<PlacementChooser> chooser; ///< where several ranks choose placement
  std::string whySharded;                    ///< where they do not
  int32_t ownPortions = 1;                   ///< of this rank
  Overlap overlap = Overlap::none;
  int64_t roundsAhead = 0;   ///< of all runs so far
  int64_t roundsInSteps = 0; ///< likewise, of the stages; reading data makes others
  /// One per portion, for each batch in flight.
  std::vector<std::unique_ptr<StepSlot>> slots;
  std::vector<Batch> batches;
  std::vector<StepSlot *> running;            ///< the slots of the step that runs
  std::vector<const Batch *> reportedBatches; ///< of the last step
  NonFiniteCause cause;                       ///< of the last step that had one
  std::vector<std::string> parameterNames;
  uint64_t steps = 0;
  std::function<int64_t(uint64_t step)> clock; ///< see SessionOptions
  int64_t dispatchedAhead = 0;                 ///< steps, on a device
  bool isNextQueued = false; ///< behind the step that is reported, on a device

private:
  /// Runs `body`, which makes a round with other ranks in the step of `last`.
  template <class Body> void exchange(StepSlot &last, const Body &body) {
    int64_t begin = last.profile ? profileClock() : 0;
    body();
    if (last.profile)
      last.spans.add(Phase::exchange, begin, profileClock());
  }

  /// Runs the stages after copy; null: alone.
  void runStages(std::span<StepSlot *const> portions, RankStep *step);
  void runAfterDispatch(std::span<StepSlot *const> portions, RankStep *step);
  /// Of a model for a device, once all stages are queued: waits for them.
  void endOnDevice(std::span<StepSlot *const> portions);
  /// Of a model for a device: the rest, once the compute stages of several portions are queued.
  void finishOnDevice(std::span<StepSlot *const> portions, RankStep &step, const OwnReport &own);

  int32_t caughtSignal() const { return state.caughtSignal ? state.caughtSignal() : 0; }
  /// The time of the training step of `portions`, as far as this rank knows.
  std::optional<int64_t> ownSeconds(std::span<StepSlot *const> portions) const;

  /// A step of a model for a device has been reported.
  void endHostTimes();
  /// Copies the next batch to the device, if it has been read.
  static void copyAhead(Pipeline &pipeline);
  /// Of one portion on one rank: queues the stages of the next batch; null at the end.
  StepSlot *queueNext(Pipeline &pipeline);
  /// Whether the next step may be queued before `step` is reported.
  bool mayQueueBehind(Mode mode, const StepSlot &step, const LooksAfter &looks) const;
  /// A signal that comes once the next step is queued is that step's.
  int32_t signalAfter(Mode mode) const;

  /// Runs `body`; what it throws ends the other ranks too.
  template <class Body> void onRanks(const Body &body) {
    const int64_t before = state.ranks ? state.ranks->comm().rounds() : 0;
    try {
      body();
      roundsInSteps += state.ranks ? state.ranks->comm().rounds() - before : 0;
    } catch (const std::exception &error) {
      if (state.ranks)
        state.ranks->abort(reasonOf(error));
      throw;
    }
  }

  void beginOutputs();

  /// Ends a step whose stages have run, and reports. The step counts now.
  StepReport finish(Mode mode, std::span<StepSlot *const> portions, const RankStep *step);
};

} // namespace genrec::rt
