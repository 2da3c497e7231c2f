// What a test makes on a device, it gives back: memory, streams, events, graphs, what cuBLAS and
// NCCL make. A listener looks behind every test of the program.

#include "device_copy.h"
#include "simt.h"

#include <cuda_runtime.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

class Held : public testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest &) override {
    genrec::rt::cuda::test::testStream();
  }
  void OnTestStart(const testing::TestInfo &) override { before = simt::heldCount(); }
  void OnTestEnd(const testing::TestInfo &test) override {
    if (test.result()->Passed())
      EXPECT_EQ(simt::describeHeld(before), "");
  }

  int64_t before = 0;
};

[[maybe_unused]] const bool isListening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Held);
  return true;
}();

TEST(Held, IsWhatWasNotGivenBack) {
  const int64_t before = simt::heldCount();
  void *memory = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&memory, 40, stream), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 8), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_THAT(simt::describeHeld(before),
              testing::HasSubstr("40 bytes of device memory is never "));
  ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  const std::string left = simt::describeHeld(before);
  EXPECT_THAT(left, testing::MatchesRegex(
                        "stream [0-9]+ is never given back: made at .*held_test.cpp:[0-9]+.*\n"));
  EXPECT_EQ(simt::describeHeld(simt::heldCount()), "");
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(simt::describeHeld(before), "");
}

TEST(Held, IsGivenBackOnce) {
  cudaGraph_t graph = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_NE(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// test_held.py runs it by itself.
TEST(Held, DISABLED_Memory) {
  void *memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
}

} // namespace
