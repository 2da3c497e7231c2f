//===- device_memory.h - memory of a device for conformance.h -------------===//

#ifndef GENREC_TEST_COMM_DEVICE_MEMORY_H
#define GENREC_TEST_COMM_DEVICE_MEMORY_H

#include "conformance.h"

#include "genrec_rt/cuda/memory.h"

namespace genrec::rt::conformance {

/// Copies on the current device, of a stream that does not block.
class DeviceMemory final : public Memory {
public:
  DeviceMemory() { GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~DeviceMemory() override {
    for (void *each : all)
      (void)cudaFreeAsync(each, stream);
    (void)cudaStreamDestroy(stream);
  }

  CommMemory where() override { return {CommMemory::Kind::device, stream}; }
  void *give(void *host, int64_t bytes) override {
    if (bytes == 0)
      return nullptr;
    void *made = nullptr;
    GENREC_CUDA_CHECK(cudaMallocAsync(&made, static_cast<size_t>(bytes), stream));
    all.push_back(made);
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(made, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream));
    return made;
  }
  void fetch(void *host, const void *memory, int64_t bytes) override {
    if (bytes == 0)
      return;
    cuda::waitForStream(stream); // a copy to pageable memory waits itself, and looks for nobody
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(host, memory, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream));
    cuda::waitForStream(stream);
  }

private:
  cudaStream_t stream = nullptr;
  std::vector<void *> all;
};

} // namespace genrec::rt::conformance

#endif // GENREC_TEST_COMM_DEVICE_MEMORY_H
