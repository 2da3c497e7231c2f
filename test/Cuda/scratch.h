//===- scratch.h - Device memory that nobody has written ---------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SCRATCH_H
#define GENREC_TEST_CUDA_SCRATCH_H

#include "genrec_rt/cuda/check.h"

#include <algorithm>
#include <utility>

namespace genrec::rt::cuda::test {

/// What calls get as scratch: the emulated device accuses those that read it before they write it.
class Scratch {
public:
  explicit Scratch(int64_t bytes) {
    GENREC_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1))));
  }
  Scratch(Scratch &&other) noexcept : memory(std::exchange(other.memory, nullptr)) {}
  ~Scratch() { (void)cudaFree(memory); }
  char *data() { return memory; }

private:
  char *memory = nullptr;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_SCRATCH_H
