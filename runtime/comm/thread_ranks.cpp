//===- thread_ranks.cpp - ranks that are threads of one process -----------===//

#include "genrec_rt/comm.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

using namespace genrec::rt;

namespace {

/// How long a rank waits, and what it says then of those that are late.
struct Patience {
  std::chrono::milliseconds time;
  std::function<std::string(const std::string &late)> describe;
};

/// What the ranks of one communicator share. An exchange has two phases: all ranks post their
/// parts, then each copies what is for it; parts stay valid until all have copied.
class Meeting {
public:
  explicit Meeting(int32_t ranks) : parts(ranks), arrivals(ranks), children(ranks) {}

  int32_t size() const { return static_cast<int32_t>(parts.size()); }

  /// `received`: of an exchange with rooms; empty where sizes agree.
  void exchange(int32_t rank, std::span<const SendPart> send, std::span<const ReceivePart> receive,
                std::span<int64_t> received, const Patience &patience);
  void abort(const std::string &why) noexcept;
  std::optional<std::string> getError();
  /// The meeting of the `count`th duplicate, which the first rank that asks makes.
  std::shared_ptr<Meeting> getChild(int64_t count);

private:
  /// Waits until all ranks have posted their parts. Either all ranks see this done, or all throw:
  /// nobody reads the parts of a rank that has gone.
  void meet(int32_t rank, const Patience &patience);
  /// Waits until all ranks have copied. Nothing but copies is waited for, so errors wait too.
  void part(int32_t rank);
  /// Counts the arrival; the last one completes the phase, unless `isOpen` is false.
  int64_t arrive(int32_t rank, bool isOpen);

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::span<const SendPart>> parts;
  std::vector<int64_t> arrivals; ///< by rank: two phases per exchange
  int64_t completed = 0;         ///< phases that all ranks have arrived at
  std::vector<std::shared_ptr<Meeting>> children;
  std::optional<std::string> error;
};

} // namespace

int64_t Meeting::arrive(int32_t rank, bool isOpen) {
  int64_t mine = ++arrivals[rank];
  bool isLast = std::all_of(arrivals.begin(), arrivals.end(), [&](int64_t of) { return of >= mine; });
  if (isLast && isOpen) {
    completed = mine;
    changed.notify_all();
  }
  return mine;
}

void Meeting::meet(int32_t rank, const Patience &patience) {
  std::unique_lock lock(mutex);
  int64_t mine = arrive(rank, /*isOpen=*/!error);
  changed.wait_for(lock, patience.time, [&] { return completed >= mine || error; });
  if (completed >= mine)
    return;
  if (!error) {
    std::string late;
    for (int32_t other = 0; other < size(); ++other)
      if (arrivals[other] < mine)
        late += (late.empty() ? "" : ", ") + std::to_string(other);
    error = "rank " + std::to_string(rank) + ": " + patience.describe(late);
    changed.notify_all();
  }
  throw CommError(*error);
}

void Meeting::part(int32_t rank) {
  std::unique_lock lock(mutex);
  int64_t mine = arrive(rank, /*isOpen=*/true);
  changed.wait(lock, [&] { return completed >= mine; });
  if (error)
    throw CommError(*error);
}

void Meeting::exchange(int32_t rank, std::span<const SendPart> send,
                       std::span<const ReceivePart> receive, std::span<int64_t> received,
                       const Patience &patience) {
  {
    std::lock_guard lock(mutex);
    if (error)
      throw CommError(*error);
    parts[rank] = send;
  }
  meet(rank, patience);
  std::string mismatch;
  for (int32_t from = 0; from < size(); ++from) {
    const SendPart &part = parts[from][rank];
    bool fits = received.empty() ? part.bytes == receive[from].bytes
                                 : part.bytes <= receive[from].bytes;
    if (!fits) {
      mismatch = "rank " + std::to_string(from) + " sends " + std::to_string(part.bytes) +
                 " bytes to rank " + std::to_string(rank) + ", which expects " +
                 std::to_string(receive[from].bytes);
      break;
    }
    if (!received.empty())
      received[from] = part.bytes;
    if (part.bytes)
      std::memcpy(receive[from].data, part.data, part.bytes);
  }
  if (!mismatch.empty())
    abort(mismatch);
  part(rank);
}

void Meeting::abort(const std::string &why) noexcept {
  std::lock_guard lock(mutex);
  if (!error)
    error = why;
  for (const std::shared_ptr<Meeting> &child : children)
    if (child)
      child->abort(why);
  changed.notify_all();
}

std::optional<std::string> Meeting::getError() {
  std::lock_guard lock(mutex);
  return error;
}

std::shared_ptr<Meeting> Meeting::getChild(int64_t count) {
  std::lock_guard lock(mutex);
  if (children.size() <= static_cast<size_t>(count))
    children.resize(count + 1);
  if (!children[count])
    children[count] = std::make_shared<Meeting>(size());
  return children[count];
}

namespace {
class ThreadComm : public Communicator {
public:
  ThreadComm(std::shared_ptr<Meeting> meeting, int32_t rank)
      : meeting(std::move(meeting)), rank(rank) {}

  std::string getName() const override { return "thread"; }
  int32_t getRank() const override { return rank; }
  int32_t getSize() const override { return meeting->size(); }
  void abort(const std::string &why) noexcept override {
    meeting->abort("rank " + std::to_string(rank) + ": " + why);
  }
  std::optional<std::string> getError() override { return meeting->getError(); }
  std::unique_ptr<Communicator> duplicate() override {
    auto copy = std::make_unique<ThreadComm>(meeting->getChild(duplicates++), rank);
    copy->setPatience(getPatience());
    return copy;
  }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    meeting->exchange(rank, send, receive, {}, getWait());
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    meeting->exchange(rank, send, receive, received, getWait());
  }

private:
  Patience getWait() const {
    return {getPatience(), [this](const std::string &late) { return describeWait(late); }};
  }

  std::shared_ptr<Meeting> meeting;
  int32_t rank;
  int64_t duplicates = 0;
};
} // namespace

void genrec::rt::runThreadRanks(int32_t ranks, const std::function<void(Communicator &)> &run) {
  if (ranks < 1)
    throw Error("cannot run on " + std::to_string(ranks) + " ranks");
  auto meeting = std::make_shared<Meeting>(ranks);
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  auto runRank = [&](int32_t rank) {
    ThreadComm comm(meeting, rank);
    try {
      run(comm);
    } catch (...) {
      {
        std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
      comm.abort("ended with an error");
    }
  };
  for (int32_t rank = 1; rank < ranks; ++rank)
    threads.emplace_back(runRank, rank);
  runRank(0);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}
