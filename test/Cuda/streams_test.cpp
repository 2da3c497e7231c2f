//===- streams_test.cpp - The emulated device's queues catch wrong hosts ---===//

#include "streams_testing.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

namespace genrec::rt::cuda::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Seeds, Streams, testing::Range<uint64_t>(1, 9));

//===----------------------------------------------------------------------===//
// Right hosts
//===----------------------------------------------------------------------===//

TEST_P(Streams, EventsOrderWork) {
  Ints in(host({1, 2, 3, 4})), out(host({0, 0, 0, 0}));
  EXPECT_EQ(accusation([&] {
              launch(first, addTo, in.data, 4, 10);
              GENREC_CUDA_CHECK(cudaEventRecord(event, first));
              GENREC_CUDA_CHECK(cudaStreamWaitEvent(second, event));
              launch(second, copyInts, in.data, out.data, 4);
              GENREC_CUDA_CHECK(cudaStreamSynchronize(second));
            }),
            "none");
  EXPECT_EQ(out.fetch(), host({11, 12, 13, 14}));
}

TEST_P(Streams, AWaitIsForWhatWasRecordedBefore) {
  Ints data(host({1, 1}));
  // The event is recorded again after the wait: that one is not waited for, and need not be.
  EXPECT_EQ(accusation([&] {
              launch(first, addTo, data.data, 2, 1);
              GENREC_CUDA_CHECK(cudaEventRecord(event, first));
              GENREC_CUDA_CHECK(cudaStreamWaitEvent(second, event));
              GENREC_CUDA_CHECK(cudaEventRecord(event, first));
              launch(second, addTo, data.data, 2, 1);
            }),
            "none");
  EXPECT_EQ(data.fetch(), host({3, 3}));
}

TEST_P(Streams, TheDefaultStreamWaitsForBlockingStreamsOnly) {
  cudaStream_t blocking;
  GENREC_CUDA_CHECK(cudaStreamCreate(&blocking));
  Ints data(host({1}));
  EXPECT_EQ(accusation([&] {
              launch(blocking, addTo, data.data, 1, 1);
              launch(nullptr, addTo, data.data, 1, 1);
              launch(blocking, addTo, data.data, 1, 1);
            }),
            "none");
  EXPECT_EQ(data.fetch(), host({4}));
  EXPECT_THAT(accusation([&] {
                launch(nullptr, addTo, data.data, 1, 1);
                launch(first, addTo, data.data, 1, 1);
              }),
              HasSubstr("race between operations: kernel"));
  GENREC_CUDA_CHECK(cudaStreamDestroy(blocking));
}

TEST_P(Streams, NeighboursMayBeWrittenAtOnce) {
  Ints data(host({0, 0, 0, 0}));
  EXPECT_EQ(accusation([&] {
              launch(first, addTo, data.data, 2, 1);
              launch(second, addTo, data.data + 2, 2, 2);
              GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
              GENREC_CUDA_CHECK(cudaStreamSynchronize(second));
            }),
            "none");
  EXPECT_EQ(data.fetch(), host({1, 1, 2, 2}));
}

TEST_P(Streams, PinnedSlotsInTurn) {
  constexpr int kCount = 1500;
  Pinned slots(2 * kCount);
  Ints data(std::vector<int>(kCount, 0)), sums(std::vector<int>(kCount, 0));
  cudaEvent_t read[2];
  for (cudaEvent_t &e : read)
    GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  // Slots are not whole pages: the host writes one beside what a copy reads.
  EXPECT_EQ(accusation([&] {
              for (int step = 0; step < 6; ++step) {
                int *slot = slots.data + step % 2 * kCount;
                GENREC_CUDA_CHECK(cudaEventSynchronize(read[step % 2]));
                for (int i = 0; i < kCount; ++i)
                  slot[i] = step;
                GENREC_CUDA_CHECK(
                    cudaMemcpyAsync(data.data, slot, kCount * 4, cudaMemcpyHostToDevice, first));
                GENREC_CUDA_CHECK(cudaEventRecord(read[step % 2], first));
                launch(first, accumulate, data.data, sums.data, kCount);
              }
              GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
            }),
            "none");
  EXPECT_EQ(sums.fetch(), std::vector<int>(kCount, 15));
  for (cudaEvent_t e : read)
    GENREC_CUDA_CHECK(cudaEventDestroy(e));
}

TEST_P(Streams, PageableMemoryIsReadAtOnce) {
  Ints data(host({0, 0}));
  std::vector<int> values = host({5, 6}), back = host({0, 0});
  EXPECT_EQ(accusation([&] {
              GENREC_CUDA_CHECK(
                  cudaMemcpyAsync(data.data, values.data(), 8, cudaMemcpyHostToDevice, first));
              values = host({0, 0});
              GENREC_CUDA_CHECK(
                  cudaMemcpyAsync(back.data(), data.data, 8, cudaMemcpyDeviceToHost, first));
              EXPECT_EQ(back, host({5, 6}));
            }),
            "none");
}

TEST_P(Streams, QueriesEndAndFunctionsRunInOrder) {
  Ints data(host({1}));
  Pinned result(1);
  struct Called {
    int *from, value;
  } called{result.data, 0};
  EXPECT_EQ(accusation([&] {
              launch(first, addTo, data.data, 1, 6);
              GENREC_CUDA_CHECK(
                  cudaMemcpyAsync(result.data, data.data, 4, cudaMemcpyDeviceToHost, first));
              GENREC_CUDA_CHECK(cudaLaunchHostFunc(
                  first,
                  [](void *at) {
                    auto *to = static_cast<Called *>(at);
                    to->value = *to->from;
                    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorNotPermitted);
                  },
                  &called));
              GENREC_CUDA_CHECK(cudaEventRecord(event, first));
              while (cudaEventQuery(event) == cudaErrorNotReady) {
              }
            }),
            "none");
  EXPECT_EQ(called.value, 7);
  EXPECT_EQ(*result.data, 7);
}

TEST_P(Streams, EventsMeasureTime) {
  cudaEvent_t start, end;
  GENREC_CUDA_CHECK(cudaEventCreate(&start));
  GENREC_CUDA_CHECK(cudaEventCreate(&end));
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  GENREC_CUDA_CHECK(cudaEventRecord(start, first));
  GENREC_CUDA_CHECK(cudaEventRecord(end, first));
  GENREC_CUDA_CHECK(cudaEventSynchronize(end));
  GENREC_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
  GENREC_CUDA_CHECK(cudaEventDestroy(start));
  GENREC_CUDA_CHECK(cudaEventDestroy(end));
}

TEST(StreamOrders, AreManyAndAllLegal) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    simt::options() = {.seed = seed, .mayUseDefaultStream = true};
    cudaStream_t streams[3];
    static std::vector<int> order;
    order.clear();
    static int numbers[6] = {0, 1, 2, 3, 4, 5};
    for (cudaStream_t &stream : streams)
      GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 6; ++i)
      GENREC_CUDA_CHECK(cudaLaunchHostFunc(
          streams[i % 3], [](void *number) { order.push_back(*static_cast<int *>(number)); },
          &numbers[i]));
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    ASSERT_EQ(order.size(), 6u);
    for (int i = 0; i < 3; ++i)
      EXPECT_LT(std::find(order.begin(), order.end(), i),
                std::find(order.begin(), order.end(), i + 3));
    orders.insert(order);
    for (cudaStream_t stream : streams)
      GENREC_CUDA_CHECK(cudaStreamDestroy(stream));
  }
  simt::options() = {};
  EXPECT_GE(orders.size(), 10u);
}

//===----------------------------------------------------------------------===//
// Wrong hosts
//===----------------------------------------------------------------------===//

TEST_P(Streams, AMissingWait) {
  Ints in(host({1, 2})), out(host({0, 0}));
  EXPECT_THAT(accusation([&] {
                launch(first, addTo, in.data, 2, 1);
                GENREC_CUDA_CHECK(cudaEventRecord(event, first));
                launch(second, copyInts, in.data, out.data, 2);
              }),
              AllOf(HasSubstr("race between operations"), HasSubstr("addTo in stream "),
                    HasSubstr("copyInts in stream "), HasSubstr("streams_test.cpp:"),
                    HasSubstr("no stream, event or waiting orders them")));
}

TEST_P(Streams, AnEventRecordedBeforeTheWork) {
  Ints in(host({1, 2})), out(host({0, 0}));
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(cudaEventRecord(event, first));
                launch(first, addTo, in.data, 2, 1);
                GENREC_CUDA_CHECK(cudaStreamWaitEvent(second, event));
                launch(second, copyInts, in.data, out.data, 2);
              }),
              HasSubstr("race between operations"));
}

TEST_P(Streams, AWriteOfWhatIsRead) {
  Ints in(host({1, 2})), out(host({0, 0}));
  EXPECT_THAT(accusation([&] {
                launch(first, copyInts, in.data, out.data, 2);
                GENREC_CUDA_CHECK(cudaMemsetAsync(in.data, 0, 8, second));
              }),
              AllOf(HasSubstr("fill in stream"), HasSubstr("copyInts in stream")));
}

TEST_P(Streams, PageableCopiesAreNotDoneWhenCudaMemcpyReturns) {
  Ints out(host({0, 0}));
  std::vector<int> values = host({1, 2});
  int *in = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&in, 8));
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(cudaMemcpy(in, values.data(), 8, cudaMemcpyHostToDevice));
                launch(first, copyInts, in, out.data, 2);
              }),
              testing::AnyOf(HasSubstr("race between operations"),
                             HasSubstr("uninitialised device memory")));
  cudaFree(in);
}

TEST_P(Streams, WhatTheHostWritesIntoPinnedMemoryIsInitialised) {
  Pinned piece(1);
  Ints out(host({0}));
  int *in = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&in, 4));
  EXPECT_EQ(accusation([&] {
              // Room of a capacity behind the rows that there are, say.
              GENREC_CUDA_CHECK(cudaMemcpyAsync(piece.data, in, 4, cudaMemcpyDeviceToHost, first));
              GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
              piece.data[0] = 7;
              GENREC_CUDA_CHECK(cudaMemcpyAsync(in, piece.data, 4, cudaMemcpyHostToDevice, first));
              launch(first, copyInts, in, out.data, 1);
            }),
            "none");
  cudaFree(in);
}

TEST_P(Streams, APinnedBufferWrittenWhileACopyReadsIt) {
  Pinned source(4000);
  Ints data(std::vector<int>(4000, 0));
  EXPECT_THAT(
      accusation([&] {
        GENREC_CUDA_CHECK(
            cudaMemcpyAsync(data.data, source.data, 16000, cudaMemcpyHostToDevice, first));
        EXPECT_EQ(source.data[3], 0); // reading is allowed
        source.data[3] = 1;
      }),
      AllOf(HasSubstr("race in pinned memory: the host writes at byte 12 of an allocation of "
                      "16000 bytes at streams_test.cpp:"),
            HasSubstr("which copy in stream"), HasSubstr("reads: the host has not waited")));
}

TEST_P(Streams, ManyBytesCopiedIntoPagesInUse) {
  Pinned buffer(1 << 14);
  Ints data(std::vector<int>(64, 0));
  std::vector<int> values((1 << 14) - 64);
  std::iota(values.begin(), values.end(), 1);
  auto copyIn = [&](size_t to) {
    std::memcpy(buffer.data + to, values.data(), values.size() * sizeof(int));
  };
  auto startCopyOf = [&](size_t from) {
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(data.data, buffer.data + from, 256, cudaMemcpyHostToDevice, first));
  };
  EXPECT_EQ(accusation([&] {
              startCopyOf(0);
              copyIn(64);
              EXPECT_TRUE(std::equal(values.begin(), values.end(), buffer.data + 64));
            }),
            "none");
  EXPECT_THAT(accusation([&] {
                startCopyOf(512);
                copyIn(0);
              }),
              HasSubstr("race in pinned memory: the host writes at byte 2048 of an allocation"));
}

TEST_P(Streams, APinnedResultReadBeforeItIsThere) {
  Pinned result(10);
  Ints data(std::vector<int>(10, 3));
  volatile int sum = 0;
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(
                    cudaMemcpyAsync(result.data, data.data, 20, cudaMemcpyDeviceToHost, first));
                sum = result.data[5]; // beside it
                EXPECT_EQ(simt::errorMessage(), "");
                sum = result.data[4];
              }),
              AllOf(HasSubstr("race in pinned memory: the host reads at byte 16"),
                    HasSubstr("writes: the host has not waited")));
}

TEST_P(Streams, APinnedResultOfAKernelReadBeforeItIsThere) {
  Pinned result(10);
  Ints data(std::vector<int>(10, 3));
  volatile int sum = 0;
  EXPECT_EQ(accusation([&] {
              launch(first, copyInts, data.data, result.data, 5);
              GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
              EXPECT_EQ(result.data[4], 3);
            }),
            "none");
  EXPECT_THAT(accusation([&] {
                launch(first, copyInts, data.data, result.data, 5);
                GENREC_CUDA_CHECK(cudaStreamSynchronize(second));
                runEverything();
                sum = result.data[5];
                EXPECT_EQ(simt::errorMessage(), "");
                sum = result.data[4];
              }),
              HasSubstr("race in pinned memory: the host reads at byte 16"));
}

TEST_P(Streams, RegisteredMemoryIsWatched) {
  constexpr size_t kBytes = 3 * 4096;
  auto *memory = static_cast<char *>(std::aligned_alloc(4096, kBytes));
  std::memset(memory, 0, kBytes);
  Ints data(std::vector<int>(kBytes / 4, 0));
  GENREC_CUDA_CHECK(cudaHostRegister(memory, kBytes, cudaHostRegisterDefault));
  EXPECT_EQ(cudaHostRegister(memory, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(
                    cudaMemcpyAsync(data.data, memory, kBytes, cudaMemcpyHostToDevice, first));
                memory[5000] = 1;
              }),
              HasSubstr("race in pinned memory: the host writes registered memory"));
  GENREC_CUDA_CHECK(cudaHostUnregister(memory));
  EXPECT_EQ(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
  std::free(memory);
}

TEST_P(Streams, MemoryFreedWhileAStreamUsesIt) {
  Ints out(host({0, 0}));
  int *in = nullptr;
  GENREC_CUDA_CHECK(cudaMallocAsync(&in, 8, first));
  GENREC_CUDA_CHECK(cudaMemsetAsync(in, 0, 8, first));
  GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
  EXPECT_THAT(accusation([&] {
                launch(first, copyInts, in, out.data, 2);
                GENREC_CUDA_CHECK(cudaFreeAsync(in, second));
              }),
              testing::AnyOf(HasSubstr("cudaFreeAsync in stream"), HasSubstr("freed memory")));
  EXPECT_EQ(cudaFreeAsync(in, second), cudaErrorInvalidValue);
}

TEST_P(Streams, PinnedMemoryFreedWhileACopyUsesIt) {
  int *source = nullptr;
  GENREC_CUDA_CHECK(cudaMallocHost(&source, 8));
  source[0] = source[1] = 0;
  Ints data(host({0, 0}));
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(
                    cudaMemcpyAsync(data.data, source, 8, cudaMemcpyHostToDevice, first));
                GENREC_CUDA_CHECK(cudaFreeHost(source));
              }),
              AllOf(HasSubstr("pinned memory of 8 bytes is freed"), HasSubstr("copy in stream")));
  EXPECT_THAT(accusation([&] { source[0] = 1; }),
              HasSubstr("freed pinned memory: the host writes"));
}

TEST_P(Streams, MemoryUsedBeforeItsAllocation) {
  int *data = nullptr;
  GENREC_CUDA_CHECK(cudaMallocAsync(&data, 8, first));
  EXPECT_THAT(
      accusation([&] { GENREC_CUDA_CHECK(cudaMemsetAsync(data, 0, 8, second)); }),
      AllOf(HasSubstr("fill in stream"), HasSubstr("before that is there: allocation in stream")));
  cudaFree(data);
}

TEST_P(Streams, HandlesThatWereDestroyed) {
  cudaStream_t stream;
  cudaEvent_t old;
  GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&old, cudaEventDisableTiming));
  Ints data(host({0}));
  launch(stream, addTo, data.data, 1, 1);
  GENREC_CUDA_CHECK(cudaStreamDestroy(stream)); // what is in it still runs
  EXPECT_EQ(data.fetch(), host({1}));
  EXPECT_EQ(cudaMemsetAsync(data.data, 0, 4, stream), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(cudaGetErrorString(cudaErrorInvalidResourceHandle), HasSubstr("was destroyed"));
  GENREC_CUDA_CHECK(cudaEventDestroy(old));
  EXPECT_EQ(cudaEventRecord(old, first), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(StreamsDeathTest, TheHostTouchesDeviceMemoryInCodeThatIsNotInstrumented) {
  Ints data(host({1, 2}));
  EXPECT_DEATH((void)std::strtol(reinterpret_cast<const char *>(data.data), nullptr, 10),
               "the host touches device memory \\(at byte 0 of an allocation of 8 bytes\\)");
}

TEST(StreamsDeathTest, AFunctionOfAStreamTouchesDeviceMemory) {
  Ints data(host({1, 2}));
  auto read = [](void *at) { (void)std::strtol(static_cast<const char *>(at), nullptr, 10); };
  auto wait = [&] {
    cudaStream_t stream;
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    GENREC_CUDA_CHECK(cudaMemsetAsync(data.data, 0, 4, stream)); // opens it
    GENREC_CUDA_CHECK(cudaLaunchHostFunc(stream, read, data.data));
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  EXPECT_DEATH(wait(),
               "the host touches device memory \\(at byte 0 of an allocation of 8 bytes\\)");
}

TEST_P(Streams, CopiesThatCannotBe) {
  Ints data(host({0, 0}));
  std::vector<int> values(4);
  EXPECT_EQ(cudaMemcpyAsync(data.data, values.data(), 16, cudaMemcpyHostToDevice, first),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(data.data, values.data(), 8, cudaMemcpyDeviceToHost, first),
            cudaErrorInvalidValue);
  EXPECT_THAT(cudaGetErrorString(cudaErrorInvalidValue), HasSubstr("the kind of the copy"));
  EXPECT_EQ(cudaMemsetAsync(values.data(), 0, 16, first), cudaErrorInvalidValue);
}

TEST_P(Streams, DevicesHaveMemoryOfTheirOwn) {
  simt::options().devices = 2;
  Ints here(host({1}));
  GENREC_CUDA_CHECK(cudaSetDevice(1));
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaStream_t there;
  GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
  EXPECT_THAT(accusation([&] { launch(there, addTo, here.data, 1, 1); }),
              HasSubstr("memory of device 0: "));
  EXPECT_THAT(accusation([&] { launch(first, addTo, here.data, 1, 1); }),
              HasSubstr("while device 1 is current"));
  GENREC_CUDA_CHECK(cudaStreamDestroy(there));
  GENREC_CUDA_CHECK(cudaSetDevice(0));
}

/// Stream null is a stream that somebody forgot, whatever is queued there.
TEST_P(Streams, TheDefaultStreamIsForWhoeverNamesIt) {
  Ints data(host({1, 2, 3, 4}));
  GENREC_CUDA_CHECK(cudaEventRecord(event, first));
  simt::options().mayUseDefaultStream = false;
  const std::pair<const char *, std::function<cudaError_t(cudaStream_t)>> calls[] = {
      {"kernel ", [&](cudaStream_t s) { return launch(s, addTo, data.data, 4, 1), cudaSuccess; }},
      {"copy ",
       [&](cudaStream_t s) {
         return cudaMemcpyAsync(data.data, data.data + 2, 8, cudaMemcpyDeviceToDevice, s);
       }},
      {"fill ", [&](cudaStream_t s) { return cudaMemsetAsync(data.data, 0, 16, s); }},
      {"an event ", [&](cudaStream_t s) { return cudaEventRecord(event, s); }},
      {"a wait for an event ", [&](cudaStream_t s) { return cudaStreamWaitEvent(s, event, 0); }},
      {"cudaStreamSynchronize ", [&](cudaStream_t s) { return cudaStreamSynchronize(s); }},
      {"host function ",
       [&](cudaStream_t s) { return cudaLaunchHostFunc(s, [](void *) {}, nullptr); }}};
  for (const auto &[what, call] : calls) {
    const std::string text = accusation([&] { GENREC_CUDA_CHECK(call(nullptr)); });
    EXPECT_THAT(text, testing::StartsWith(what));
    EXPECT_THAT(text, HasSubstr(" in the default stream, enqueued at"));
  }
  EXPECT_THAT(accusation([&] { GENREC_CUDA_CHECK(cudaMemset(data.data, 0, 16)); }),
              HasSubstr("fill in the default stream, enqueued at streams_test.cpp:"));
  for (const auto &[what, call] : calls)
    EXPECT_EQ(accusation([&] { GENREC_CUDA_CHECK(call(cudaStreamLegacy)); }), "none") << what;
  EXPECT_EQ(accusation([&] { (void)Ints(host({1})).fetch(); }), "none");
}

} // namespace
} // namespace genrec::rt::cuda::test
