//===- device_ahead.cpp - Dispatch of the next step beside a device's -----===//

#include "device_ahead.h"

#include "genrec_rt/device.h"

#include <algorithm>
#include <utility>

namespace genrec::rt {

DeviceAhead::DeviceAhead(Ranks &ranks, Pipeline &pipeline, Device &device)
    : ranks(ranks), pipeline(pipeline), device(device), comm(ranks.dispatchComm()),
      roundsBefore(comm.rounds()) {}

void DeviceAhead::start() {
  result = {};
  error = failureOf(comm, [&] { dispatch(); });
}

DispatchedStep DeviceAhead::take() {
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
  return result;
}

int64_t DeviceAhead::stop() {
  const int64_t ended = rounds(); // the communicator may be dropped
  const char hasFailed = error != nullptr;
  std::vector<char> all(ranks.comm().getSize());
  ranks.comm().allGather(&hasFailed, all.data(), 1);
  if (std::ranges::find(all, 1) != all.end()) { // others may have sent keys that nobody receives
    comm.abort("nobody takes the step that was dispatched");
    ranks.dropDispatchComm();
  }
  device.use(DeviceQueue::dispatch);
  device.synchronize();
  device.use(DeviceQueue::compute);
  return ended;
}

void DeviceAhead::dispatch() {
  std::vector<StepSlot *> &taken = slots[turn];
  turn = 1 - turn;
  taken.clear();
  const int64_t waiting = profileClock();
  for (const Pipeline::Place &place : pipeline.take())
    taken.push_back(place.slot);
  if (taken.empty())
    return;
  StepSlot &last = *taken.back();
  if (last.profile)
    last.spans.add(Phase::wait, waiting, profileClock());
  RankStep &step = ranks.nextStep();
  step.begin(taken);
  for (StepSlot *slot : taken)
    slot->runDispatch();
  const int64_t begin = profileClock();
  step.ask(comm);
  if (last.profile)
    last.spans.add(Phase::exchangeAhead, begin, profileClock());
  result = {&step, taken};
}

} // namespace genrec::rt
