//===- sums_ahead.h - Sums that travel beside the compute stage --*- C++ -*-===//

#ifndef GENREC_RT_SESSION_SUMS_AHEAD_H
#define GENREC_RT_SESSION_SUMS_AHEAD_H

#include "genrec_rt/comm.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace genrec::rt {

/// Runs collective jobs one after another, on a thread of its own with a duplicate of the communicator.
/// All ranks start the same jobs in the same order.
class SumsAhead {
public:
  using Job = std::function<void(Communicator &)>;

  /// Collective.
  explicit SumsAhead(Communicator &comm);
  /// Ends what is under way where the run ends by an exception.
  ~SumsAhead();
  SumsAhead(const SumsAhead &) = delete;
  SumsAhead &operator=(const SumsAhead &) = delete;

  /// Begins a job once those before it are done. Jobs after one that failed are left out.
  void start(Job job);
  /// Waits for all jobs, and throws what went wrong in one, or what `main` was aborted with meanwhile.
  void wait(Communicator &main);
  /// Ends what is under way on all ranks: the run ends by an exception that says `why`.
  void abort(const std::string &why) noexcept { comm->abort(why); }
  int64_t rounds() const { return comm->rounds(); }

private:
  void work();

  std::unique_ptr<Communicator> comm;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs; ///< the first one is under way
  std::exception_ptr error;
  bool isEnding = false;
  std::thread thread;
};

/// Whether sums should travel ahead, found out by doing both in turns: what that saves depends on the
/// network, on processors that have nothing to do, and on the model. Rank 0 decides for all.
class AheadTrial {
public:
  /// At the end of a step that took so long. Whether the next one should have sums ahead.
  bool next(int64_t nanoseconds);

private:
  static constexpr int64_t kWarmUp = 4, kBlock = 6, kBlocks = 6;
  /// Steps with sums ahead must be faster by a thirty-second.
  static constexpr int64_t kMargin = 32;

  int64_t steps = 0;
  std::vector<int64_t> times[2]; ///< of steps without, with
  bool isBetter = false;         ///< once all blocks are over
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_SUMS_AHEAD_H
