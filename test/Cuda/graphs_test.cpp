//===- graphs_test.cpp - Captured streams and graphs of the emulated device ===//

#include "streams_testing.h"

#include <thread>
#include <utility>

namespace genrec::rt::cuda::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Seeds, Graphs, testing::Range<uint64_t>(1, 9));

TEST_P(Graphs, ForkAndJoin) {
  Ints in(host({1, 2})), a(host({0, 0})), b(host({0, 0}));
  EXPECT_EQ(accusation([&] {
              capture([&] {
                launch(first, addTo, in.data, 2, 1);
                fork();
                launch(second, copyInts, in.data, b.data, 2);
                launch(first, copyInts, in.data, a.data, 2);
                join();
                launch(first, accumulate, b.data, a.data, 2);
              });
              size_t nodes = 0;
              GENREC_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
              EXPECT_EQ(nodes, 4u);
              for (int i = 0; i < 3; ++i)
                GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
            }),
            "none");
  EXPECT_EQ(in.fetch(), host({4, 5}));
  EXPECT_EQ(a.fetch(), host({8, 10}));
}

TEST_P(Graphs, ADroppedEdgeIsARace) {
  Ints in(host({1, 2})), a(host({0, 0})), b(host({0, 0}));
  EXPECT_THAT(
      accusation([&] {
        capture([&] {
          fork(); // too early: not after the sum
          launch(first, addTo, in.data, 2, 1);
          launch(second, copyInts, in.data, b.data, 2);
          join();
        });
        GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
      }),
      AllOf(HasSubstr("race between operations"), HasSubstr("addTo"), HasSubstr("copyInts")));
}

TEST_P(Graphs, WorkThatIsNotJoined) {
  Ints in(host({1, 2})), b(host({0, 0}));
  GENREC_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  fork();
  launch(second, copyInts, in.data, b.data, 2);
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  cudaStreamCaptureStatus captured;
  GENREC_CUDA_CHECK(cudaStreamIsCapturing(second, &captured));
  EXPECT_EQ(captured, cudaStreamCaptureStatusNone);
}

/// With a stream that the default one waits for, and an event from outside of what is captured.
class Captures : public Graphs {
protected:
  void SetUp() override {
    Graphs::SetUp();
    GENREC_CUDA_CHECK(cudaStreamCreate(&blocking));
    GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
    GENREC_CUDA_CHECK(cudaEventRecord(outside, second));
  }
  void TearDown() override {
    GENREC_CUDA_CHECK(cudaStreamDestroy(blocking));
    GENREC_CUDA_CHECK(cudaEventDestroy(outside));
    Graphs::TearDown();
  }

  cudaStream_t blocking;
  cudaEvent_t outside;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Captures, testing::Range<uint64_t>(1, 9));

TEST_P(Captures, WhatIsRefused) {
  Ints data(host({1}));
  Pinned pinned(1);
  int value = 0, *memory = nullptr;
  auto refusal = [&](cudaStream_t stream, auto body) {
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const cudaError_t code = body();
    cudaGraph_t none = nullptr;
    EXPECT_EQ(cudaMemsetAsync(data.data, 0, 4, stream), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(stream, &none), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(none, nullptr);
    return code;
  };
  EXPECT_EQ(refusal(first, [&] { return cudaStreamSynchronize(first); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refusal(first, [&] { return cudaDeviceSynchronize(); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refusal(first, [&] { return cudaMalloc(&memory, 4); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refusal(first, [&] { return cudaEventQuery(outside); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(refusal(first, [&] { return cudaStreamWaitEvent(first, outside); }),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(refusal(blocking, [&] { return cudaMemsetAsync(data.data, 0, 4, nullptr); }),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(
      refusal(first,
              [&] { return cudaMemcpyAsync(data.data, &value, 4, cudaMemcpyHostToDevice, first); }),
      cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);

  GENREC_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  fork();
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamEndCapture(second, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(data.fetch(), host({1}));
}

/// Whatever the mode, and in every thread: the device and its default stream stand for streams that
/// are captured, too.
TEST_P(Captures, WhatOtherThreadsMayNotDo) {
  auto codes = [&](cudaStream_t stream, auto body) {
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaError_t code = cudaSuccess;
    std::thread([&] { code = body(); }).join();
    cudaGraph_t made = nullptr;
    const cudaError_t end = cudaStreamEndCapture(stream, &made);
    if (made)
      GENREC_CUDA_CHECK(cudaGraphDestroy(made));
    return std::pair(code, end);
  };
  const std::pair invalid(cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated);
  const std::pair implicit(cudaErrorStreamCaptureImplicit, cudaErrorStreamCaptureInvalidated);
  const std::pair allowed(cudaSuccess, cudaSuccess);
  EXPECT_EQ(codes(first, [] { return cudaDeviceSynchronize(); }), invalid);
  for (auto call : {+[](cudaEvent_t) { return cudaStreamSynchronize(cudaStreamLegacy); },
                    +[](cudaEvent_t) { return cudaStreamQuery(cudaStreamLegacy); },
                    +[](cudaEvent_t on) { return cudaStreamWaitEvent(cudaStreamLegacy, on); }}) {
    EXPECT_EQ(codes(blocking, [&] { return call(outside); }), implicit);
    EXPECT_EQ(codes(first, [&] { return call(outside); }), allowed);
  }
  // Asking does no harm.
  cudaStreamCaptureStatus captured;
  EXPECT_EQ(codes(blocking, [&] { return cudaStreamIsCapturing(cudaStreamLegacy, &captured); }),
            std::pair(cudaErrorStreamCaptureImplicit, cudaSuccess));
  EXPECT_EQ(codes(first, [&] { return cudaStreamIsCapturing(cudaStreamLegacy, &captured); }),
            allowed);
  EXPECT_EQ(codes(first, [&] { return cudaEventQuery(outside); }).second, cudaSuccess);
}

TEST_P(Graphs, AnUpdateKeepsTheShape) {
  Ints a(host({1})), b(host({10}));
  EXPECT_EQ(accusation([&] {
              capture([&] { launch(first, addTo, a.data, 1, 1); });
              GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
              recapture([&] { launch(first, addTo, b.data, 1, 2); });
              cudaGraphExecUpdateResultInfo info;
              GENREC_CUDA_CHECK(cudaGraphExecUpdate(exec, graph, &info));
              GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
              recapture([&] {
                launch(first, addTo, b.data, 1, 2);
                launch(first, addTo, b.data, 1, 2);
              });
              EXPECT_EQ(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
              EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
              recapture([&] { GENREC_CUDA_CHECK(cudaMemsetAsync(b.data, 0, 4, first)); });
              EXPECT_EQ(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
              EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
            }),
            "none");
  EXPECT_EQ(a.fetch(), host({2}));
  EXPECT_EQ(b.fetch(), host({12}));
}

TEST_P(Graphs, PinnedMemoryOfAGraphIsWatched) {
  Pinned source(4);
  source.data[0] = 7;
  Ints data(host({0}));
  EXPECT_THAT(accusation([&] {
                capture([&] {
                  GENREC_CUDA_CHECK(
                      cudaMemcpyAsync(data.data, source.data, 4, cudaMemcpyHostToDevice, first));
                });
                source.data[0] = 8; // nothing runs yet
                GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
                GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
                source.data[0] = 9;
                EXPECT_EQ(simt::errorMessage(), "");
                GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
                source.data[0] = 10;
              }),
              HasSubstr("race in pinned memory: the host writes at byte 0"));
}

} // namespace
} // namespace genrec::rt::cuda::test
