//===- device_ahead.cpp - Dispatch of the next step beside a device's -----===//

#include "device_ahead.h"

#include "genrec_rt/device.h"

#include <utility>

namespace genrec::rt {

DeviceAhead::DeviceAhead(Ranks &ranks, Pipeline &pipeline, Device &device)
    : ranks(ranks), pipeline(pipeline), device(device), comm(ranks.comm().duplicate()) {}

void DeviceAhead::start() {
  result = {};
  error = failureOf(*comm, [&] { dispatch(); });
}

DispatchedStep DeviceAhead::take() {
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
  return result;
}

void DeviceAhead::stop() {
  device.use(DeviceQueue::dispatch);
  device.synchronize();
  device.use(DeviceQueue::compute);
}

void DeviceAhead::abort(const std::string &why) noexcept {
  pipeline.stop();
  comm->abort(why);
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
  step.ask(*comm);
  if (last.profile)
    last.spans.add(Phase::exchangeAhead, begin, profileClock());
  result = {&step, taken};
}

} // namespace genrec::rt
