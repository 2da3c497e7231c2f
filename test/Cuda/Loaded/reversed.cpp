//===- reversed.cpp - Kernels of an object that a test loads --------------===//

#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda::test {
namespace {

/// data[i] = data[64 - 1 - i] within a block; a race without the barrier.
__global__ void reverse(int *data, bool hasBarrier) {
  __shared__ int tile[64];
  int *mine = data + blockIdx.x * 64;
  tile[threadIdx.x] = mine[threadIdx.x];
  if (hasBarrier)
    __syncthreads();
  mine[threadIdx.x] = tile[63 - threadIdx.x];
}

} // namespace

extern "C" void genrecReverse(int *data, int blocks, bool hasBarrier) {
  GENREC_CUDA_LAUNCH(nullptr, (LaunchShape{dim3(static_cast<unsigned>(blocks)), dim3(64)}), reverse,
                     data, hasBarrier);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
}

} // namespace genrec::rt::cuda::test
