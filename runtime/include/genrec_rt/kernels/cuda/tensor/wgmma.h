//===- wgmma.h - Products by a warpgroup (sm_90a) -------------------*- C++ -*-===//
//
// Four warps multiply 64 rows; operands are read from shared memory, the left one
// also from registers. What is started goes on while the warps do something else,
// until waitForProducts. Matrices in shared memory are panels of 64 columns: rows of
// 128 bytes in the 128-byte swizzle, as BulkTile (bulk.h) has them.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_H
#define GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_H

#include "genrec_rt/kernels/cuda/tensor/bulk.h"
#include "genrec_rt/kernels/cuda/tensor/mma.h"

#if defined(GENREC_SIMT)
#include <simt_wgmma.h>
#else
#include "genrec_rt/kernels/cuda/tensor/wgmma_instructions.h"
#endif

namespace genrec::rt::cuda {

constexpr int kWarpgroup = 128;

/// A value that is the same in all lanes of a warp, in registers that the warp has once: what ptxas
/// computes from threadIdx, descriptors of matrices included, it keeps in registers of every lane.
__device__ __forceinline__ int sameInWarp(int value) { return __shfl_sync(kAllLanes, value, 0); }

#if defined(GENREC_SIMT)
namespace detail {
using simt::detail::wgmma128;
using simt::detail::wgmma64;
} // namespace detail
inline void startProducts() { simt::fenceProducts(); }
inline void commitProducts() { simt::commitProducts(); }
template <int Left> void waitForProducts() { simt::waitForProducts(Left); }
template <int N> void keepInRegisters(Fragment<N> &) {}
template <int K> struct LeftOperand;
template <int K> void keepInRegisters(const LeftOperand<K> &) {}
#else
/// Before the first product of a group: registers written so far are seen.
__device__ __forceinline__ void startProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Closes a group of products.
__device__ __forceinline__ void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `Left` groups of this warpgroup are under way.
template <int Left> __device__ __forceinline__ void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}
/// Keeps the compiler from moving accesses of d over products that run.
template <int N> __device__ __forceinline__ void keepInRegisters(Fragment<N> &d) {
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+f"(d.d[n][i])::"memory");
}
#endif

/// Bytes between groups of eight rows of a panel.
constexpr int kRowGroupBytes = 8 * 128;

/// Descriptions of matrices in shared memory (PTX ISA, "Matrix Descriptor"): 128-byte swizzle,
/// `panelBytes` between panels of 64 columns where they are read across rows. Those of the parts of
/// a matrix differ by their begins only, which count 16 bytes: an addition each.
struct MatrixParts {
  uint32_t low;

  __device__ __forceinline__ MatrixParts(uint32_t address, int panelBytes)
      : low((address & 0x3FFFF) >> 4 | static_cast<uint32_t>(panelBytes >> 4) << 16) {}
  /// The part that begins `bytes` behind the matrix' begin.
  __device__ __forceinline__ uint64_t at(int bytes) const {
    constexpr uint64_t kSwizzle128 = uint64_t(1) << 62;
    return kSwizzle128 | static_cast<uint64_t>(kRowGroupBytes >> 4) << 32 |
           static_cast<uint64_t>(low + static_cast<uint32_t>(bytes >> 4));
  }
};

/// d (+)= left[row .. row + 64) * right[0 .. N)^T: both read along rows.
template <int N, int Size, int LeftRows, int RightRows>
__device__ __forceinline__ void startRows(Fragment<N> &d, const BulkTile<LeftRows, Size> &left,
                                          int row, const BulkTile<RightRows, Size> &right) {
  static_assert((N == 64 || N == 128) && N <= RightRows);
  const MatrixParts lefts(sharedAddress(left.values) + static_cast<uint32_t>(row * 128), 16);
  const MatrixParts rights(sharedAddress(right.values), 16);
#pragma unroll
  for (int step = 0; step < BulkTile<LeftRows, Size>::kSteps; ++step) {
    const int along = step % 4 * 32;
    const uint64_t a = lefts.at(step / 4 * LeftRows * 128 + along);
    const uint64_t b = rights.at(step / 4 * RightRows * 128 + along);
    if constexpr (N == 64)
      detail::wgmma64<false, false>(d.d, a, b, step > 0);
    else
      detail::wgmma128<false, false>(d.d, a, b, step > 0);
  }
}

/// A fragment rounded to left operands, in registers. A product reads them until it has been
/// awaited, which ptxas does not know: behind the last instruction that names them it gives their
/// registers to others. keepInRegisters, behind the wait, names them
/// (test/Cuda/product_registers.py looks whether machine code is so).
template <int K> struct LeftOperand {
  uint32_t a[K / 16][4] = {};
  __device__ __forceinline__ void set(const Fragment<K> &weights) {
#pragma unroll
    for (int step = 0; step < K / 16; ++step)
      weights.asLeft(step, a[step]);
  }
};

#if !defined(GENREC_SIMT)
/// Keeps the registers of a left operand for it until here. It takes an instruction that ptxas
/// cannot leave out, so this stores them where no lane ever does: whose lanes below are all lanes.
template <int K> __device__ __forceinline__ void keepInRegisters(const LeftOperand<K> &left) {
  uint32_t below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
#pragma unroll
  for (int step = 0; step < K / 16; ++step)
    asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %4, 0xFFFFFFFF;\n"
                 "@p st.shared.v4.b32 [%5], {%0, %1, %2, %3};\n}" ::"r"(left.a[step][0]),
                 "r"(left.a[step][1]), "r"(left.a[step][2]), "r"(left.a[step][3]), "r"(below),
                 "r"(0)
                 : "memory");
}
#endif

/// d += weights * right[0 .. K): the right one read across rows, all its panels.
template <int N, int K, int Rows, int Size>
__device__ __forceinline__ void startWeights(Fragment<N> &d, const LeftOperand<K> &weights,
                                             const BulkTile<Rows, Size> &right) {
  static_assert(N == BulkTile<Rows, Size>::kPanels * 64 && K <= Rows);
  const MatrixParts rights(sharedAddress(right.values), Rows * 128);
#pragma unroll
  for (int step = 0; step < K / 16; ++step)
#pragma unroll
    for (int panel = 0; panel < N / 64; panel += 2) {
      const uint64_t b = rights.at(panel * Rows * 128 + step * 2 * kRowGroupBytes);
      if (panel + 1 < N / 64)
        detail::wgmma128<true>(d.d + panel * 8, weights.a[step], b, 1);
      else
        detail::wgmma64<true>(d.d + panel * 8, weights.a[step], b, 1);
    }
}

/// d = left^T * right over K rows of both: 64 columns of the left one from panel
/// `leftPanel`, 64 of the right one from `rightPanel`, both read across rows.
template <int K, int LeftRows, int LeftSize, int RightRows, int RightSize>
__device__ __forceinline__ void
startColumns(Fragment<64> &d, const BulkTile<LeftRows, LeftSize> &left, int leftPanel,
             const BulkTile<RightRows, RightSize> &right, int rightPanel) {
  static_assert(K <= LeftRows && K <= RightRows);
  const MatrixParts lefts(sharedAddress(left.values) +
                              static_cast<uint32_t>(leftPanel * LeftRows * 128),
                          LeftRows * 128);
  const MatrixParts rights(sharedAddress(right.values) +
                               static_cast<uint32_t>(rightPanel * RightRows * 128),
                           RightRows * 128);
#pragma unroll
  for (int step = 0; step < K / 16; ++step) {
    const int down = step * 2 * kRowGroupBytes;
    detail::wgmma64<true, true>(d.d, lefts.at(down), rights.at(down), step > 0);
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_H
