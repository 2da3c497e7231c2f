//===- session_steps.cpp - The stages of a session's steps ----------------===//

#include "session_impl.h"

#include "device_ahead.h"
#include "device_graphs.h"
#include "dispatch_ahead.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace genrec::rt {

namespace {

/// Sets what the host does while a device works, for as long as it lives.
class DuringSteps {
public:
  DuringSteps(std::function<void()> &place, std::function<void()> does) : place(place) {
    place = std::move(does);
  }
  ~DuringSteps() { place = nullptr; }

private:
  std::function<void()> &place;
};

/// Steps that a device has and the host has not waited for, two at most. What is left at the end,
/// where a run stops or fails, is waited for: its memory is used again.
class QueuedSteps {
public:
  explicit QueuedSteps(DeviceState &device) : device(device) {}
  ~QueuedSteps() {
    if (!empty())
      device.finish();
  }
  QueuedSteps(const QueuedSteps &) = delete;
  QueuedSteps &operator=(const QueuedSteps &) = delete;

  bool empty() const { return !first; }
  size_t size() const { return empty() ? 0 : second ? 2 : 1; }
  void add(StepSlot *slot) { (first ? second : first) = slot; }
  StepSlot *last() const { return second ? second : first; }
  StepSlot *takeFirst() { return std::exchange(first, std::exchange(second, nullptr)); }

private:
  DeviceState &device;
  StepSlot *first = nullptr, *second = nullptr;
};

} // namespace

void Session::Impl::runStages(std::span<StepSlot *const> portions, RankStep *step) {
  if (step)
    step->begin(portions);
  for (StepSlot *slot : portions)
    slot->runDispatch();
  if (step)
    exchange(*portions.back(), [&] { step->fetch(); });
  runAfterDispatch(portions, step);
}

void Session::Impl::runAfterDispatch(std::span<StepSlot *const> portions, RankStep *step) {
  StepSlot &last = *portions.back();
  if (step) {
    state.ranks->beginCompute(*step, last.hasUpdate());
    state.ranks->portionTurns().run(portions.size(), [&](size_t i) { portions[i]->runCompute(); });
  } else {
    last.runCompute();
  }
  OwnReport own;
  own.signal = step ? caughtSignal() : 0;
  if (step && last.hasUpdate())
    own.seconds = ownSeconds(portions);
  if (step && step->onDevice())
    return finishOnDevice(portions, *step, own);
  if (step)
    exchange(last, [&] { state.ranks->exchangeSums(*step, last.hasUpdate(), own); });
  last.runUpdate();
  if (state.onDevice)
    endOnDevice(portions);
  if (step && last.hasUpdate())
    exchange(last, [&] { step->shareParameters(); });
}

void Session::Impl::endOnDevice(std::span<StepSlot *const> portions) {
  StepSlot::queueReports(portions);
  if (state.whileDeviceWorks)
    state.whileDeviceWorks();
  StepSlot::finishOnDevice(portions);
}

void Session::Impl::finishOnDevice(std::span<StepSlot *const> portions, RankStep &step,
                                   const OwnReport &own) {
  StepSlot &last = *portions.back();
  exchange(last, [&] { step.onDevice()->exchangeSums(last.hasUpdate()); });
  last.runUpdate();
  if (last.hasUpdate())
    exchange(last, [&] { step.shareParameters(); });
  endOnDevice(portions);
  exchange(last, [&] { step.report(own); });
  // Only now: the rank whose portion gave a sum what is wrong with it has told.
  last.failure.raise();
}

std::optional<int64_t> Session::Impl::ownSeconds(std::span<StepSlot *const> portions) const {
  if (!state.clock.isNeeded())
    return std::nullopt;
  if (clock)
    return isFirstRank(state.ranks ? &state.ranks->comm() : nullptr)
               ? std::optional(clock(portions.back()->step))
               : std::nullopt;
  std::optional<int64_t> latest;
  for (StepSlot *slot : portions)
    if (std::optional<int64_t> seconds = slot->currentBatch().seconds)
      latest = std::max(latest.value_or(*seconds), *seconds);
  return latest;
}

StepReport Session::Impl::runStep(Mode mode, std::span<StepSlot *const> portions) {
  RankStep *step = state.ranks ? &state.ranks->nextStep() : nullptr;
  beginOutputs();
  onRanks([&] { runStages(portions, step); });
  return finish(mode, portions, step);
}

void Session::Impl::beginOutputs() {
  for (OutputRows &output : state.outputs)
    output.given = false;
}

StepReport Session::Impl::finish(Mode mode, std::span<StepSlot *const> portions,
                                 const RankStep *step) {
  StepSlot &slot = *portions.back();
  if (state.profile)
    for (StepSlot *each : portions)
      state.profile->add(each->mode, each->step, each->spans, each->hostDomains());
  if (step)
    state.ranks->comm().setPurpose({"the end", slot.step});
  if (mode == Mode::train) {
    state.evict(slot.step, step ? step->getReport().seconds : ownSeconds(portions));
    ++steps;
  }
  StepReport report;
  if (chooser && mode == Mode::train)
    report.hasMovedRows = chooser->endStep(*step, slot.step);
  report.step = slot.step;
  report.batch = &slot.currentBatch();
  report.losses = slot.losses;
  report.rows = slot.currentBatch().rows;
  reportedBatches.clear();
  for (StepSlot *each : portions)
    reportedBatches.push_back(&each->currentBatch());
  report.batches = reportedBatches;
  report.signal = step ? step->getReport().signal : signalAfter(mode);
  if (step) {
    report.losses = step->getReport().losses;
    report.rows = step->getReport().rows;
  }
  report.loss = totalLoss(state.model, report.losses);
  report.slot = &slot;
  bool isFinite = !report.loss || std::isfinite(*report.loss);
  if (step && mode == Mode::train && state.explainNonFinite && !isFinite)
    report.cause = &(cause = agreeOnCause(state.ranks->comm(), portions));
  if (mode == Mode::train)
    report.learningRate = state.learningRate(state.largestRate, slot.step);
  return report;
}

bool Session::Impl::mayQueueBehind(Mode mode, const StepSlot &step, const LooksAfter &looks) const {
  if (state.profile)
    return false; // which part of a step took how long
  if (mode != Mode::train)
    return true; // nothing changes
  return looks && !looks(step.step) && state.ruledStores.empty() && caughtSignal() == 0;
}

int32_t Session::Impl::signalAfter(Mode mode) const {
  return isNextQueued && mode == Mode::train ? 0 : caughtSignal();
}

void Session::Impl::copyAhead(Pipeline &pipeline) {
  for (const Pipeline::Place &place : pipeline.peek())
    place.slot->copyAhead();
}

int64_t Session::Impl::runInTurn(Mode mode, Pipeline &pipeline, const OnStep &onStep) {
  DuringSteps during(state.whileDeviceWorks, [&] { copyAhead(pipeline); });
  state.hostTimes.start();
  for (int64_t count = 1;; ++count) {
    int64_t waiting = state.profile ? profileClock() : 0;
    std::span<Pipeline::Place> taken = pipeline.take();
    if (taken.empty())
      return count - 1;
    running.clear();
    for (const Pipeline::Place &place : taken)
      running.push_back(place.slot);
    if (state.profile)
      running.back()->spans.add(Phase::wait, waiting, profileClock());
    StepReport report = runStep(mode, running);
    if (onStep && !onStep(report))
      return count;
    pipeline.release();
    endHostTimes();
  }
}

void Session::Impl::endHostTimes() {
  if (state.onDevice)
    state.hostTimes.endStep(state.onDevice->graphs().stages.plainLaunches());
}

StepSlot *Session::Impl::queueNext(Pipeline &pipeline) {
  const int64_t waiting = state.profile ? profileClock() : 0;
  state.hostTimes.begin(HostWork::data);
  const std::span<Pipeline::Place> taken = pipeline.take();
  if (taken.empty())
    return nullptr;
  StepSlot *slot = taken.front().slot;
  if (state.profile)
    slot->spans.add(Phase::wait, waiting, profileClock());
  slot->copyAhead();
  slot->runDispatch();
  slot->runCompute();
  StepSlot::queueReports({&slot, 1});
  return slot;
}

int64_t Session::Impl::runQueued(Mode mode, Pipeline &pipeline, const OnStep &onStep,
                                 const LooksAfter &looks) {
  QueuedSteps queued(*state.onDevice);
  state.hostTimes.start();
  int64_t count = 0;
  auto endFirst = [&] {
    StepSlot *slot = queued.takeFirst();
    isNextQueued = !queued.empty();
    beginOutputs();
    StepSlot::finishOnDevice({&slot, 1});
    ++count;
    const StepReport report = finish(mode, {&slot, 1}, nullptr);
    const bool goesOn = !onStep || onStep(report);
    pipeline.release();
    endHostTimes();
    return goesOn;
  };
  for (;;) {
    if (!queued.empty() && !mayQueueBehind(mode, *queued.last(), looks)) {
      copyAhead(pipeline);
      if (!endFirst())
        return count;
    }
    StepSlot *next = nullptr;
    try {
      next = queueNext(pipeline);
    } catch (const std::exception &) { // what came before it is told first
      if (!queued.empty() && !endFirst())
        return count;
      throw;
    }
    if (next) {
      dispatchedAhead += !queued.empty();
      queued.add(next);
    }
    if (queued.empty())
      return count;
    if ((!next || queued.size() > 1) && !endFirst())
      return count;
  }
}

/// Rows may move after a step, if `chooser` looks then: nothing is dispatched beside it.
template <class Ahead, class Run>
int64_t Session::Impl::runDispatched(Mode mode, Pipeline &pipeline, const OnStep &onStep,
                                     Ahead &ahead, const Run &run) {
  state.hostTimes.start();
  ahead.start();
  for (int64_t count = 1;; ++count) {
    const DispatchedStep next = ahead.take();
    if (next.slots.empty()) {
      roundsAhead += ahead.rounds();
      return count - 1;
    }
    beginOutputs();
    const bool isAlone = mode == Mode::train && chooser && chooser->looksAfterNext();
    onRanks([&] { run(next, isAlone); });
    const StepReport report = finish(mode, next.slots, next.step);
    if (onStep && !onStep(report)) {
      roundsAhead += ahead.stop();
      return count;
    }
    if (isAlone)
      ahead.start();
    pipeline.release();
    endHostTimes();
  }
}

int64_t Session::Impl::runAhead(Mode mode, Pipeline &pipeline, const genrec_program_desc &program,
                                const OnStep &onStep) {
  DispatchAhead ahead(*state.ranks, pipeline, program, overlap);
  auto run = [&](const DispatchedStep &next, bool isAlone) {
    next.slots.front()->pool = state.pool.get();
    if (mode == Mode::train)
      exchange(*next.slots.back(), [&] { next.step->bring(state.ranks->comm()); });
    if (!isAlone)
      ahead.start(next.step);
    runAfterDispatch(next.slots, next.step);
  };
  try {
    return runDispatched(mode, pipeline, onStep, ahead, run);
  } catch (const std::exception &error) {
    ahead.fail(error);
  }
}

int64_t Session::Impl::runAheadOnDevice(Mode mode, Pipeline &pipeline, const OnStep &onStep) {
  DeviceAhead ahead(*state.ranks, pipeline, *state.device());
  bool startsNext = false;
  DuringSteps during(state.whileDeviceWorks, [&] {
    if (!startsNext)
      return;
    ahead.start();
    ++dispatchedAhead;
  });
  auto run = [&](const DispatchedStep &next, bool isAlone) {
    startsNext = !isAlone;
    exchange(*next.slots.back(), [&] { next.step->bring(state.ranks->comm()); });
    runAfterDispatch(next.slots, next.step);
  };
  try {
    return runDispatched(mode, pipeline, onStep, ahead, run);
  } catch (const std::exception &) {
    ahead.fail();
  }
}

int64_t Session::Impl::runRanksOnDevices(Mode mode, Pipeline &pipeline, const OnStep &onStep) {
  try {
    return overlap == Overlap::none ? runInTurn(mode, pipeline, onStep)
                                    : runAheadOnDevice(mode, pipeline, onStep);
  } catch (const std::exception &error) {
    state.ranks->abort(reasonOf(error));
    throw;
  }
}

} // namespace genrec::rt
