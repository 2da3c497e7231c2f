//===- warp.h - Rows and lanes of a warp -------------------------*- C++ -*-===//
//
// A warp processes a row; elements are on lanes: element i belongs to lane i % 32.
// The functions of rowbody.h, random.h, gathered_rows.h and segments.h are called
// by all lanes of a warp with equal arguments; what they write into shared arrays
// may be read by every lane when they return.
//
// For code that nvcc compiles, and for the host where GENREC_WARP_ROWS is defined
// (tests, over the stand-in for <cuda_runtime.h>).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_WARP_H
#define GENREC_RT_KERNELS_CUDA_WARP_H

#include "genrec_rt/kernels/shared/simd.h"

#include <cuda_runtime.h>

#if !defined(GENREC_WARP_ROWS)
#error "warp.h is for code that runs on a device"
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

constexpr int64_t kWarpLanes = 32;
/// Warps of a block of row kernels: launch them with 128 threads.
constexpr int64_t kRowWarps = 4;
constexpr uint32_t kWholeWarp = 0xFFFFFFFFu;

__device__ inline int64_t lane() { return threadIdx.x % kWarpLanes; }
/// The first row of this warp, which is its number in the grid, and the number of warps.
__device__ inline int64_t firstRow() { return blockIdx.x * kRowWarps + threadIdx.x / kWarpLanes; }
__device__ inline int64_t rowStep() { return gridDim.x * kRowWarps; }

/// This warp's array number `Array` of N elements.
template <class T, int64_t N, int64_t Array> __device__ inline T *sharedRow() {
  __shared__ T rows[kRowWarps][N];
  return rows[threadIdx.x / kWarpLanes];
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

namespace kernels =
    genrec::rt::kernels; // as generated code calls it: step.h and cpu/launch.h have the same

#endif // GENREC_RT_KERNELS_CUDA_WARP_H
