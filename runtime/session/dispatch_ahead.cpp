//===- dispatch_ahead.cpp - Dispatch of the next step beside a step -------===//

#include "dispatch_ahead.h"

#include "../core/start_thread.h"

#include <utility>

namespace genrec::rt {

DispatchAhead::DispatchAhead(Ranks &ranks, Pipeline &pipeline, const genrec_program_desc &program,
                             Overlap overlap)
    : ranks(ranks), pipeline(pipeline), isTraining(program.mode == GENREC_MODE_TRAIN),
      // A lookup within the compute stage inserts rows beside the search for early ones.
      hasEarlyRows(overlap == Overlap::rows && !program.meeting), comm(ranks.comm().duplicate()) {
  tellOthers(*comm, [&] { thread = startThread("dispatch steps", [this] { work(); }); });
}

DispatchAhead::~DispatchAhead() {
  {
    std::lock_guard lock(mutex);
    state = State::ending;
  }
  changed.notify_all();
  thread.join();
}

void DispatchAhead::start(const RankStep *beside) {
  {
    std::lock_guard lock(mutex);
    running = beside;
    state = State::working;
  }
  changed.notify_all();
}

DispatchedStep DispatchAhead::take() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return state != State::working; });
  state = State::idle;
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
  return result;
}

void DispatchAhead::waitForThread() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return state != State::working; });
}

int64_t DispatchAhead::stop() {
  waitForThread();
  ranks.reset(); // the step ahead may have come to some ranks only
  return rounds();
}

void DispatchAhead::fail(const std::exception &failure) {
  pipeline.stop();
  comm->abort(reasonOf(failure));
  waitForThread();
  throwOwnFirst(std::current_exception(), error);
}

void DispatchAhead::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return state == State::working || state == State::ending; });
    if (state == State::ending)
      return;
    lock.unlock();
    result = {};
    error = failureOf(*comm, [&] { dispatch(); });
    lock.lock();
    if (state == State::working)
      state = State::done;
    changed.notify_all();
  }
}

bool DispatchAhead::takeSlots() {
  std::vector<StepSlot *> &taken = slots[turn];
  turn = 1 - turn;
  taken.clear();
  StepSlot *last = nullptr;
  int64_t waiting = profileClock();
  for (const Pipeline::Place &place : pipeline.take())
    taken.push_back(last = place.slot);
  if (last && last->profile)
    last->spans.add(Phase::wait, waiting, profileClock());
  result.slots = taken;
  return last != nullptr;
}

void DispatchAhead::dispatch() {
  if (!takeSlots())
    return;
  RankStep &step = ranks.nextStep();
  step.begin(result.slots);
  for (StepSlot *slot : result.slots)
    slot->runDispatch(nullptr); // the pool computes the step before
  StepSlot &last = *result.slots.back();
  int64_t begin = profileClock();
  step.ask(*comm);
  if (!isTraining) // nothing changes rows
    step.bring(*comm);
  else if (hasEarlyRows)
    step.bringEarly(*comm, running);
  if (last.profile)
    last.spans.add(Phase::exchangeAhead, begin, profileClock());
  result.step = &step;
}

} // namespace genrec::rt
