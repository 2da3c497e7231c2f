//===- mpi_comm.cpp - ranks that are processes, over MPI ------------------===//
//
// A library of its own (libgenrec-comm-mpi.so), which the runtime loads where a launcher started
// several processes: a compiled model needs MPI on the machine only then. Messages go peer by
// peer, so that one which stalls has a name. Waiting polls with growing pauses: two ranks on one
// core must not take it from each other.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/comm.h"

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace genrec::rt;

namespace {

constexpr int kDataTag = 1, kAbortTag = 2;
/// What one message holds at most: MPI 3 counts in int.
constexpr int64_t kMostBytes = int64_t(1) << 30;
constexpr size_t kMostAbortText = 1024;
/// How long a call that waits only lets other threads run, and how long it sleeps at most later.
constexpr std::chrono::microseconds kYielding(100), kLongestPause(50);
/// How long a call that throws waits for messages that are half on their way. Others hear of an
/// abort at about the same time.
constexpr std::chrono::seconds kDropPatience(1);

/// Lets pauses of the calling thread be as short as they are asked for: Linux adds 50 us to each
/// unless told. Put back at the end.
class TimerSlack {
public:
  ~TimerSlack() {
    if (before > 0)
      prctl(PR_SET_TIMERSLACK, before, 0, 0, 0);
  }
  void shorten() {
    if (before >= 0)
      return;
    before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); // ns
  }

private:
  int before = -1; ///< ns; -1: not shortened
};

/// A message under way, or a piece of one.
struct Transfer {
  MPI_Request request = MPI_REQUEST_NULL;
  int32_t peer = 0;
  int64_t expected = -1; ///< bytes to receive; -1: sent
  int64_t *received = nullptr; ///< where the bytes are counted of which `expected` may come
};

class MpiComm : public Communicator {
public:
  /// Takes `data` and `control`, which no one else uses.
  MpiComm(MPI_Comm data, MPI_Comm control, bool endsMpi)
      : data(data), control(control), endsMpi(endsMpi) {
    for (MPI_Comm comm : {data, control})
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(data, &rank);
    MPI_Comm_size(data, &size);
  }
  ~MpiComm() override {
    if (error) // others may be anywhere: nothing collective may be called
      return;
    MPI_Comm_free(&data);
    MPI_Comm_free(&control);
    if (endsMpi)
      MPI_Finalize();
  }

  std::string getName() const override { return "mpi"; }
  int32_t getRank() const override { return rank; }
  int32_t getSize() const override { return size; }
  void abort(const std::string &why) noexcept override;
  std::optional<std::string> getError() override;
  std::unique_ptr<Communicator> duplicate() override;

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    doExchangeUpTo(send, receive, {});
  }
  /// `received` is empty where sizes agree.
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override;

private:
  void check(int status, const std::string &what);
  void startReceives(std::span<const ReceivePart> receive, std::span<int64_t> received);
  void startSends(std::span<const SendPart> send);
  void finish();
  /// Ranks of messages under way, to this one or from it: "1, 3".
  std::string namePeers(bool receiving) const;
  /// Checks the size of a message that came.
  void complete(const Transfer &transfer, MPI_Status &status);
  [[noreturn]] void fail(const std::string &why);
  void dropTransfers();

  MPI_Comm data, control;
  bool endsMpi;
  int rank = 0, size = 1;
  std::vector<Transfer> transfers;
  std::mutex mutex; ///< of `error`: any thread may abort
  std::optional<std::string> error;
};

} // namespace

/// Tells the others before it throws.
void MpiComm::fail(const std::string &why) {
  abort(why);
  dropTransfers();
  CommError failure("rank " + std::to_string(rank) + ": " + why);
  failure.isOwn = true;
  throw failure;
}

void MpiComm::check(int status, const std::string &what) {
  if (status == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail(what + ": " + std::string(text, length));
}

/// Ends what is under way before its memory is the caller's again: MPI would go on with it in any
/// later call. A receive ends as cancelled, unless its message has begun to come: then that ends,
/// as the other side does the same. A send that nobody takes does not end, nor is it read.
void MpiComm::dropTransfers() {
  using Clock = std::chrono::steady_clock;
  for (Transfer &transfer : transfers)
    if (transfer.request != MPI_REQUEST_NULL && transfer.expected >= 0)
      MPI_Cancel(&transfer.request);
  auto isOpen = [](Transfer &transfer) {
    int isDone = 0; // MPI forgets a request that is
    return transfer.request != MPI_REQUEST_NULL &&
           MPI_Test(&transfer.request, &isDone, MPI_STATUS_IGNORE) == MPI_SUCCESS && !isDone;
  };
  const Clock::time_point until = Clock::now() + kDropPatience;
  while (std::ranges::count_if(transfers, isOpen) > 0 && Clock::now() < until)
    std::this_thread::sleep_for(kLongestPause);
  for (Transfer &transfer : transfers)
    if (transfer.request != MPI_REQUEST_NULL)
      MPI_Request_free(&transfer.request);
  transfers.clear();
}

void MpiComm::abort(const std::string &why) noexcept {
  std::lock_guard lock(mutex);
  if (error)
    return;
  error = "rank " + std::to_string(rank) + ": " + why;
  // Nobody waits for these messages, since a rank that is gone does not receive: MPI may read the
  // text for as long as the process lives, so it is never freed.
  const auto &text = *new std::string(error->substr(0, kMostAbortText));
  for (int other = 0; other < size; ++other)
    if (other != rank) {
      MPI_Request request;
      if (MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, other, kAbortTag, control,
                    &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
}

std::optional<std::string> MpiComm::getError() {
  std::lock_guard lock(mutex);
  int isThere = 0;
  MPI_Status status;
  if (!error && MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, control, &isThere, &status) == MPI_SUCCESS &&
      isThere) {
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(length, '\0');
    MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, kAbortTag, control,
             MPI_STATUS_IGNORE);
    error = text;
  }
  return error;
}

std::unique_ptr<Communicator> MpiComm::duplicate() {
  // MPI's own call waits for ranks that never come, and hears of no abort. Other than barrier(),
  // this counts as no exchange of the caller's.
  const char mine = 0;
  std::vector<char> theirs(size);
  std::vector<SendPart> send(size, SendPart{&mine, 1});
  std::vector<ReceivePart> receive(size);
  for (int peer = 0; peer < size; ++peer)
    receive[peer] = {&theirs[peer], 1};
  doExchange(send, receive);
  MPI_Comm newData, newControl;
  check(MPI_Comm_dup(data, &newData), "cannot duplicate the communicator");
  check(MPI_Comm_dup(control, &newControl), "cannot duplicate the communicator");
  auto copy = std::make_unique<MpiComm>(newData, newControl, /*endsMpi=*/false);
  copy->setPatience(getPatience());
  return copy;
}

// An empty part is a message too: a peer that sends more than is expected is noticed.
void MpiComm::startReceives(std::span<const ReceivePart> receive, std::span<int64_t> received) {
  for (int peer = 0; peer < size; ++peer) {
    auto *to = static_cast<char *>(receive[peer].data);
    int64_t left = peer == rank ? 0 : receive[peer].bytes;
    do {
      int64_t bytes = std::min(left, kMostBytes);
      if (peer != rank) {
        transfers.push_back(
            {MPI_REQUEST_NULL, peer, bytes, received.empty() ? nullptr : &received[peer]});
        check(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, peer, kDataTag, data,
                        &transfers.back().request),
              "cannot receive from rank " + std::to_string(peer));
      }
      to += bytes, left -= bytes;
    } while (left > 0);
  }
}

void MpiComm::startSends(std::span<const SendPart> send) {
  for (int peer = 0; peer < size; ++peer) {
    const auto *from = static_cast<const char *>(send[peer].data);
    int64_t left = peer == rank ? 0 : send[peer].bytes;
    do {
      int64_t bytes = std::min(left, kMostBytes);
      if (peer != rank) {
        transfers.push_back({MPI_REQUEST_NULL, peer});
        check(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, peer, kDataTag, data,
                        &transfers.back().request),
              "cannot send to rank " + std::to_string(peer));
      }
      from += bytes, left -= bytes;
    } while (left > 0);
  }
}

void MpiComm::complete(const Transfer &transfer, MPI_Status &status) {
  if (transfer.expected < 0)
    return;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (transfer.received)
    *transfer.received = bytes;
  else if (bytes != transfer.expected)
    fail("rank " + std::to_string(transfer.peer) + " sends " + std::to_string(bytes) +
         " bytes to rank " + std::to_string(rank) + ", which expects " +
         std::to_string(transfer.expected));
}

std::string MpiComm::namePeers(bool receiving) const {
  std::set<int32_t> peers; // one may have several pieces under way
  for (const Transfer &transfer : transfers)
    if (transfer.request != MPI_REQUEST_NULL && (transfer.expected >= 0) == receiving)
      peers.insert(transfer.peer);
  std::string names;
  for (int32_t peer : peers)
    names += (names.empty() ? "" : ", ") + std::to_string(peer);
  return names;
}

void MpiComm::finish() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  auto pause = std::chrono::microseconds(0);
  TimerSlack slack;
  while (true) {
    bool moved = false, isOpen = false;
    for (Transfer &transfer : transfers) {
      if (transfer.request == MPI_REQUEST_NULL)
        continue;
      int isDone = 0;
      MPI_Status status;
      int code = MPI_Test(&transfer.request, &isDone, &status);
      if (code != MPI_SUCCESS) {
        int kind = MPI_SUCCESS;
        MPI_Error_class(code, &kind);
        if (kind == MPI_ERR_TRUNCATE)
          fail("rank " + std::to_string(transfer.peer) + " sends more to rank " +
               std::to_string(rank) + " than the " + std::to_string(transfer.expected) +
               " bytes that it expects");
        check(code, "lost rank " + std::to_string(transfer.peer));
      }
      if (isDone)
        complete(transfer, status);
      (isDone ? moved : isOpen) = true;
    }
    if (!isOpen)
      break;
    if (std::optional<std::string> other = getError()) {
      dropTransfers();
      throw CommError(*other);
    }
    if (moved) {
      begin = Clock::now();
      pause = {};
      continue;
    }
    Clock::duration waited = Clock::now() - begin;
    if (waited > getPatience()) {
      std::string late = namePeers(/*receiving=*/true);
      // A rank may stop after what it sends has left, and before it takes what is sent to it.
      bool hasSent = late.empty();
      fail(describeWait(hasSent ? namePeers(/*receiving=*/false) : late, hasSent));
    }
    if (waited < kYielding) {
      std::this_thread::yield();
      continue;
    }
    slack.shorten();
    pause = std::min(pause + std::chrono::microseconds(1), kLongestPause);
    std::this_thread::sleep_for(pause);
  }
  transfers.clear();
}

void MpiComm::doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                             std::span<int64_t> received) {
  if (std::optional<std::string> other = getError())
    throw CommError(*other);
  const SendPart &own = send[rank];
  if (received.empty() ? own.bytes != receive[rank].bytes : own.bytes > receive[rank].bytes)
    fail("rank " + std::to_string(rank) + " sends itself " + std::to_string(own.bytes) +
         " bytes and expects " + std::to_string(receive[rank].bytes));
  if (!received.empty())
    received[rank] = own.bytes;
  startReceives(receive, received);
  startSends(send);
  if (own.bytes)
    std::memcpy(receive[rank].data, own.data, own.bytes);
  finish();
}

/// What comm.h was when this was built: a hash.
extern "C" const char *genrec_comm_header() { return GENREC_COMM_HEADER; }

/// What loadMpiComm looks for; null, with a problem, where MPI does not start.
extern "C" Communicator *genrec_make_mpi_comm(std::string &problem) {
  int isStarted = 0, level = 0;
  MPI_Initialized(&isStarted);
  if (isStarted) {
    problem = "MPI has been started before in this process";
    return nullptr;
  }
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS ||
      level < MPI_THREAD_MULTIPLE) {
    problem = "this MPI lets one thread communicate only; stages of a step need their own";
    return nullptr;
  }
  MPI_Comm data, control;
  MPI_Comm_dup(MPI_COMM_WORLD, &data);
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  return new MpiComm(data, control, /*endsMpi=*/true);
}
