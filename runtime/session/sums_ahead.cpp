//===- sums_ahead.cpp - Sums that travel beside the compute stage ---------===//

#include "sums_ahead.h"

#include "../core/start_thread.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace genrec::rt {

SumsAhead::SumsAhead(Communicator &of) : comm(of.duplicate()) {
  tellOthers(*comm, [&] { thread = startThread("add up gradients", [this] { work(); }); });
}

SumsAhead::~SumsAhead() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  thread.join();
}

void SumsAhead::start(Job job) {
  {
    std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
  }
  changed.notify_all();
}

void SumsAhead::wait(Communicator &main) {
  constexpr std::chrono::milliseconds kBetweenLooks(20);
  std::unique_lock lock(mutex);
  std::optional<std::string> aborted;
  while (!changed.wait_for(lock, kBetweenLooks, [&] { return jobs.empty(); })) {
    if (aborted || !(aborted = main.getError()))
      continue;
    comm->abort(*aborted); // a rank that has ended does not come to the job
  }
  if (aborted)
    throw CommError(*aborted);
  if (error)
    std::rethrow_exception(std::exchange(error, nullptr));
}

void SumsAhead::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isEnding || !jobs.empty(); });
    if (isEnding)
      return;
    if (!error) {
      Job job = std::move(jobs.front());
      lock.unlock();
      std::exception_ptr failure = failureOf(*comm, [&] { job(*comm); });
      lock.lock();
      error = failure;
    }
    jobs.pop_front();
    changed.notify_all();
  }
}

bool AheadTrial::next(int64_t nanoseconds) {
  int64_t at = steps++ - kWarmUp, block = at / kBlock;
  if (at < 0)
    return false;
  if (block >= kBlocks)
    return isBetter;
  if (at % kBlock > 0) // the first step of a block may not be like the others
    times[block % 2].push_back(nanoseconds);
  int64_t next = (at + 1) / kBlock;
  if (next < kBlocks)
    return next % 2 == 1;
  int64_t medians[2];
  for (int way : {0, 1}) {
    auto middle = times[way].begin() + static_cast<ptrdiff_t>(times[way].size() / 2);
    std::nth_element(times[way].begin(), middle, times[way].end());
    medians[way] = *middle;
  }
  isBetter = medians[1] < medians[0] - medians[0] / kMargin;
  return isBetter;
}

} // namespace genrec::rt
