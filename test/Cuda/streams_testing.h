//===- streams_testing.h - Hosts with two streams, for tests -----*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_STREAMS_TESTING_H
#define GENREC_TEST_CUDA_STREAMS_TESTING_H

#include "device_copy.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace genrec::rt::cuda::test {

inline std::vector<int> host(std::vector<int> values) { return values; }

/// Integers on a device; they are there when it is made.
struct Ints {
  explicit Ints(const std::vector<int> &values) : Ints(values.size()) {
    GENREC_CUDA_CHECK(cudaMemcpy(data, values.data(), count * 4, cudaMemcpyHostToDevice));
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
  explicit Ints(size_t count) : count(count) { GENREC_CUDA_CHECK(cudaMalloc(&data, count * 4)); }
  ~Ints() { (void)cudaFree(data); }
  std::vector<int> fetch() const {
    std::vector<int> values(count);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    GENREC_CUDA_CHECK(cudaMemcpy(values.data(), data, count * 4, cudaMemcpyDeviceToHost));
    return values;
  }
  int *data = nullptr;
  size_t count;
};

using Pinned = PinnedArray<int>;

__global__ inline void addTo(int *data, int count, int by) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    data[i] += by;
}
__global__ inline void copyInts(const int *from, int *to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    to[i] = from[i];
}
/// to[i] += from[i]
__global__ inline void accumulate(const int *from, int *to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    to[i] += from[i];
}

template <class... P, class... A>
void launch(cudaStream_t stream, void (*kernel)(P...), A... arguments) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 32}), kernel, arguments...);
}

/// Two streams that wait for nobody, and an event.
class Streams : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override {
    simt::options() = {.seed = GetParam(), .mayUseDefaultStream = true};
    for (cudaStream_t *stream : {&first, &second})
      GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  void TearDown() override {
    simt::clearError();
    for (cudaStream_t stream : {first, second})
      (void)cudaStreamDestroy(stream);
    (void)cudaEventDestroy(event);
    simt::options() = {};
  }
  /// What the device says of what `body` does once everything has run; "none".
  template <class Body> std::string accusation(Body body) {
    std::string text = "none";
    try {
      body();
      GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    } catch (const CudaError &error) {
      text = simt::errorMessage().empty() ? error.what() : simt::errorMessage();
    }
    simt::clearError();
    return text;
  }
  /// Everything runs, and the host learns nothing.
  static void runEverything() {
    const simt::Options before = simt::options();
    simt::options().queues = simt::Completion::atOnce;
    cudaEvent_t any;
    GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&any, cudaEventDisableTiming));
    GENREC_CUDA_CHECK(cudaEventRecord(any));
    GENREC_CUDA_CHECK(cudaEventDestroy(any));
    simt::options() = before;
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
};

class Graphs : public Streams {
protected:
  void TearDown() override {
    drop();
    if (exec)
      (void)cudaGraphExecDestroy(exec);
    Streams::TearDown();
  }
  void drop() {
    if (graph)
      (void)cudaGraphDestroy(graph);
    graph = nullptr;
  }
  /// Captures what `body` puts into the first stream, and those that join it.
  template <class Body> void recapture(Body body) {
    drop();
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    body();
    GENREC_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
  }
  template <class Body> void capture(Body body) {
    recapture(body);
    GENREC_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  /// The second stream goes on after the first, or the first after the second.
  void fork() {
    GENREC_CUDA_CHECK(cudaEventRecord(event, first));
    GENREC_CUDA_CHECK(cudaStreamWaitEvent(second, event));
  }
  void join() {
    GENREC_CUDA_CHECK(cudaEventRecord(event, second));
    GENREC_CUDA_CHECK(cudaStreamWaitEvent(first, event));
  }

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_STREAMS_TESTING_H
