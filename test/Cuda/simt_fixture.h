//===- simt_fixture.h - What a launch on the host is accused of -*- C++ -*-===//

#pragma once

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace genrec::rt::cuda::test {

/// Kernels under one schedule per seed, and memory for them.
class Simt : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override { simt::options() = {.seed = GetParam(), .mayUseDefaultStream = true}; }
  void TearDown() override {
    simt::clearError();
    simt::options() = {};
    for (void *memory : owned)
      cudaFree(memory);
  }

  int *device(int64_t count, bool filled = true) {
    int *memory = nullptr;
    GENREC_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(count) * 4));
    if (filled)
      GENREC_CUDA_CHECK(cudaMemset(memory, 0, static_cast<size_t>(count) * 4));
    owned.push_back(memory);
    return memory;
  }
  std::vector<int> host(const int *memory, int64_t count) {
    std::vector<int> values(static_cast<size_t>(count));
    GENREC_CUDA_CHECK(cudaMemcpy(values.data(), memory, values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }
  /// What a launch is accused of.
  template <class... P, class... A>
  std::string accusation(dim3 grid, dim3 block, int64_t dynamicBytes, void (*kernel)(P...),
                         A... arguments) {
    try {
      GENREC_CUDA_LAUNCH(nullptr, (LaunchShape{grid, block, dynamicBytes}), kernel, arguments...);
      GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    } catch (const CudaError &error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("failed in accusation (simt_fixture.h:"));
      return simt::errorMessage();
    }
    return "none";
  }
  template <class... P, class... A>
  std::string accusation(dim3 block, void (*kernel)(P...), A... arguments) {
    return accusation(1, block, 0, kernel, arguments...);
  }

  std::vector<void *> owned;
};

} // namespace genrec::rt::cuda::test
