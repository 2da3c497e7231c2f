//===- nccl_comm.cu - Ranks with a GPU each, over NCCL --------------------===//

#include "nccl_comm.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/forwarding_comm.h"
#include "nccl_library.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace genrec::rt::cuda {

namespace {

/// What ranks compare of an exchange before it, with GENREC_COMM_CHECK=1.
struct Announced {
  int64_t number; ///< of the exchange
  int64_t bytes;  ///< that go to the rank which reads this
  uint64_t step;
  char purpose[40];
};

std::string textOf(const CommPurpose &purpose) {
  return std::string(purpose.what) + " of step " + std::to_string(purpose.step);
}

/// How long what a communicator has under way may take to end.
constexpr std::chrono::seconds kStopPatience(5);

/// How long a call takes that others have made, too, before they ended.
constexpr std::chrono::seconds kSoon(1);

/// How long a rank looks for NCCL's answer without pause: what needs no peer takes less.
constexpr std::chrono::milliseconds kYielding(2);

class NcclComm;

/// The communicators of a rank: the first one and its duplicates. A wait of the host looks after
/// all of them: one may carry the next step's keys while the host waits for what another one
/// brings, and a stream may have exchanges of several.
class NcclRank final : public WaitWatch {
public:
  explicit NcclRank(Communicator &host) : host(host) {}
  ~NcclRank() override { unwatch(*this); }
  void add(NcclComm &comm);
  void remove(NcclComm &comm);
  void look(std::chrono::nanoseconds waited) override;
  /// Ends what all of them have under way.
  void stop() noexcept;

  Communicator &host; ///< of the first one, by which ranks tell what ends all

private:
  std::mutex mutex; ///< any thread may stop them
  std::vector<NcclComm *> comms;
};

class NcclComm final : public ForwardingComm {
public:
  /// A duplicate is one of the same `rank`; null: the first one. Owns `owned`, which is `host`, or
  /// null.
  explicit NcclComm(Communicator &host, std::shared_ptr<NcclRank> of = nullptr,
                    std::unique_ptr<Communicator> owned = nullptr)
      : ForwardingComm(host), owned(std::move(owned)), host(host), isFirst(!of),
        rank(of ? std::move(of) : std::make_shared<NcclRank>(host)), nccl(NcclLibrary::get()),
        checks(std::getenv("GENREC_COMM_CHECK") != nullptr) {
    NcclLibrary::UniqueId id{};
    runTogether(&host, [&] { // NCCL may be missing on some
      if (getRank() == 0)
        check(nccl.getUniqueId(&id), "cannot begin");
    });
    host.broadcast(id.bytes, sizeof id, 0);
    rank->add(*this);
    try {
      connect(id);
    } catch (...) { // what was not made has no destructor
      leave();
      throw;
    }
  }
  ~NcclComm() override {
    if (host.getError() || std::uncaught_exceptions() > exceptions)
      stop(); // destroying it is collective: not where a rank has failed, another one or this one
    leave();
    if (lastEnd)
      (void)cudaEventDestroy(lastEnd);
  }

  std::string getName() const override { return "nccl"; }
  void abort(const std::string &why) noexcept override {
    host.abort(why);
    if (isFirst)
      rank->stop();
  }
  void enter() override { watch(*rank); }
  std::unique_ptr<Communicator> duplicate() override {
    std::unique_ptr<Communicator> other = ForwardingComm::duplicate();
    Communicator &its = *other;
    auto copy = std::make_unique<NcclComm>(its, rank, std::move(other));
    copy->setPatience(getPatience());
    return copy;
  }

protected:
  bool carriesDeviceMemory() const override { return true; }
  void doExchangeOnDevice(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                          void *stream) override {
    const auto on = static_cast<cudaStream_t>(stream);
    throwOthersError();
    if (checks)
      announce(send, receive);
    watch(*rank);
    const int32_t self = getRank();
    if (send[self].bytes != receive[self].bytes)
      fail("rank " + std::to_string(self) + " sends itself " + std::to_string(send[self].bytes) +
           " bytes and expects " + std::to_string(receive[self].bytes));
    if (send[self].bytes > 0)
      GENREC_CUDA_CHECK(cudaMemcpyAsync(receive[self].data, send[self].data,
                                        static_cast<size_t>(send[self].bytes),
                                        cudaMemcpyDeviceToDevice, on));
    check(nccl.groupStart(), "cannot begin an exchange");
    for (int32_t peer = 0; peer < getSize(); ++peer) {
      if (peer == self)
        continue;
      if (send[peer].bytes > 0)
        check(nccl.send(send[peer].data, static_cast<size_t>(send[peer].bytes), NcclLibrary::kBytes,
                        peer, comm, on),
              "cannot send to rank " + std::to_string(peer));
      if (receive[peer].bytes > 0)
        check(nccl.receive(receive[peer].data, static_cast<size_t>(receive[peer].bytes),
                           NcclLibrary::kBytes, peer, comm, on),
              "cannot receive from rank " + std::to_string(peer));
    }
    finish(nccl.groupEnd(), "an exchange failed");
    markEnd(on);
    std::this_thread::sleep_for(latency);
  }

public:
  /// Over and over while the host waits for the device. What is wrong with a communicator that has
  /// nothing under way is told where it is called next, and so is what a duplicate was aborted
  /// with: others have made the exchanges before that.
  void look(std::chrono::nanoseconds waited) {
    if (isStopped)
      return; // whoever has stopped it knows why
    const std::optional<std::string> error = rank->host.getError();
    const int state = askState();
    const bool hasFailed = state != NcclLibrary::kSuccess && state != NcclLibrary::kInProgress;
    const bool isLate = waited > getPatience();
    if ((!error && !hasFailed && !isLate) || !isUnderWay())
      return;
    if (error)
      throw CommError(*error);
    check(state, "an exchange failed");
    fail(describeWait(nameOthers()));
  }

  /// Ends what is under way on the device: on a thread of its own, as NCCL waits for the device
  /// meanwhile, which may wait for what other communicators have under way.
  void stop() noexcept {
    std::lock_guard lock(mutex);
    if (isStopped)
      return;
    isStopped = true;
    if (comm)
      endCalls();
  }

private:
  /// Peers that do not come are noticed where NCCL's calls need not wait for them.
  void connect(const NcclLibrary::UniqueId &id) {
    NcclLibrary::Comm made = nullptr;
    NcclLibrary::Config config;
    const int result = nccl.commInitRankConfig
                           ? nccl.commInitRankConfig(&made, getSize(), id, getRank(), &config)
                           : nccl.commInitRank(&made, getSize(), id, getRank());
    {
      const std::lock_guard lock(mutex);
      comm = made;
      if (isStopped && comm) // by another thread, which had nothing to end
        endCalls();
    }
    finish(result, "cannot connect GPUs");
  }

  /// Waits until NCCL is done with a call that returned `result`: it goes on behind that, on a
  /// thread of its own, which connects to peers and then queues what the stream is to run.
  void finish(int result, const std::string &what) {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<std::chrono::nanoseconds> heard;
    try {
      while (result == NcclLibrary::kInProgress) {
        const auto waited = std::chrono::steady_clock::now() - begin;
        lookForPeers(waited, heard);
        if (waited < kYielding)
          std::this_thread::yield();
        else
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        result = askState();
        if (isStopped) // by another thread
          throwOthersError();
      }
      check(result, what);
    } catch (...) { // nothing is queued behind what the caller goes on with
      stop();
      waitUntilStopped();
      throw;
    }
  }

  /// As look, while NCCL is not done with a call: it takes no other one then. What a duplicate was
  /// aborted with is `heard` by then: others may have made this call before.
  void lookForPeers(std::chrono::nanoseconds waited,
                    std::optional<std::chrono::nanoseconds> &heard) {
    const std::optional<std::string> ofAll = rank->host.getError();
    const std::optional<std::string> own = isFirst ? std::nullopt : host.getError();
    if (own && !heard)
      heard = waited;
    const bool isOver = own && waited - *heard > kSoon;
    const bool isLate = waited > getPatience();
    try {
      if (ofAll || isOver)
        throw CommError(ofAll ? *ofAll : *own);
      if (isLate)
        fail(describeWait(nameOthers()) + (getPurpose().what ? "" : ", to connect GPUs"));
    } catch (...) {
      if (ofAll || isLate) // what this rank's others have under way needs that peer, too
        rank->stop();
      throw;
    }
  }

  /// What NCCL says of its last call; kInProgress where this rank has ended it.
  int askState() {
    int state = NcclLibrary::kInProgress, result = NcclLibrary::kSuccess;
    {
      const std::lock_guard lock(mutex); // while NCCL is asked, nobody gives `comm` back
      if (!isStopped && comm)
        result = nccl.commGetAsyncError(comm, &state);
    }
    check(result, "cannot ask for errors");
    return state;
  }

  void leave() noexcept {
    rank->remove(*this);
    if (!isStopped)
      (void)nccl.commDestroy(comm);
    waitUntilStopped();
  }

  void waitUntilStopped() const noexcept {
    if (stopped.valid())
      (void)stopped.wait_for(kStopPatience);
  }

  /// With the lock.
  void endCalls() noexcept {
    try {
      std::packaged_task<void()> end([&nccl = nccl, comm = comm] { abortCalls(nccl, comm); });
      stopped = end.get_future();
      std::thread(std::move(end)).detach();
    } catch (const std::exception &) { // there is no thread
      abortCalls(nccl, comm);
    }
  }

  /// Ranks say what they are about to do.
  void announce(std::span<const SendPart> send, std::span<const ReceivePart> receive) {
    std::vector<Announced> mine(getSize()), theirs(getSize());
    std::vector<SendPart> out;
    std::vector<ReceivePart> in;
    const CommPurpose purpose = getPurpose();
    ++announced;
    for (int32_t peer = 0; peer < getSize(); ++peer) {
      mine[peer] = {announced, send[peer].bytes, purpose.step, {}};
      if (purpose.what)
        std::strncpy(mine[peer].purpose, purpose.what, sizeof mine[peer].purpose - 1);
      out.push_back({&mine[peer], sizeof(Announced)});
      in.push_back({&theirs[peer], sizeof(Announced)});
    }
    host.exchange(out, in);
    auto describe = [](const Announced &of) {
      return "exchange " + std::to_string(of.number) + ", " + of.purpose + " of step " +
             std::to_string(of.step);
    };
    for (int32_t peer = 0; peer < getSize(); ++peer) {
      const Announced &other = theirs[peer], &own = mine[getRank()];
      if (other.number != own.number || other.step != own.step ||
          std::strcmp(other.purpose, own.purpose) != 0)
        fail("rank " + std::to_string(peer) + " is at " + describe(other) + ", rank " +
             std::to_string(getRank()) + " at " + describe(own));
      if (other.bytes != receive[peer].bytes)
        fail("rank " + std::to_string(peer) + " sends " + std::to_string(other.bytes) +
             " bytes to rank " + std::to_string(getRank()) + ", which expects " +
             std::to_string(receive[peer].bytes));
    }
  }

  void markEnd(cudaStream_t on) {
    if (!lastEnd)
      GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&lastEnd, cudaEventDisableTiming));
    GENREC_CUDA_CHECK(cudaEventRecord(lastEnd, on));
  }
  /// "0 or 2": NCCL does not say which of them is late.
  std::string nameOthers() const {
    std::string names;
    for (int32_t other = 0; other < getSize(); ++other)
      if (other != getRank())
        names += (names.empty() ? "" : " or ") + std::to_string(other);
    return names;
  }
  bool isUnderWay() const { return lastEnd && cudaEventQuery(lastEnd) == cudaErrorNotReady; }

  void throwOthersError() {
    if (std::optional<std::string> other = host.getError()) {
      if (isFirst)
        rank->stop();
      throw CommError(*other);
    }
    if (isStopped) // with another one of this rank
      throw CommError("rank " + std::to_string(getRank()) + " has ended its exchanges");
  }

  void check(int result, const std::string &what) {
    if (result == NcclLibrary::kSuccess || result == NcclLibrary::kInProgress)
      return;
    const CommPurpose purpose = getPurpose();
    const std::string text = what + (purpose.what ? ", for " + textOf(purpose) + "," : "") +
                             " over NCCL: " + nccl.describe(result, comm);
    throwOthersError(); // the reason rather than what follows from it
    fail(text);
  }

  [[noreturn]] void fail(const std::string &why) {
    abort(why);
    CommError error("rank " + std::to_string(getRank()) + ": " + why);
    error.isOwn = true;
    throw error;
  }

  static void abortCalls(const NcclLibrary &nccl, NcclLibrary::Comm comm) {
    (void)nccl.commAbort(comm);
  }

  std::unique_ptr<Communicator> owned;
  Communicator &host;
  const bool isFirst;
  const std::shared_ptr<NcclRank> rank;
  const NcclLibrary &nccl;
  const bool checks;
  const std::chrono::microseconds latency = askedLatency();
  const int exceptions = std::uncaught_exceptions(); ///< on their way when it was made
  NcclLibrary::Comm comm = nullptr;
  std::mutex mutex; ///< of `stop`
  std::atomic<bool> isStopped = false;
  std::future<void> stopped; ///< when NCCL has ended what was under way
  int64_t announced = 0;
  cudaEvent_t lastEnd = nullptr; ///< of the last exchange; null: there was none
};

void NcclRank::add(NcclComm &comm) {
  const std::lock_guard lock(mutex);
  comms.push_back(&comm);
}

void NcclRank::remove(NcclComm &comm) {
  const std::lock_guard lock(mutex);
  std::erase(comms, &comm);
}

void NcclRank::stop() noexcept {
  const std::lock_guard lock(mutex);
  for (NcclComm *comm : comms)
    comm->stop();
}

/// Without the lock: communicators come and go where nobody else of the rank waits.
void NcclRank::look(std::chrono::nanoseconds waited) {
  try {
    for (NcclComm *comm : comms)
      comm->look(waited);
  } catch (...) { // what is waited for may wait for any of them
    stop();
    throw;
  }
}

} // namespace

std::unique_ptr<Communicator> makeNcclComm(Communicator &host) {
  return std::make_unique<NcclComm>(host);
}

} // namespace genrec::rt::cuda
