//===- pipeline.cpp - Batches in flight -----------------------------------===//

#include "pipeline.h"

#include "../core/start_thread.h"

#include <utility>

namespace genrec::rt {

Pipeline::Pipeline(const genrec_program_desc &program, BatchSource &source,
                   std::vector<Place> allPlaces, size_t portions, uint64_t firstStep,
                   uint64_t stride)
    : program(program), source(source), places(std::move(allPlaces)), portions(portions),
      nextStep(firstStep), stride(stride),
      states(places.size()),
      reader(startThread("read batches", [this] { readAhead(); })) {}

Pipeline::~Pipeline() {
  stop();
  reader.join();
}

void Pipeline::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
}

/// Runs on the reading thread, without the lock.
Pipeline::State Pipeline::fill(Place &place, uint64_t step) {
  try {
    int64_t begin = place.slot->profile ? profileClock() : 0;
    place.batch->reset();
    if (!source.next(*place.batch))
      return State::ended;
    if (place.slot->profile) {
      place.slot->spans.clear();
      place.slot->spans.add(Phase::read, begin, profileClock());
    }
    place.slot->prepare(program, *place.batch, step);
    // The pool computes the batch before this one meanwhile.
    place.slot->runCopy(nullptr);
    return State::ready;
  } catch (...) {
    error = std::current_exception();
    return State::failed;
  }
}

void Pipeline::readAhead() {
  for (size_t index = 0;; index = (index + 1) % places.size()) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return stopping || states[index] == State::empty; });
      if (stopping)
        return;
    }
    State filled = fill(places[index], nextStep);
    if ((index + 1) % portions == 0)
      nextStep += stride;
    {
      std::lock_guard<std::mutex> lock(mutex);
      states[index] = filled;
    }
    changed.notify_all();
    if (filled != State::ready)
      return;
  }
}

std::span<Pipeline::Place> Pipeline::take() {
  std::unique_lock<std::mutex> lock(mutex);
  size_t first = next;
  for (size_t index = first; index < first + portions; ++index) {
    changed.wait(lock, [&] { return stopping || states[index] != State::empty; });
    if (stopping || states[index] == State::ended)
      return {};
    if (states[index] == State::failed)
      std::rethrow_exception(error);
  }
  next = (first + portions) % places.size();
  return {&places[first], portions};
}

std::span<Pipeline::Place> Pipeline::peek() {
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t index = next; index < next + portions; ++index)
    if (states[index] != State::ready)
      return {};
  return {&places[next], portions};
}

void Pipeline::release() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t index = oldest; index < oldest + portions; ++index)
      states[index] = State::empty;
    oldest = (oldest + portions) % places.size();
  }
  changed.notify_all();
}

} // namespace genrec::rt
