//===- nccl_progress_test.cpp - Calls of NCCL that go on behind their return ===//

#include "streams_testing.h"

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace genrec::rt::cuda::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NcclProgress : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override {
    simt::options() = {.seed = GetParam(), .devices = 2};
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(simt::communicatorCount(), 0);
    simt::clearError();
    simt::options() = {};
  }

  /// What a call returned, behind whatever NCCL did meanwhile.
  static ncclResult_t end(ncclComm_t comm, ncclResult_t result) {
    while (result == ncclInProgress) {
      std::this_thread::yield();
      EXPECT_EQ(ncclCommGetAsyncError(comm, &result), ncclSuccess);
    }
    return result;
  }

  ncclResult_t make(int rank, ncclComm_t &comm) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return ncclCommInitRankConfig(&comm, 2, id, rank, &config);
  }

  /// Runs `body(rank, comm, stream, two integers)` on two threads whose communicators are made; it
  /// ends them.
  template <class Body> void runBoth(const Body &body) {
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        GENREC_CUDA_CHECK(cudaSetDevice(rank));
        ncclComm_t comm = nullptr;
        const ncclResult_t made = make(rank, comm);
        EXPECT_EQ(end(comm, made), ncclSuccess);
        cudaStream_t stream;
        GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        Ints values(std::vector<int>{rank + 1, 0});
        for (++ready; ready < 2;)
          std::this_thread::yield();
        body(rank, comm, stream, values.data);
        (void)cudaStreamDestroy(stream);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// To the other rank the first integer, from there the second.
  static ncclResult_t exchange(int rank, ncclComm_t comm, cudaStream_t stream, int *values) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(values, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(values + 1, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
    return ncclGroupEnd();
  }

  ncclUniqueId id;
};
INSTANTIATE_TEST_SUITE_P(Seeds, NcclProgress, testing::Range<uint64_t>(1, 5));

TEST_P(NcclProgress, SomeCallsAreDoneAtOnceAndSomeLater) {
  constexpr int kTimes = 40;
  int late[2] = {};
  runBoth([&](int rank, ncclComm_t comm, cudaStream_t stream, int *values) {
    for (int i = 0; i < kTimes; ++i) {
      const ncclResult_t result = exchange(rank, comm, stream, values);
      late[rank] += result == ncclInProgress;
      EXPECT_EQ(end(comm, result), ncclSuccess);
    }
    int received = 0;
    GENREC_CUDA_CHECK(cudaMemcpyAsync(&received, values + 1, 4, cudaMemcpyDeviceToHost, stream));
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(received, 2 - rank);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  for (const int times : late)
    EXPECT_THAT(times, AllOf(testing::Gt(0), testing::Lt(kTimes)));
  EXPECT_EQ(simt::errorMessage(), "");
}

/// Nobody is made, or connected, before the other one has come.
TEST_P(NcclProgress, PeersAreWaitedFor) {
  std::atomic<bool> hasLooked = false;
  runBoth([&](int rank, ncclComm_t comm, cudaStream_t stream, int *values) {
    while (rank == 1 && !hasLooked)
      std::this_thread::yield();
    ncclResult_t result = exchange(rank, comm, stream, values);
    for (int i = 0; rank == 0 && i < 20; ++i) {
      EXPECT_EQ(result, ncclInProgress);
      EXPECT_EQ(ncclCommGetAsyncError(comm, &result), ncclSuccess);
    }
    hasLooked = true;
    EXPECT_EQ(end(comm, result), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  EXPECT_EQ(simt::errorMessage(), "");
}

TEST_P(NcclProgress, OneThatIsNotMadeTakesNoCalls) {
  for (const bool isDestroyed : {false, true}) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(make(0, comm), ncclInProgress);
    int *values = nullptr;
    EXPECT_EQ(isDestroyed ? ncclCommDestroy(comm)
                          : ncclAllGather(values, values, 0, ncclInt32, comm, nullptr),
              ncclInvalidArgument);
    EXPECT_EQ(simt::errorMessage(), std::string(isDestroyed ? "ncclCommDestroy" : "ncclAllGather") +
                                        " of a communicator that is still in progress");
    simt::clearError();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }
}

/// It might come before the group, and behind it.
TEST_P(NcclProgress, WorkThatIsQueuedMeanwhileIsAccused) {
  std::atomic<bool> hasLooked = false;
  runBoth([&](int rank, ncclComm_t comm, cudaStream_t stream, int *values) {
    if (rank == 0) {
      EXPECT_EQ(exchange(rank, comm, stream, values), ncclInProgress);
      cudaEvent_t event;
      GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      (void)cudaEventRecord(event, stream);
      EXPECT_THAT(simt::errorMessage(),
                  AllOf(HasSubstr("an event in stream"), HasSubstr("nccl_progress_test.cpp:"),
                        HasSubstr("NCCL is still in progress with a group for that stream")));
      simt::clearError();
      (void)cudaEventDestroy(event);
      hasLooked = true;
    }
    while (!hasLooked)
      std::this_thread::yield();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

/// The call, or a question behind it, says that a group has failed.
TEST_P(NcclProgress, FailuresMayComeLater) {
  int atOnce = 0, later = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    std::atomic<bool> hasLooked = false;
    runBoth([&](int rank, ncclComm_t comm, cudaStream_t stream, int *values) {
      if (rank == 0) {
        simt::failGroup(0, 1);
        const ncclResult_t result = exchange(rank, comm, stream, values);
        atOnce += result == ncclSystemError;
        later += result == ncclInProgress;
        EXPECT_EQ(end(comm, result), ncclSystemError);
        EXPECT_STREQ(ncclGetLastError(comm), "a group that is to fail");
        hasLooked = true;
      }
      while (!hasLooked)
        std::this_thread::yield();
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
  }
  EXPECT_EQ(atOnce + later, 20);
  EXPECT_GT(later, 0);
}

/// Ranks that are processes, each of which has one device, meet over sockets; here in one process.
TEST_P(NcclProgress, ProcessesMeetMeanwhile) {
  simt::options().devices = 1;
  ncclComm_t first = nullptr, second = nullptr;
  EXPECT_EQ(make(0, first), ncclInProgress);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ncclResult_t result = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(first, &result), ncclSuccess);
  EXPECT_EQ(result, ncclInProgress);
  EXPECT_EQ(make(1, second), ncclInProgress);
  EXPECT_EQ(end(first, ncclInProgress), ncclSuccess);
  EXPECT_EQ(end(second, ncclInProgress), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(first), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
  // Nobody comes.
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    EXPECT_EQ(make(rank, first), ncclInProgress);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ncclCommAbort(first), ncclSuccess);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
  EXPECT_EQ(simt::errorMessage(), "");
}

} // namespace
} // namespace genrec::rt::cuda::test
