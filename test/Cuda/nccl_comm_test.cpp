//===- nccl_comm_test.cpp - The communicator over NCCL, ranks as threads --===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../Comm/device_memory.h"
#include "genrec_rt/forwarding_comm.h"
#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <climits>

namespace genrec::rt::cuda::test {
namespace {

using testing::HasSubstr;

/// Of two ranks: sends so many bytes to the other one, and expects so many. Where it does not wait
/// for the device, nobody has looked for errors since.
void exchangeWithOther(Communicator &comm, conformance::Memory &memory, int64_t sent,
                       int64_t expected, bool waits = true) {
  std::vector<char> out(static_cast<size_t>(sent)), in(static_cast<size_t>(expected));
  std::vector<SendPart> send(2);
  std::vector<ReceivePart> receive(2);
  const int32_t other = 1 - comm.getRank();
  send[other] = {memory.give(out.data(), sent), sent};
  receive[other] = {memory.give(in.data(), expected), expected};
  comm.exchange(send, receive, memory.where());
  if (waits)
    memory.fetch(in.data(), receive[other].data, expected);
}

/// Two ranks send to each other: NCCL has connected them. When rank 1 goes on, nothing is under
/// way any more.
void connect(Communicator &comm, conformance::Memory &memory) {
  exchangeWithOther(comm, memory, 8, 8);
  comm.barrier();
  if (comm.getRank() == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

/// Of a rank that does not come: until another one has given up, or for so long.
void sleepUntilFailed(Communicator &comm,
                      std::chrono::milliseconds most = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!comm.getError() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

class NcclComm : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    simt::clearError();
    simt::options() = {};
  }

  /// Runs `body(host)` on each of `ranks` threads, with a device each; what it throws.
  template <class Body> std::string runOnHosts(int32_t ranks, const Body &body) {
    simt::options() = {.seed = GetParam(), .devices = ranks};
    std::string thrown;
    try {
      runThreadRanks(ranks, [&](Communicator &host) {
        GENREC_CUDA_CHECK(cudaSetDevice(host.getRank()));
        body(host);
      });
    } catch (const std::exception &error) {
      thrown = error.what();
    }
    EXPECT_EQ(simt::communicatorCount(), 0) << "destroyed, or aborted where calls have no end";
    EXPECT_EQ(simt::errorMessage(), "");
    return thrown;
  }
  /// The same of `body(comm, memory)`.
  template <class Body> std::string run(int32_t ranks, const Body &body) {
    return runOnHosts(ranks, [&](Communicator &host) {
      std::unique_ptr<Communicator> comm = makeNcclComm(host);
      conformance::DeviceMemory memory;
      body(*comm, memory);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, NcclComm, testing::Range<uint64_t>(1, 4));

TEST_P(NcclComm, Conforms) {
  for (int32_t ranks : {2, 3})
    EXPECT_EQ(run(ranks, [](Communicator &comm,
                            conformance::Memory &memory) { conformance::checkAll(comm, &memory); }),
              "");
}

TEST_P(NcclComm, AnAbortEndsTheWaitsOfOthersWithItsReason) {
  EXPECT_THAT(run(3,
                  [](Communicator &comm, conformance::Memory &memory) {
                    conformance::checkExchange(comm, 40, memory);
                    if (comm.getRank() == 1) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(50));
                      return comm.abort("no rows in part-7.parquet");
                    }
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("rank 1: no rows in part-7.parquet"));
}

TEST_P(NcclComm, APeerThatDoesNotComeIsNoticed) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    connect(comm, memory);
                    comm.setPatience(std::chrono::milliseconds(300));
                    comm.setPurpose({"the rows", 37});
                    if (comm.getRank() == 1)
                      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
                    else
                      conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("which has not come to the rows of step 37"));
}

/// The communicator that waits says so, whichever was called first.
TEST_P(NcclComm, EachCommunicatorIsWatched) {
  for (const bool waitsForFirst : {false, true})
    EXPECT_THAT(run(2,
                    [&](Communicator &comm, conformance::Memory &memory) {
                      const std::unique_ptr<Communicator> other = comm.duplicate();
                      conformance::checkExchange(comm, 40, memory);
                      conformance::checkExchange(*other, 40, memory);
                      Communicator &waiting = waitsForFirst ? comm : *other;
                      for (Communicator *each : {&comm, other.get()})
                        each->setPatience(std::chrono::milliseconds(each == &waiting ? 100 : 2000));
                      waiting.setPurpose({"the sums", 37});
                      if (comm.getRank() == 1)
                        sleepUntilFailed(waiting);
                      else
                        conformance::checkExchange(waiting, 40, memory);
                    }),
                HasSubstr("which has not come to the sums of step 37"));
}

/// Whose exchanges are done waits for nobody, however long another one is waited for.
TEST_P(NcclComm, PatienceIsThatOfTheWait) {
  EXPECT_EQ(run(2,
                [](Communicator &comm, conformance::Memory &memory) {
                  const std::unique_ptr<Communicator> other = comm.duplicate();
                  conformance::DeviceMemory others; // in a stream of its own
                  connect(comm, memory);
                  connect(*other, others);
                  comm.setPatience(std::chrono::milliseconds(1));
                  if (comm.getRank() == 1)
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  conformance::checkExchange(*other, 40, others);
                }),
            "");
}

/// While one of a thread's communicators leaves, another one's exchange is under way.
TEST_P(NcclComm, WhoStaysIsWatched) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    std::unique_ptr<Communicator> other = comm.duplicate();
                    connect(comm, memory);
                    comm.setPatience(std::chrono::milliseconds(100));
                    if (comm.getRank() == 0) {
                      comm.setPurpose({"the sums", 37});
                      exchangeWithOther(comm, memory, 8, 8, /*waits=*/false);
                    }
                    other.reset();
                    if (comm.getRank() == 1)
                      return sleepUntilFailed(comm, std::chrono::seconds(4));
                    waitForStream(static_cast<cudaStream_t>(memory.where().stream));
                  }),
              HasSubstr("which has not come to the sums of step 37"));
}

/// As where a process has ended without a word: nobody comes, and only NCCL knows.
TEST_P(NcclComm, WhatNcclFindsOutEndsTheWait) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    connect(comm, memory);
                    comm.setPatience(std::chrono::milliseconds(3000));
                    if (comm.getRank() == 0)
                      return conformance::checkExchange(comm, 40, memory);
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    simt::failCommunicators();
                    sleepUntilFailed(comm);
                  }),
              HasSubstr("rank 0: an exchange failed"));
}

/// Hears of an error when it has been asked so many times.
class HearsLate final : public ForwardingComm {
public:
  HearsLate(Communicator &inner, int questions) : ForwardingComm(inner), questions(questions) {}
  /// From now on.
  void hear() { questions = 0; }
  std::optional<std::string> getError() override {
    std::optional<std::string> error = ForwardingComm::getError();
    return error && questions-- > 0 ? std::nullopt : error;
  }

private:
  int questions;
};

/// A rank whose host has failed calls NCCL no more, which need not notice.
TEST_P(NcclComm, WhatAHostHearsEndsTheWait) {
  std::atomic<bool> hasEnded = false;
  EXPECT_THAT(runOnHosts(2,
                         [&](Communicator &inner) {
                           HearsLate host(inner, INT_MAX);
                           const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                           conformance::DeviceMemory memory;
                           connect(*comm, memory);
                           comm->setPatience(std::chrono::milliseconds(1000));
                           if (host.getRank() == 1)
                             inner.abort("no rows");
                           sleepUntilFailed(inner);
                           for (int i = 0; host.getRank() == 1 && i < 1000 && !hasEnded; ++i)
                             std::this_thread::sleep_for(std::chrono::milliseconds(10));
                           if (host.getRank() == 1)
                             return;
                           try {
                             exchangeWithOther(*comm, memory, 8, 8, /*waits=*/false);
                             host.hear();
                             waitForStream(static_cast<cudaStream_t>(memory.where().stream));
                           } catch (...) {
                             hasEnded = true;
                             throw;
                           }
                         }),
              HasSubstr("rank 1: no rows"));
}

/// NCCL says that a rank is gone before anybody has heard why.
TEST_P(NcclComm, TheReasonIsToldRatherThanWhatFollows) {
  EXPECT_THAT(runOnHosts(2,
                         [](Communicator &inner) {
                           HearsLate host(inner, 2); // before the exchange, and while it waits
                           const std::unique_ptr<Communicator> comm = makeNcclComm(host);
                           conformance::DeviceMemory memory;
                           connect(*comm, memory);
                           if (host.getRank() == 1)
                             return comm->abort("no rows");
                           sleepUntilFailed(inner);
                           std::this_thread::sleep_for(std::chrono::milliseconds(50));
                           exchangeWithOther(*comm, memory, 8, 8);
                         }),
              HasSubstr("rank 1: no rows"));
}

/// What was queued for a rank that has failed since has no end, and nobody waits for that.
TEST_P(NcclComm, WhoLeavesBehindAnAbortIsNotHeldUp) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    connect(comm, memory);
                    if (comm.getRank() == 0)
                      exchangeWithOther(comm, memory, 8, 8, /*waits=*/false);
                    comm.barrier();
                    if (comm.getRank() == 1)
                      comm.abort("no rows");
                    sleepUntilFailed(comm);
                  }),
              testing::AnyOf("", HasSubstr("rank 1: no rows")));
}

/// Another rank keeps its communicator until this one has left.
TEST_P(NcclComm, WhoLeavesByAnExceptionIsNotHeldUp) {
  std::atomic<bool> hasLeft = false;
  EXPECT_THAT(run(2,
                  [&](Communicator &comm, conformance::Memory &) {
                    try {
                      const std::unique_ptr<Communicator> other = comm.duplicate();
                      comm.barrier(); // both are connected
                      if (comm.getRank() == 1)
                        throw Error("no rows");
                      for (int i = 0; i < 500 && !hasLeft; ++i)
                        std::this_thread::sleep_for(std::chrono::milliseconds(10));
                      EXPECT_TRUE(hasLeft);
                    } catch (const Error &) {
                      hasLeft = true;
                      throw;
                    }
                  }),
              HasSubstr("no rows"));
}

/// What one communicator has under way waits for what another one has.
TEST_P(NcclComm, AllThatARankWaitsForEnds) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    const std::unique_ptr<Communicator> other = comm.duplicate();
                    connect(comm, memory);
                    connect(*other, memory);
                    if (comm.getRank() == 1) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(100));
                      return comm.abort("no rows");
                    }
                    exchangeWithOther(*other, memory, 8, 8, /*waits=*/false);
                    exchangeWithOther(comm, memory, 8, 8);
                  }),
              HasSubstr("rank 1: no rows"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_P(NcclComm, NobodyExchangesBehindAnAbort) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    if (comm.getRank() == 1) {
                      comm.abort("no rows");
                      std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    }
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("rank 1: no rows"));
}

TEST_P(NcclComm, RanksThatDoNotAgreeAreNamedWhereThatIsChecked) {
  setenv("GENREC_COMM_CHECK", "1", 1);
  EXPECT_EQ(run(2, [](Communicator &comm,
                      conformance::Memory &memory) { conformance::checkAll(comm, &memory); }),
            "");
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPurpose({"the keys", 36 + static_cast<uint64_t>(comm.getRank())});
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("the keys of step 37"));
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPurpose({comm.getRank() == 0 ? "the keys" : "the rows", 5});
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("the keys of step 5"));
  // Of what is longer its begin is told.
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPurpose({"the rows of a lookup whose ids the step makes",
                                     36 + static_cast<uint64_t>(comm.getRank())});
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("the rows of a lookup whose ids the step of step 37"));
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPurpose({"the sums", 8});
                    exchangeWithOther(comm, memory, 8, comm.getRank() == 0 ? 8 : 16);
                  }),
              HasSubstr("rank 0 sends 8 bytes to rank 1, which expects 16"));
  unsetenv("GENREC_COMM_CHECK");
}

TEST_P(NcclComm, ARankSendsItselfWhatItExpects) {
  const auto body = [](Communicator &comm, conformance::Memory &memory) {
    std::vector<char> bytes(16);
    auto *own = static_cast<char *>(memory.give(bytes.data(), 16));
    const SendPart send[] = {{own, 8}};
    const ReceivePart receive[] = {{own + 8, 4}};
    try {
      comm.exchange(send, receive, memory.where());
    } catch (const CommError &error) {
      EXPECT_TRUE(error.isOwn);
      throw;
    }
  };
  EXPECT_THAT(run(1, body), HasSubstr("rank 0 sends itself 8 bytes and expects 4"));
}

TEST_P(NcclComm, ADuplicateWaitsAsLong) {
  EXPECT_EQ(run(2,
                [](Communicator &comm, conformance::Memory &memory) {
                  comm.setPatience(std::chrono::milliseconds(4321));
                  const std::unique_ptr<Communicator> other = comm.duplicate();
                  EXPECT_EQ(other->getPatience(), std::chrono::milliseconds(4321));
                  conformance::checkExchange(*other, 40, memory);
                  conformance::checkExchange(comm, 40, memory);
                }),
            "");
}

} // namespace
} // namespace genrec::rt::cuda::test
