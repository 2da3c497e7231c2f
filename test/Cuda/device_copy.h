//===- device_copy.h - Host values on a device, for tests --------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_DEVICE_COPY_H
#define GENREC_TEST_CUDA_DEVICE_COPY_H

#include "genrec_rt/cuda/check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace genrec::rt::cuda::test {

/// Where tests queue what they call. It does not wait for the default stream, nor that for it: what
/// a call leaves there by mistake races with the rest.
class TestStream {
public:
  TestStream() { GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  TestStream(const TestStream &) = delete;
  ~TestStream() { (void)cudaStreamDestroy(stream); }
  operator cudaStream_t() const { return stream; }

private:
  cudaStream_t stream = nullptr;
};

/// One for all tests of a program that use one device.
inline cudaStream_t testStream() {
  static const TestStream stream;
  return stream;
}

/// Host values to the device and back.
template <class T> class Copy {
public:
  Copy(Copy &&other) noexcept : memory(std::exchange(other.memory, nullptr)), count(other.count) {}

  explicit Copy(const std::vector<T> &values) : count(values.size()) {
    GENREC_CUDA_CHECK(cudaMalloc(&memory, std::max<size_t>(count, 1) * sizeof(T)));
    if (count)
      GENREC_CUDA_CHECK(
          cudaMemcpy(memory, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    GENREC_CUDA_CHECK(
        cudaDeviceSynchronize()); // the stream of tests does not wait for the default one
  }
  ~Copy() { (void)cudaFree(memory); }
  T *data() { return memory; }
  std::vector<T> fetch() const {
    std::vector<T> values(count);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    if (count)
      GENREC_CUDA_CHECK(
          cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

private:
  T *memory = nullptr;
  size_t count;
};

/// Zeros that a device may write without a wait of the host's.
template <class T> struct PinnedArray {
  explicit PinnedArray(size_t count) {
    GENREC_CUDA_CHECK(cudaMallocHost(&data, count * sizeof(T)));
    std::fill(data, data + count, T(0));
  }
  ~PinnedArray() { (void)cudaFreeHost(data); }
  T *data = nullptr;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_DEVICE_COPY_H
