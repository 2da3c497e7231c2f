//===- portion_turns.cpp - Portions of a rank, one at a time --------------===//

#include "portion_turns.h"

#include "../core/start_thread.h"
#include "genrec_rt/error.h"

#include <algorithm>
#include <utility>

namespace genrec::rt {

PortionTurns::~PortionTurns() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void PortionTurns::fail(std::exception_ptr why) {
  if (!error)
    error = std::move(why);
}

/// A portion has ended without a meeting to which others have come, or comes to one without them.
void PortionTurns::failToMeet() {
  fail(std::make_exception_ptr(
      Error("portions of a rank do not come to the same exchanges of their compute stages")));
}

void PortionTurns::pass(size_t to) {
  turn = to;
  changed.notify_all();
}

/// On a thread of its own.
void PortionTurns::begin(size_t portion) {
  if (threads.size() < portion)
    threads.push_back(startThread("compute a portion", [this, portion] {
      if (enter)
        enter();
      work(portion);
    }));
  begun = portion + 1;
  starting = portion;
}

/// A portion that has stopped: the next one behind `behind`, or the first; kNobody: none has.
size_t PortionTurns::findStopped(size_t behind) const {
  const auto from = isStopped.begin(), to = isStopped.end();
  auto found = std::find(from + static_cast<ptrdiff_t>(std::min(behind + 1, count)), to, 1);
  if (found == to)
    found = std::find(from, to, 1);
  return found == to ? kNobody : static_cast<size_t>(found - from);
}

/// Computes a portion, whose turn it is; then it is that of one that stopped.
void PortionTurns::compute(size_t portion) {
  std::exception_ptr failure;
  try {
    (*body)(portion);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex);
  hasEnded = true;
  if (failure)
    fail(failure);
  if (arrived > 0)
    failToMeet();
  pass(findStopped(portion));
}

void PortionTurns::work(size_t portion) {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isOver || starting == portion; });
    if (isOver)
      return;
    starting = kNobody;
    lock.unlock();
    compute(portion);
    lock.lock();
  }
}

void PortionTurns::run(size_t ofPortions, const std::function<void(size_t)> &of) {
  std::unique_lock lock(mutex);
  body = &of;
  count = ofPortions;
  begun = arrived = 0;
  isStopped.assign(count, 0);
  hasEnded = false;
  error = nullptr;
  while (begun < count && !error) {
    turn = begun++;
    lock.unlock();
    compute(turn);
    lock.lock();
    changed.wait(lock, [&] { return turn == kNobody; });
  }
  count = 0;
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
}

/// Waits until it is the portion's turn once more.
void PortionTurns::stop(std::unique_lock<std::mutex> &lock, size_t portion) {
  changed.wait(lock, [&] { return turn == portion; });
  isStopped[portion] = 0;
  if (error)
    std::rethrow_exception(error);
}

void PortionTurns::meet(const std::function<void()> &together) {
  if (count <= 1)
    return together();
  std::unique_lock lock(mutex);
  const size_t portion = turn;
  if (hasEnded)
    failToMeet();
  if (error)
    std::rethrow_exception(error);
  if (arrived + 1 < count) {
    const size_t next = portion + 1;
    if (next == begun)
      begin(next);
    ++arrived;
    isStopped[portion] = 1;
    pass(next);
    return stop(lock, portion);
  }
  lock.unlock();
  std::exception_ptr failure;
  try {
    together();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure)
    fail(failure);
  arrived = 0;
  isStopped[portion] = 1;
  pass(0);
  stop(lock, portion);
}

} // namespace genrec::rt
