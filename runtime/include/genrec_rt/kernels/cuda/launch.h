//===- launch.h - Launching kernels ------------------------------*- C++ -*-===//
//
// Kernels are launched by a function call, not by <<<>>>: the same source then
// compiles for the host, where tests run it (test/Cuda/Simt).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LAUNCH_H
#define GENREC_RT_KERNELS_CUDA_LAUNCH_H

#include "genrec_rt/cuda/check.h"

#include <cstdint>

namespace genrec::rt::cuda {

/// Blocks, threads per block and bytes of dynamic shared memory of a launch.
struct LaunchShape {
  dim3 grid, block;
  int64_t dynamicBytes = 0;
};

namespace detail {

template <class... P, class... A>
cudaError_t launchKernel(cudaStream_t stream, const LaunchShape &shape, void (*kernel)(P...),
                         A &&...arguments) {
  // More than this needs a kernel's consent.
  constexpr int64_t kPlainDynamicBytes = 48 << 10;
  if (shape.dynamicBytes > kPlainDynamicBytes) {
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shape.dynamicBytes));
    if (status != cudaSuccess)
      return status;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<size_t>(shape.dynamicBytes);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<A &&>(arguments)...);
}

} // namespace detail

/// ceil(count / per), for the number of blocks.
constexpr int64_t blocksFor(int64_t count, int64_t per) { return (count + per - 1) / per; }

} // namespace genrec::rt::cuda

/// GENREC_CUDA_LAUNCH(stream, shape, kernel, arguments...): launches, and throws
/// CudaError naming kernel and caller where that fails. A template's arguments
/// want parentheses: (kernel<int, 4>).
#define GENREC_CUDA_LAUNCH(stream, shape, ...)                                                     \
  GENREC_CUDA_CHECK(::genrec::rt::cuda::detail::launchKernel(stream, shape, __VA_ARGS__))

#endif // GENREC_RT_KERNELS_CUDA_LAUNCH_H
