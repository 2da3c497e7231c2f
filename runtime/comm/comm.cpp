//===- comm.cpp - calls that every communicator makes of exchanges --------===//

#include "genrec_rt/comm.h"

#include "peer_error.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <vector>

using namespace genrec::rt;

std::string Communicator::describeWait(const std::string &late, bool hasSent) const {
  std::string text = "waited " + std::to_string(patience.count()) + " ms for rank " + late;
  if (purpose.what)
    text += std::string(", which has not ") + (hasSent ? "taken " : "come to ") + purpose.what +
            " of step " + std::to_string(purpose.step);
  return text;
}

static void checkBytes(int64_t bytes, const char *what) {
  if (bytes < 0)
    throw CommError(std::string(what) + " of " + std::to_string(bytes) + " bytes");
}

void Communicator::check(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                         CommMemory memory) const {
  if (memory.kind != CommMemory::Kind::host && !carriesDeviceMemory())
    throw CommError("the " + getName() + " communicator carries host memory only",
                    "copy to the host before");
  auto size = static_cast<size_t>(getSize());
  if (send.size() != size || receive.size() != size)
    throw CommError("an exchange of " + std::to_string(size) + " ranks has " +
                    std::to_string(send.size()) + " parts to send and " +
                    std::to_string(receive.size()) + " to receive");
  for (size_t rank = 0; rank < size; ++rank) {
    checkBytes(send[rank].bytes, "a part to send");
    checkBytes(receive[rank].bytes, "a part to receive");
  }
}

void Communicator::exchange(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                            CommMemory memory) {
  check(send, receive, memory);
  ++roundCount;
  auto begin = std::chrono::steady_clock::now();
  if (memory.kind == CommMemory::Kind::device)
    doExchangeOnDevice(send, receive, memory.stream);
  else
    doExchange(send, receive);
  timeInCalls += std::chrono::steady_clock::now() - begin;
}

void Communicator::exchangeUpTo(std::span<const SendPart> send,
                                std::span<const ReceivePart> receive, std::span<int64_t> received,
                                CommMemory memory) {
  check(send, receive, memory);
  if (memory.kind != CommMemory::Kind::host)
    throw CommError("sizes of parts in a device's memory must be known before",
                    "exchange sizes first");
  for (const ReceivePart &part : receive)
    if (part.bytes > kMostRoom || received.size() != receive.size())
      throw CommError("room for " + std::to_string(part.bytes) + " bytes, more than " +
                      std::to_string(kMostRoom));
  ++roundCount;
  auto begin = std::chrono::steady_clock::now();
  doExchangeUpTo(send, receive, received);
  timeInCalls += std::chrono::steady_clock::now() - begin;
}

void Communicator::doExchangeOnDevice(std::span<const SendPart>, std::span<const ReceivePart>,
                                      void *) {}

void Communicator::doExchangeUpTo(std::span<const SendPart> send,
                                  std::span<const ReceivePart> receive,
                                  std::span<int64_t> received) {
  std::vector<int64_t> sizes(send.size());
  std::vector<SendPart> sendSizes;
  std::vector<ReceivePart> receiveSizes, parts(receive.begin(), receive.end());
  for (size_t rank = 0; rank < send.size(); ++rank) {
    sizes[rank] = send[rank].bytes;
    sendSizes.push_back({&sizes[rank], sizeof(int64_t)});
    receiveSizes.push_back({&received[rank], sizeof(int64_t)});
  }
  doExchange(sendSizes, receiveSizes);
  for (size_t rank = 0; rank < send.size(); ++rank)
    parts[rank].bytes = std::min(received[rank], receive[rank].bytes); // too much: throws there
  doExchange(send, parts);
}

void Communicator::allGather(const void *send, void *receive, int64_t bytes, CommMemory memory) {
  checkBytes(bytes, "an all-gather");
  std::vector<SendPart> sends(getSize(), SendPart{send, bytes});
  std::vector<ReceivePart> receives(getSize());
  for (int32_t rank = 0; rank < getSize(); ++rank)
    receives[rank] = {static_cast<char *>(receive) + rank * bytes, bytes};
  exchange(sends, receives, memory);
}

void Communicator::broadcast(void *data, int64_t bytes, int32_t root, CommMemory memory) {
  checkBytes(bytes, "a broadcast");
  if (root < 0 || root >= getSize())
    throw CommError("a broadcast by rank " + std::to_string(root) + " of " +
                    std::to_string(getSize()));
  std::vector<SendPart> sends(getSize());
  std::vector<ReceivePart> receives(getSize());
  if (getRank() == root)
    for (int32_t rank = 0; rank < getSize(); ++rank)
      sends[rank] = {data, rank == root ? 0 : bytes};
  else
    receives[root] = {data, bytes};
  exchange(sends, receives, memory);
}

void Communicator::barrier() {
  char mine = 0;
  std::vector<char> all(getSize());
  allGather(&mine, all.data(), 1);
}

//===----------------------------------------------------------------------===//
// One outcome on all ranks
//===----------------------------------------------------------------------===//

namespace {
/// How a rank ended; sizes are known to all before texts travel.
struct Outcome {
  int64_t hasFailed = 0, messageBytes = 0, helpBytes = 0;
};
} // namespace

void genrec::rt::runTogether(Communicator *comm, const std::function<void()> &body) {
  if (!comm)
    return body();
  std::exception_ptr failure;
  std::string message, help;
  auto fail = [&](const std::string &what, const std::string &advice) {
    failure = std::current_exception();
    message = what;
    help = advice;
  };
  try {
    body();
  } catch (const CommError &) {
    throw; // the others know
  } catch (const Error &error) {
    fail(error.what(), error.help());
  } catch (const std::bad_alloc &) {
    fail("out of memory", "");
  } catch (const std::exception &error) {
    fail(error.what(), "");
  }
  Outcome mine{failure != nullptr, static_cast<int64_t>(message.size()),
               static_cast<int64_t>(help.size())};
  std::vector<Outcome> all(comm->getSize());
  comm->allGather(&mine, all.data(), sizeof mine);
  auto first =
      std::find_if(all.begin(), all.end(), [](const Outcome &of) { return of.hasFailed != 0; });
  if (first == all.end())
    return;
  auto root = static_cast<int32_t>(first - all.begin());
  message.resize(first->messageBytes);
  help.resize(first->helpBytes);
  comm->broadcast(message.data(), first->messageBytes, root);
  comm->broadcast(help.data(), first->helpBytes, root);
  if (root == comm->getRank())
    std::rethrow_exception(failure);
  throw PeerError((root == 0 ? "" : "rank " + std::to_string(root) + ": ") + message, help);
}

std::string genrec::rt::reasonOf(const std::exception &failure) {
  return dynamic_cast<const std::bad_alloc *>(&failure) ? "out of memory" : failure.what();
}

namespace {
bool isHeard(const std::exception_ptr &failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const CommError &error) {
    return !error.isOwn;
  } catch (...) {
    return false;
  }
}
} // namespace

void genrec::rt::throwOwnFirst(std::exception_ptr failure, std::exception_ptr beside) {
  const bool isFirst = beside && isHeard(failure) && !isHeard(beside);
  std::rethrow_exception(isFirst ? beside : failure);
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

namespace {
class SingleComm : public Communicator {
public:
  std::string getName() const override { return "single"; }
  int32_t getRank() const override { return 0; }
  int32_t getSize() const override { return 1; }
  void abort(const std::string &why) noexcept override { error = "rank 0: " + why; }
  std::optional<std::string> getError() override { return error; }
  std::unique_ptr<Communicator> duplicate() override { return std::make_unique<SingleComm>(); }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    if (error)
      throw CommError(*error);
    if (send[0].bytes != receive[0].bytes)
      throw CommError("rank 0 sends itself " + std::to_string(send[0].bytes) +
                      " bytes and expects " + std::to_string(receive[0].bytes));
    if (send[0].bytes)
      std::memcpy(receive[0].data, send[0].data, send[0].bytes);
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    received[0] = send[0].bytes;
    ReceivePart part{receive[0].data, std::min(send[0].bytes, receive[0].bytes)};
    doExchange(send, {&part, 1});
  }

private:
  std::optional<std::string> error;
};
} // namespace

std::unique_ptr<Communicator> genrec::rt::makeSingleComm() {
  return std::make_unique<SingleComm>();
}
