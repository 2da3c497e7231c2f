//===- nccl_connecting_test.cpp - Peers that NCCL waits for to connect ----===//
//
// Communicators are made, and ranks connected by their first exchange, while others may stall or
// fail: who waits for them ends with the reason, as soon as anybody knows it.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../Comm/device_memory.h"
#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

namespace genrec::rt::cuda::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

/// Of a rank that does not come: until another one has given up.
void sleepUntilFailed(Communicator &comm) {
  for (int i = 0; i < 300 && !comm.getError(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  if (!comm.getError())
    throw Error("nobody has given up");
}

/// What all ranks do before NCCL connects them, and nothing of that.
void comeToConnect(Communicator &host) {
  char id[128];
  runTogether(&host, [] {});
  host.broadcast(id, sizeof id, 0);
}

class NcclConnecting : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    simt::clearError();
    simt::options() = {};
  }

  /// Runs `body(host)` on each of `ranks` threads, with a device each; what it throws.
  template <class Body> std::string run(int32_t ranks, const Body &body) {
    simt::options() = {.seed = GetParam() + simt::defaultSeed() - 1, .devices = ranks};
    std::string thrown;
    const auto begin = std::chrono::steady_clock::now();
    try {
      runThreadRanks(ranks, [&](Communicator &host) {
        GENREC_CUDA_CHECK(cudaSetDevice(host.getRank()));
        host.setPatience(seconds(5));
        body(host);
      });
    } catch (const std::exception &error) {
      thrown = error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4)) << thrown;
    EXPECT_EQ(simt::communicatorCount(), 0) << "destroyed, or aborted where calls have no end";
    EXPECT_EQ(simt::errorMessage(), "");
    return thrown;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, NcclConnecting, testing::Range<uint64_t>(1, 5));

TEST_P(NcclConnecting, ARankThatStallsBeforeItIsNamed) {
  EXPECT_THAT(run(3,
                  [](Communicator &host) {
                    host.setPatience(milliseconds(100));
                    if (host.getRank() != 1)
                      return void(makeNcclComm(host));
                    comeToConnect(host);
                    sleepUntilFailed(host);
                  }),
              AnyOf("rank 0: waited 100 ms for rank 1 or 2, to connect GPUs",
                    "rank 2: waited 100 ms for rank 0 or 1, to connect GPUs"));
}

TEST_P(NcclConnecting, ARankThatFailsBeforeItIsHeard) {
  EXPECT_THAT(run(2,
                  [](Communicator &host) {
                    if (host.getRank() == 0)
                      return void(makeNcclComm(host));
                    comeToConnect(host);
                    std::this_thread::sleep_for(milliseconds(50));
                    throw Error("no rows in part-7.parquet");
                  }),
              HasSubstr("no rows in part-7.parquet"));
}

TEST_P(NcclConnecting, ARankThatStallsBeforeTheFirstExchangeIsNamed) {
  EXPECT_THAT(run(2,
                  [](Communicator &host) {
                    const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                    conformance::DeviceMemory memory;
                    comm->setPatience(milliseconds(100));
                    comm->setPurpose({"the rows", 37});
                    if (host.getRank() == 1)
                      return sleepUntilFailed(host);
                    conformance::checkExchange(*comm, 40, memory);
                  }),
              "rank 0: waited 100 ms for rank 1, which has not come to the rows of step 37");
}

TEST_P(NcclConnecting, ARankThatFailsBeforeTheFirstExchangeIsHeard) {
  EXPECT_THAT(run(2,
                  [](Communicator &host) {
                    const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                    conformance::DeviceMemory memory;
                    if (host.getRank() == 0)
                      return conformance::checkExchange(*comm, 40, memory);
                    std::this_thread::sleep_for(milliseconds(50));
                    comm->abort("no rows in part-7.parquet");
                  }),
              HasSubstr("rank 1: no rows in part-7.parquet"));
}

/// What ranks say on the first communicator ends what a duplicate waits for; and the other way
/// round for calls of that duplicate, which its rank does not forget either.
TEST_P(NcclConnecting, ADuplicateHearsOfBoth) {
  for (const bool isOfDuplicate : {false, true})
    EXPECT_THAT(run(2,
                    [&](Communicator &host) {
                      const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                      const std::unique_ptr<Communicator> other = comm->duplicate();
                      conformance::DeviceMemory memory;
                      if (host.getRank() == 0)
                        return conformance::checkExchange(*other, 40, memory);
                      std::this_thread::sleep_for(milliseconds(50));
                      (isOfDuplicate ? *other : *comm).abort("no rows");
                    }),
                HasSubstr("rank 1: no rows"));
}

/// Others may hear of an abort while NCCL connects them to the rank that aborts.
TEST_P(NcclConnecting, WhatWasSentBeforeADuplicatesAbortArrives) {
  EXPECT_EQ(run(2,
                [](Communicator &host) {
                  const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                  conformance::DeviceMemory memory;
                  for (int64_t i = 0; i < 20; ++i) {
                    const std::unique_ptr<Communicator> other = comm->duplicate();
                    int64_t sent = 100 * i + comm->getRank(), received = -1;
                    SendPart send[2];
                    ReceivePart receive[2];
                    const int32_t peer = 1 - comm->getRank();
                    send[peer] = {memory.give(&sent, 8), 8};
                    receive[peer] = {memory.give(&received, 8), 8};
                    other->exchange(send, receive, memory.where());
                    if (comm->getRank() == 1)
                      other->abort("no rows");
                    memory.fetch(&received, receive[peer].data, 8);
                    EXPECT_EQ(received, 100 * i + peer);
                    comm->barrier();
                  }
                }),
            "");
}

/// As patient as the communicator that it is of.
TEST_P(NcclConnecting, ADuplicateIsNotMadeAlone) {
  EXPECT_THAT(run(2,
                  [](Communicator &host) {
                    const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                    comm->setPatience(milliseconds(100));
                    if (host.getRank() == 0)
                      return void(comm->duplicate());
                    const std::unique_ptr<Communicator> other = host.duplicate();
                    comeToConnect(*other);
                    sleepUntilFailed(*other);
                  }),
              HasSubstr("rank 0: waited 100 ms for rank 1, to connect GPUs"));
}

/// Another thread of the rank ends what it waits for.
TEST_P(NcclConnecting, AnAbortOfTheSameRankEndsIt) {
  EXPECT_THAT(run(2,
                  [](Communicator &host) {
                    const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                    conformance::DeviceMemory memory;
                    if (host.getRank() == 1)
                      return sleepUntilFailed(host);
                    std::thread thread([&] {
                      std::this_thread::sleep_for(milliseconds(50));
                      comm->abort("no space is left");
                    });
                    try {
                      conformance::checkExchange(*comm, 40, memory);
                    } catch (...) {
                      thread.join();
                      throw;
                    }
                    thread.join();
                  }),
              HasSubstr("rank 0: no space is left"));
}

/// A rank that comes late, and one that has waited, have what was sent.
TEST_P(NcclConnecting, ALateRankIsWaitedFor) {
  EXPECT_EQ(run(3,
                [](Communicator &host) {
                  if (host.getRank() == 1)
                    std::this_thread::sleep_for(milliseconds(30));
                  const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                  conformance::DeviceMemory memory;
                  if (host.getRank() == 2)
                    std::this_thread::sleep_for(milliseconds(30));
                  for (int i = 0; i < 5; ++i)
                    conformance::checkExchange(*comm, 40, memory);
                }),
            "");
}

/// Where NCCL is told to block, as where it is too old for anything else.
TEST_P(NcclConnecting, CallsMayBlock) {
  setenv("NCCL_COMM_BLOCKING", "1", 1);
  EXPECT_EQ(run(2,
                [](Communicator &host) {
                  const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                  conformance::DeviceMemory memory;
                  conformance::checkAll(*comm, &memory);
                }),
            "");
  unsetenv("NCCL_COMM_BLOCKING");
}

} // namespace
} // namespace genrec::rt::cuda::test
