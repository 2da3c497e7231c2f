//===- nccl_test.cpp - Ranks as threads over the stand-in for NCCL --------===//

#include "streams_testing.h"

#include "genrec_rt/cuda/memory.h"

#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace genrec::rt::cuda::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 3;

/// What a rank works with.
struct Rank {
  int rank;
  ncclComm_t comm, other; ///< two communicators of the same ranks
  cudaStream_t stream;
  int *in, *out; ///< kRanks * 2 integers each; in[i] = 10 * rank + i
};

class Nccl : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override {
    simt::options() = {.seed = GetParam(), .devices = kRanks, .mayUseDefaultStream = true};
  }
  void TearDown() override {
    simt::clearError();
    simt::options() = {};
  }

  /// Runs `body(rank)` on a thread per rank; what is wrong with it, or "none". `ranks` may use
  /// fewer.
  template <class Body> std::string accusation(Body body) {
    ncclUniqueId ids[2];
    EXPECT_EQ(ncclGetUniqueId(&ids[0]), ncclSuccess);
    EXPECT_EQ(ncclGetUniqueId(&ids[1]), ncclSuccess);
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] { runRank(r, ids, body); });
    for (std::thread &thread : threads)
      thread.join();
    const std::string text = simt::errorMessage().empty() ? "none" : simt::errorMessage();
    simt::clearError();
    return text;
  }

  std::vector<int> results[kRanks];

private:
  template <class Body> void runRank(int r, const ncclUniqueId *ids, Body body) {
    Rank rank{r, nullptr, nullptr, nullptr, nullptr, nullptr};
    GENREC_CUDA_CHECK(cudaSetDevice(r));
    EXPECT_EQ(ncclCommInitRank(&rank.comm, kRanks, ids[0], r), ncclSuccess);
    EXPECT_EQ(ncclCommInitRank(&rank.other, kRanks, ids[1], r), ncclSuccess);
    try {
      GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
      std::vector<int> values(kRanks * 2);
      for (int i = 0; i < kRanks * 2; ++i)
        values[i] = 10 * r + i;
      Ints in(values), out(std::vector<int>(kRanks * 2, -1));
      rank.in = in.data;
      rank.out = out.data;
      body(rank);
      GENREC_CUDA_CHECK(cudaStreamSynchronize(rank.stream));
      results[r] = out.fetch();
    } catch (const CudaError &) {
    }
    (void)ncclCommDestroy(rank.comm);
    (void)ncclCommDestroy(rank.other);
    (void)cudaStreamDestroy(rank.stream);
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Nccl, testing::Range<uint64_t>(1, 5));

/// Every rank sends the r-th pair of its values to rank r.
void exchange(const Rank &rank, ncclComm_t comm) {
  (void)ncclGroupStart();
  for (int peer = 0; peer < kRanks; ++peer) {
    (void)ncclSend(rank.in + 2 * peer, 2, ncclInt32, peer, comm, rank.stream);
    (void)ncclRecv(rank.out + 2 * peer, 2, ncclInt32, peer, comm, rank.stream);
  }
  (void)ncclGroupEnd(); // another rank's error is seen here as well
}

TEST_P(Nccl, EveryRankSendsToEveryOther) {
  EXPECT_EQ(accusation([](const Rank &rank) {
              exchange(rank, rank.comm);
              launch(rank.stream, addTo, rank.out, 2 * kRanks, 100);
            }),
            "none");
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(results[r],
              host({100 + 2 * r, 101 + 2 * r, 110 + 2 * r, 111 + 2 * r, 120 + 2 * r, 121 + 2 * r}));
}

TEST_P(Nccl, Collectives) {
  EXPECT_EQ(accusation([](const Rank &rank) {
              ncclAllGather(rank.in, rank.out, 2, ncclInt32, rank.comm, rank.stream);
              ncclAllReduce(rank.out, rank.out, 2, ncclInt32, ncclSum, rank.other, rank.stream);
              ncclBroadcast(rank.in, rank.out + 2, 1, ncclInt32, 2, rank.comm, rank.stream);
            }),
            "none");
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(results[r], host({0, 3, 20, 11, 20, 21}));
}

TEST_P(Nccl, OneThreadForAllRanks) {
  ncclComm_t comms[kRanks];
  ASSERT_EQ(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
  std::vector<std::unique_ptr<Ints>> values;
  ncclGroupStart();
  for (int r = 0; r < kRanks; ++r) {
    GENREC_CUDA_CHECK(cudaSetDevice(r));
    values.push_back(std::make_unique<Ints>(host({r + 1})));
    ncclAllReduce(values[r]->data, values[r]->data, 1, ncclInt32, ncclSum, comms[r], nullptr);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    GENREC_CUDA_CHECK(cudaSetDevice(r));
    EXPECT_EQ(values[r]->fetch(), host({6}));
  }
  GENREC_CUDA_CHECK(cudaSetDevice(0));
  for (ncclComm_t comm : comms)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_P(Nccl, ASendOutsideOfAGroupWaitsForEver) {
  EXPECT_THAT(accusation([](const Rank &rank) {
                const int next = (rank.rank + 1) % kRanks, last = (rank.rank + 2) % kRanks;
                ncclSend(rank.in, 1, ncclInt32, next, rank.comm, rank.stream);
                ncclRecv(rank.out, 1, ncclInt32, last, rank.comm, rank.stream);
              }),
              AllOf(HasSubstr("waiting for ever: ncclSend in stream"), HasSubstr("on device 0"),
                    HasSubstr("nccl_test.cpp:")));
}

TEST_P(Nccl, CommunicatorsUsedInTwoOrdersWaitForEver) {
  EXPECT_THAT(accusation([](const Rank &rank) {
                const bool isFirst = rank.rank == 0;
                // Streams of their own do not help: one of the kernels may keep the other out.
                cudaStream_t second;
                GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
                ncclAllGather(rank.in, rank.out, 1, ncclInt32, isFirst ? rank.comm : rank.other,
                              rank.stream);
                ncclAllGather(rank.in, rank.out + 3, 1, ncclInt32, isFirst ? rank.other : rank.comm,
                              second);
                GENREC_CUDA_CHECK(cudaStreamDestroy(second));
              }),
              HasSubstr("waiting for ever: ncclAllGather in stream"));
}

/// A rank waits for the device where it gives memory back, which others take meanwhile: what it
/// waits for may need them.
TEST_P(Nccl, ARankGivesMemoryBackBeforeOthersHaveSent) {
  std::atomic<bool> gives = false;
  EXPECT_EQ(accusation([&](const Rank &rank) {
              DeviceArray<int> kept("kept"), more("more");
              kept.ensure(4, rank.stream);
              GENREC_CUDA_CHECK(cudaStreamSynchronize(rank.stream));
              if (rank.rank == 0) {
                exchange(rank, rank.comm);
                gives = true;
                return;
              }
              while (!gives)
                std::this_thread::yield();
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              more.ensure(4, rank.stream);
              exchange(rank, rank.comm);
            }),
            "none");
}

TEST_P(Nccl, CallsThatDoNotMatch) {
  EXPECT_THAT(
      accusation([](const Rank &rank) {
        ncclAllGather(rank.in, rank.out, rank.rank == 1 ? 2 : 1, ncclInt32, rank.comm, rank.stream);
      }),
      AllOf(HasSubstr("NCCL calls do not match: ncclAllGather of "), HasSubstr(" on rank 1")));
}

/// Unless NCCL was told not to read the memory of other devices of the process.
TEST_P(Nccl, MemoryOfAPoolIsOfOneDevice) {
  constexpr const char *kVariable = "NCCL_P2P_DIRECT_DISABLE";
  auto send = [](const Rank &rank) {
    int *pooled = nullptr;
    GENREC_CUDA_CHECK(cudaMallocAsync(&pooled, 8 * kRanks, rank.stream));
    GENREC_CUDA_CHECK(cudaMemsetAsync(pooled, 0, 8 * kRanks, rank.stream));
    exchange({rank.rank, rank.comm, rank.other, rank.stream, pooled, rank.out}, rank.comm);
    GENREC_CUDA_CHECK(cudaFreeAsync(pooled, rank.stream));
  };
  const char *given = std::getenv(kVariable);
  const std::string before = given ? given : "";
  unsetenv(kVariable);
  EXPECT_THAT(accusation(send), HasSubstr("memory of cudaMallocAsync, which the other devices"));
  setenv(kVariable, "1", 1);
  EXPECT_EQ(accusation(send), "none");
  if (given)
    setenv(kVariable, before.c_str(), 1);
  else
    unsetenv(kVariable);
}

TEST_P(Nccl, WhatIsReceivedIsReadTooEarly) {
  EXPECT_THAT(accusation([](const Rank &rank) {
                const TestStream second;
                exchange(rank, rank.comm);
                launch(second, addTo, rank.out, 2, 1);
                GENREC_CUDA_CHECK(cudaDeviceSynchronize());
              }),
              AllOf(HasSubstr("race between operations"), HasSubstr("NCCL group")));
}

TEST_P(Nccl, ARankThatAbortsIsNoticed) {
  std::atomic<int> noticed = 0;
  EXPECT_EQ(accusation([&](Rank &rank) {
              if (rank.rank == 0) {
                EXPECT_EQ(ncclCommAbort(rank.comm), ncclSuccess);
                rank.comm = nullptr;
                return;
              }
              ncclAllGather(rank.in, rank.out, 1, ncclInt32, rank.comm, rank.stream);
              ncclResult_t error = ncclSuccess;
              while (cudaStreamQuery(rank.stream) == cudaErrorNotReady && error == ncclSuccess) {
                EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &error), ncclSuccess);
                std::this_thread::yield();
              }
              noticed += error == ncclRemoteError;
              EXPECT_EQ(ncclCommAbort(rank.comm), ncclSuccess);
              rank.comm = nullptr;
            }),
            "none");
  EXPECT_EQ(noticed, 2);
}

} // namespace
} // namespace genrec::rt::cuda::test
