//===- comm.cpp - calls that every communicator makes of exchanges --------===//

#include "genrec_rt/comm.h"

#include <cstring>
#include <vector>

using namespace genrec::rt;

void Communicator::check(CommMemory memory) const {
  if (memory.kind != CommMemory::Kind::host)
    throw CommError("the " + getName() + " communicator carries host memory only",
                    "copy to the host before");
}

static void checkBytes(int64_t bytes, const char *what) {
  if (bytes < 0)
    throw CommError(std::string(what) + " of " + std::to_string(bytes) + " bytes");
}

void Communicator::exchange(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                            CommMemory memory) {
  check(memory);
  auto size = static_cast<size_t>(getSize());
  if (send.size() != size || receive.size() != size)
    throw CommError("an exchange of " + std::to_string(size) + " ranks has " +
                    std::to_string(send.size()) + " parts to send and " +
                    std::to_string(receive.size()) + " to receive");
  for (size_t rank = 0; rank < size; ++rank) {
    checkBytes(send[rank].bytes, "a part to send");
    checkBytes(receive[rank].bytes, "a part to receive");
  }
  doExchange(send, receive);
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

private:
  std::optional<std::string> error;
};
} // namespace

std::unique_ptr<Communicator> genrec::rt::makeSingleComm() {
  return std::make_unique<SingleComm>();
}
