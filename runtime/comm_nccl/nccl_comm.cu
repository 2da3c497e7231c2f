//===- nccl_comm.cu - Ranks with a GPU each, over NCCL --------------------===//

#include "nccl_comm.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/forwarding_comm.h"
#include "nccl_library.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
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

class NcclComm;

/// Looks after all communicators that a thread has called: one may carry the next step's keys while
/// the thread waits for what another one brings.
class Watched final : public WaitWatch {
public:
  void add(NcclComm &comm);
  void remove(NcclComm &comm);
  void look(std::chrono::nanoseconds waited) override;

private:
  std::vector<NcclComm *> comms; ///< in the order of their first calls
};

thread_local Watched watched;

class NcclComm final : public ForwardingComm {
public:
  explicit NcclComm(Communicator &host) : NcclComm(host, nullptr) {}
  /// Owns `owned`, which is `host`, or null.
  NcclComm(Communicator &host, std::unique_ptr<Communicator> owned)
      : ForwardingComm(host), owned(std::move(owned)), host(host), nccl(NcclLibrary::get()),
        checks(std::getenv("GENREC_COMM_CHECK") != nullptr) {
    NcclLibrary::UniqueId id{};
    runTogether(&host, [&] { // NCCL may be missing on some
      if (getRank() == 0)
        check(nccl.getUniqueId(&id), "cannot begin");
    });
    host.broadcast(id.bytes, sizeof id, 0);
    check(nccl.commInitRank(&comm, getSize(), id, getRank()), "cannot connect GPUs");
  }
  ~NcclComm() override {
    watched.remove(*this);
    if (host.getError())
      stopCalls(); // a rank has failed: what waits for it has no end
    if (comm && !isAborted)
      (void)nccl.commDestroy(comm);
  }

  std::string getName() const override { return "nccl"; }
  void abort(const std::string &why) noexcept override {
    host.abort(why);
    stopCalls();
  }
  std::unique_ptr<Communicator> duplicate() override {
    std::unique_ptr<Communicator> other = ForwardingComm::duplicate();
    Communicator &its = *other;
    auto copy = std::make_unique<NcclComm>(its, std::move(other));
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
    watched.add(*this);
    lastStream = on;
    const int32_t rank = getRank();
    if (send[rank].bytes != receive[rank].bytes)
      fail("rank " + std::to_string(rank) + " sends itself " + std::to_string(send[rank].bytes) +
           " bytes and expects " + std::to_string(receive[rank].bytes));
    if (send[rank].bytes > 0)
      GENREC_CUDA_CHECK(cudaMemcpyAsync(receive[rank].data, send[rank].data,
                                        static_cast<size_t>(send[rank].bytes),
                                        cudaMemcpyDeviceToDevice, on));
    check(nccl.groupStart(), "cannot begin an exchange");
    for (int32_t peer = 0; peer < getSize(); ++peer) {
      if (peer == rank)
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
    check(nccl.groupEnd(), "an exchange failed");
    std::this_thread::sleep_for(latency);
  }

public:
  /// Over and over while the host waits for the device.
  void look(std::chrono::nanoseconds waited) {
    throwOthersError();
    int state = NcclLibrary::kSuccess;
    check(nccl.commGetAsyncError(comm, &state), "cannot ask for errors");
    if (state != NcclLibrary::kSuccess && state != NcclLibrary::kInProgress)
      check(state, "an exchange failed");
    if (waited > getPatience() && cudaStreamQuery(lastStream) == cudaErrorNotReady)
      fail(describeWait("others"));
  }

private:
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

  void throwOthersError() {
    if (std::optional<std::string> other = host.getError()) {
      stopCalls();
      throw CommError(*other);
    }
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

  /// Ends what is under way on the device.
  void stopCalls() noexcept {
    std::lock_guard lock(mutex);
    if (comm && !isAborted)
      (void)nccl.commAbort(comm);
    isAborted = true;
  }

  std::unique_ptr<Communicator> owned;
  Communicator &host;
  const NcclLibrary &nccl;
  const bool checks;
  const std::chrono::microseconds latency = askedLatency();
  NcclLibrary::Comm comm = nullptr;
  std::mutex mutex;
  bool isAborted = false;
  int64_t announced = 0;
  cudaStream_t lastStream = nullptr; ///< of the last exchange
};

void Watched::add(NcclComm &comm) {
  if (std::ranges::find(comms, &comm) == comms.end())
    comms.push_back(&comm);
  watch(*this);
}

void Watched::remove(NcclComm &comm) {
  std::erase(comms, &comm);
  if (comms.empty())
    unwatch(*this);
}

void Watched::look(std::chrono::nanoseconds waited) {
  for (NcclComm *comm : comms)
    comm->look(waited);
}

} // namespace

std::unique_ptr<Communicator> makeNcclComm(Communicator &host) {
  return std::make_unique<NcclComm>(host);
}

} // namespace genrec::rt::cuda
