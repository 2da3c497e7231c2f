//===- conformance.h - what every communicator must do --------------------===//
//
// Run by every rank: threads of one process (test/Runtime/comm_test.cpp), with a device each
// (test/Cuda/nccl_comm_test.cpp), and processes under mpirun (test/Comm/mpi_ranks.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_COMM_CONFORMANCE_H
#define GENREC_TEST_COMM_CONFORMANCE_H

#include "genrec_rt/comm.h"

#include <numeric>
#include <string>
#include <vector>

namespace genrec::rt::conformance {

inline void expect(bool holds, const std::string &what) {
  if (!holds)
    throw std::runtime_error("not so: " + what);
}

/// Where bytes of calls are: the host's own arrays, or copies of them elsewhere.
class Memory {
public:
  virtual ~Memory() = default;
  virtual CommMemory where() { return {}; }
  /// Memory with these bytes of the host; what has no bytes may be null.
  virtual void *give(void *host, int64_t) { return host; }
  /// Brings them back, once everything before is done.
  virtual void fetch(void *, const void *, int64_t) {}
};

/// Element i of what rank `from` sends to rank `to`.
inline int64_t element(int64_t from, int64_t to, int64_t i) {
  return from * 1000003 + to * 1009 + i;
}

/// Parts of many sizes, some empty; `scale` elements at most per part.
inline void checkExchange(Communicator &comm, int64_t scale, Memory &memory) {
  int32_t size = comm.getSize(), rank = comm.getRank();
  auto count = [&](int64_t from, int64_t to) { return (from * 7 + to * 3) % 5 * scale / 4; };
  std::vector<std::vector<int64_t>> out(size), in(size);
  std::vector<SendPart> send(size);
  std::vector<ReceivePart> receive(size);
  for (int32_t other = 0; other < size; ++other) {
    for (int64_t i = 0; i < count(rank, other); ++i)
      out[other].push_back(element(rank, other, i));
    in[other].assign(count(other, rank), -1);
    auto sent = static_cast<int64_t>(out[other].size() * 8);
    auto received = static_cast<int64_t>(in[other].size() * 8);
    send[other] = {memory.give(out[other].data(), sent), sent};
    receive[other] = {memory.give(in[other].data(), received), received};
  }
  comm.exchange(send, receive, memory.where());
  for (int32_t other = 0; other < size; ++other)
    memory.fetch(in[other].data(), receive[other].data, receive[other].bytes);
  for (int32_t other = 0; other < size; ++other)
    for (int64_t i = 0; i < count(other, rank); ++i)
      expect(in[other][i] == element(other, rank, i),
             "an element of rank " + std::to_string(other));
}

/// Parts that fill their rooms, some, or not at all.
inline void checkRooms(Communicator &comm) {
  int32_t size = comm.getSize(), rank = comm.getRank();
  constexpr int64_t kRoom = 40;
  auto count = [&](int64_t from, int64_t to) { return (from * 13 + to * 20) % (kRoom + 1); };
  std::vector<std::vector<int64_t>> out(size), in(size, std::vector<int64_t>(kRoom, -1));
  std::vector<SendPart> send(size);
  std::vector<ReceivePart> receive(size);
  std::vector<int64_t> received(size, -1);
  for (int32_t other = 0; other < size; ++other) {
    for (int64_t i = 0; i < count(rank, other); ++i)
      out[other].push_back(element(rank, other, i));
    send[other] = {out[other].data(), static_cast<int64_t>(out[other].size() * 8)};
    receive[other] = {in[other].data(), kRoom * 8};
  }
  comm.exchangeUpTo(send, receive, received);
  for (int32_t other = 0; other < size; ++other) {
    expect(received[other] == count(other, rank) * 8, "bytes of rank " + std::to_string(other));
    for (int64_t i = 0; i < kRoom; ++i)
      expect(in[other][i] == (i < count(other, rank) ? element(other, rank, i) : -1),
             "a room for rank " + std::to_string(other));
  }
}

inline void checkAllGather(Communicator &comm, Memory &memory) {
  std::vector<int32_t> all(comm.getSize(), -1);
  int32_t mine = comm.getRank() * 11;
  auto bytes = static_cast<int64_t>(all.size() * 4);
  void *to = memory.give(all.data(), bytes);
  comm.allGather(memory.give(&mine, sizeof mine), to, sizeof mine, memory.where());
  memory.fetch(all.data(), to, bytes);
  for (int32_t rank = 0; rank < comm.getSize(); ++rank)
    expect(all[rank] == rank * 11, "all-gather");
  comm.allGather(nullptr, nullptr, 0, memory.where());
}

inline void checkBroadcast(Communicator &comm, Memory &memory) {
  for (int32_t root = 0; root < comm.getSize(); ++root) {
    std::vector<int32_t> data(100);
    if (comm.getRank() == root)
      std::iota(data.begin(), data.end(), root);
    auto bytes = static_cast<int64_t>(data.size() * 4);
    void *at = memory.give(data.data(), bytes);
    comm.broadcast(at, bytes, root, memory.where());
    memory.fetch(data.data(), at, bytes);
    expect(data[0] == root && data[99] == root + 99, "broadcast by " + std::to_string(root));
  }
}

/// A duplicate has calls of its own.
inline void checkDuplicate(Communicator &comm, Memory &memory) {
  std::unique_ptr<Communicator> other = comm.duplicate();
  expect(other->getRank() == comm.getRank() && other->getSize() == comm.getSize(), "a duplicate");
  int32_t a = comm.getRank(), b = -comm.getRank();
  std::vector<int32_t> as(comm.getSize()), bs(comm.getSize());
  auto bytes = static_cast<int64_t>(as.size() * 4);
  void *toA = memory.give(as.data(), bytes), *toB = memory.give(bs.data(), bytes);
  comm.allGather(memory.give(&a, 4), toA, 4, memory.where());
  other->allGather(memory.give(&b, 4), toB, 4, memory.where());
  memory.fetch(as.data(), toA, bytes);
  memory.fetch(bs.data(), toB, bytes);
  expect(as.back() == comm.getSize() - 1 && bs.back() == 1 - comm.getSize(), "both orders");
}

/// Whether `call` throws a CommError that holds `text`.
template <typename CallT> void expectError(CallT call, const std::string &text) {
  try {
    call();
  } catch (const CommError &error) {
    expect(std::string(error.what()).find(text) != std::string::npos,
           "'" + std::string(error.what()) + "' says '" + text + "'");
    return;
  }
  throw std::runtime_error("not so: an error that says '" + text + "'");
}

/// Calls that no communicator takes; nothing is sent.
inline void checkRefusals(Communicator &comm) {
  char byte = 0;
  expectError([&] { comm.broadcast(&byte, 1, comm.getSize()); }, "a broadcast by rank");
  expectError([&] { comm.allGather(&byte, &byte, -1); }, "-1 bytes");
  expectError([&] { comm.exchange({}, {}); }, "0 parts to send");
}

/// Calls on memory of one kind.
inline void checkMemory(Communicator &comm, Memory &memory) {
  for (int round = 0; round < 20; ++round)
    checkExchange(comm, round * 10, memory);
  checkExchange(comm, 200000, memory);
  checkAllGather(comm, memory);
  checkBroadcast(comm, memory);
  checkDuplicate(comm, memory);
}

/// All that a run without faults does; `device`: memory that the communicator carries besides.
inline void checkAll(Communicator &comm, Memory *device = nullptr) {
  Memory host;
  checkRefusals(comm);
  checkMemory(comm, host);
  if (device)
    checkMemory(comm, *device);
  else
    expectError([&] { comm.allGather(nullptr, nullptr, 0, {CommMemory::Kind::device, nullptr}); },
                "host memory only");
  checkRooms(comm);
  comm.barrier();
  expect(!comm.getError(), "no error");
}

} // namespace genrec::rt::conformance

#endif // GENREC_TEST_COMM_CONFORMANCE_H
