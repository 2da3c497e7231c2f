//===- comm.h - What ranks say to each other --------------------*- C++ -*-===//
//
// A communicator carries bytes between ranks: an exchange with one part per peer, all-gather,
// broadcast. It adds nothing up: reductions are the runtime's own kernels, in a fixed order, so
// that results do not depend on the number of ranks. Every call is collective: all ranks make the
// same calls in the same order, and counts are known to the host before. Where a peer stalls, the
// call that waits for it names it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_COMM_H
#define GENREC_RT_COMM_H

#include "genrec_rt/error.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace genrec::rt {

/// What a call of a communicator throws: a peer that stalls or was lost, parts whose sizes do not
/// agree, another rank's abort.
class CommError : public Error {
public:
  using Error::Error;

  bool isOwn = false; ///< this rank noticed it; no other told
};

/// What calls are for, in messages about a peer that does not come: "the rows of step 37".
struct CommPurpose {
  const char *what = nullptr; ///< lives as long as the process; null: nothing is said
  uint64_t step = 0;
};

/// Where the bytes of a call lie, and the stream in whose order they are written and read.
struct CommMemory {
  enum class Kind { host, device };
  Kind kind = Kind::host;
  void *stream = nullptr; ///< of the device; null on the host
};

struct SendPart {
  const void *data = nullptr;
  int64_t bytes = 0;
};

struct ReceivePart {
  void *data = nullptr;
  int64_t bytes = 0;
};

class Communicator {
public:
  virtual ~Communicator() = default;

  /// "thread", "mpi", "single": what carries the bytes, for messages.
  virtual std::string getName() const = 0;
  virtual int32_t getRank() const = 0;
  virtual int32_t getSize() const = 0;

  /// Sends `send[r]` to rank r and receives `receive[r]` from it, for every r, this rank itself
  /// included; parts may be empty. Rank a's `send[b].bytes` is rank b's `receive[a].bytes`, else
  /// rank b throws, and the others in this call or their next one. Buffers sent must not overlap
  /// buffers received. Returns when all parts have arrived and those sent may be written again
  /// (device: on the stream).
  void exchange(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                CommMemory memory = {});
  /// As `exchange`, where the sender alone knows how much it sends: receive[r].bytes is the room
  /// that both sides have agreed on, at most kMostRoom, and received[r] becomes the bytes that
  /// came. More than there is room for throws, as parts whose sizes do not agree do.
  void exchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                    std::span<int64_t> received, CommMemory memory = {});
  static constexpr int64_t kMostRoom = int64_t(1) << 30;
  /// `bytes` of every rank, one behind another in the order of ranks, to every rank: `receive`
  /// has room for getSize() * bytes.
  void allGather(const void *send, void *receive, int64_t bytes, CommMemory memory = {});
  /// `bytes` of rank `root` to all others.
  void broadcast(void *data, int64_t bytes, int32_t root, CommMemory memory = {});
  /// Returns when every rank has called it.
  void barrier();
  /// Exchanges so far, those of allGather, broadcast and barrier included; not of duplicates.
  int64_t rounds() const { return roundCount; }

  /// Makes every call that waits or will come, on any rank, throw a CommError that says `why`,
  /// with this rank's number. Not collective; any thread may call it.
  virtual void abort(const std::string &why) noexcept = 0;
  /// What another rank aborted with, where that is known; nothing is waited for.
  virtual std::optional<std::string> getError() = 0;

  /// A communicator of the same ranks with an order of calls of its own: for a stage that runs
  /// beside others. Collective.
  virtual std::unique_ptr<Communicator> duplicate() = 0;

  /// Called by each further thread that makes calls, or waits for what a device has of them: its
  /// waits are looked after, too.
  virtual void enter() {}

  /// How long a call waits for a peer before it throws. Five minutes unless told.
  void setPatience(std::chrono::milliseconds time) { patience = time; }
  std::chrono::milliseconds getPatience() const { return patience; }
  /// What the calls from now on are for.
  void setPurpose(CommPurpose of) { purpose = of; }

  /// How long this rank's calls have taken so far, waiting for others included.
  std::chrono::nanoseconds getTimeInCalls() const { return timeInCalls; }

protected:
  /// "waited 5000 ms for rank 1, which has not come to the rows of step 37", or, where what it
  /// sends is here (`hasSent`), "which has not taken the rows of step 37".
  std::string describeWait(const std::string &late, bool hasSent = false) const;
  CommPurpose getPurpose() const { return purpose; }
  /// One exchange; sizes of the spans are getSize(), bytes are not negative.
  virtual void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) = 0;
  /// The same with rooms to receive. This one makes two exchanges, of sizes and of parts.
  virtual void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                              std::span<int64_t> received);
  /// Whether exchanges may be of a device's memory.
  virtual bool carriesDeviceMemory() const { return false; }
  /// An exchange of such memory, in the order of `stream`; the host does not wait for it.
  virtual void doExchangeOnDevice(std::span<const SendPart> send,
                                  std::span<const ReceivePart> receive, void *stream);

private:
  void check(std::span<const SendPart> send, std::span<const ReceivePart> receive,
             CommMemory memory) const;

  int64_t roundCount = 0;
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  std::chrono::nanoseconds timeInCalls{0};
  CommPurpose purpose;
};

/// The communicator of one rank alone.
std::unique_ptr<Communicator> makeSingleComm();

/// `comm` with a latency: every exchange, of its duplicates too, takes `latency` longer. For
/// benchmarks.
std::unique_ptr<Communicator> delayExchanges(std::unique_ptr<Communicator> comm,
                                             std::chrono::microseconds latency);

/// Whether this is rank 0; null: this process alone, which is.
inline bool isFirstRank(const Communicator *comm) { return !comm || comm->getRank() == 0; }

/// Runs `body` on every rank. What it throws on some, all throw: what the first of them says,
/// elsewhere as "rank 2: …". Collective; `body` itself makes calls of `comm` only where it cannot
/// throw in between. Null: this process alone.
void runTogether(Communicator *comm, const std::function<void()> &body);

/// What other ranks hear of a failure.
std::string reasonOf(const std::exception &failure);
/// Runs `body` and returns what it threw, null for nothing; that ends the other ranks too.
template <class Body> std::exception_ptr failureOf(Communicator &comm, const Body &body) {
  try {
    body();
    return nullptr;
  } catch (const CommError &) {
    return std::current_exception(); // they know
  } catch (const std::exception &error) {
    comm.abort(reasonOf(error));
    return std::current_exception();
  }
}
/// Throws `failure`, or, where a rank only heard of that from another one, what it failed with
/// itself, beside: null for nothing. A rank that has failed itself is the one to tell the user.
[[noreturn]] void throwOwnFirst(std::exception_ptr failure, std::exception_ptr beside);
/// The same as failureOf, but throws it.
template <class Body> void tellOthers(Communicator &comm, const Body &body) {
  if (std::exception_ptr failure = failureOf(comm, body))
    std::rethrow_exception(failure);
}

/// Runs `run` on `ranks` threads of this process, each with a communicator of its own: for tests,
/// and to train with several ranks where no launcher is. The first exception that a rank ends with
/// is thrown here once all have ended; the others see it as an abort.
void runThreadRanks(int32_t ranks, const std::function<void(Communicator &)> &run);

/// The communicator of all ranks that mpirun, mpiexec or srun started, over MPI; `library` is the
/// file that holds it (build/lib/libgenrec-comm-mpi.so), which alone needs MPI on the machine.
/// Throws Error where the library or MPI is missing. Once per process: MPI can be started once.
std::unique_ptr<Communicator> loadMpiComm(const std::string &library);

} // namespace genrec::rt

#endif // GENREC_RT_COMM_H
