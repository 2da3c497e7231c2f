//===- mma.h - Products of small matrices by a warp (sm_80) -------*- C++ -*-===//
//
// Thin names for the instructions, and where a warp's lanes hold the elements of
// their operands (PTX ISA, "Matrix Fragments for mma.m16n8k16"). With g = lane / 4
// and q = lane % 4, all bfloat16 two to a register:
//
//   A [16, 16]   a[0]: row g,     columns 2q, 2q+1    a[2]: row g,     columns 2q+8, 2q+9
//                a[1]: row g + 8, columns 2q, 2q+1    a[3]: row g + 8, columns 2q+8, 2q+9
//   B [16, 8]    b[0]: rows 2q, 2q+1, column g        b[1]: rows 2q+8, 2q+9, column g
//   D [16, 8]    d[0], d[1]: row g, columns 2q, 2q+1  d[2], d[3]: row g + 8
//
// So two D of adjacent columns, rounded, are an A: that is how weights go from
// the product that made them into the next without leaving registers. A warp of
// wgmma holds 16 rows of D and of an A in registers in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_TENSOR_MMA_H
#define GENREC_RT_KERNELS_CUDA_TENSOR_MMA_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/bf16.h"

#if defined(GENREC_SIMT)
#include <simt_tensor.h>
#endif

namespace genrec::rt::cuda {

/// 16 rows and N columns of a product in a warp: d[n] are columns [8n, 8n + 8).
template <int N> struct Fragment {
  float d[N / 8][4];

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        d[n][i] = 0;
  }

  /// Columns [16 * step, 16 * step + 16), rounded, as an A.
  __device__ void asLeft(int step, uint32_t (&a)[4]) const {
    a[0] = packBf16(d[2 * step][0], d[2 * step][1]);
    a[1] = packBf16(d[2 * step][2], d[2 * step][3]);
    a[2] = packBf16(d[2 * step + 1][0], d[2 * step + 1][1]);
    a[3] = packBf16(d[2 * step + 1][2], d[2 * step + 1][3]);
  }
};

/// This lane's place in fragments.
__device__ inline int fragmentRow() { return laneOf() / 4; }
__device__ inline int fragmentColumn() { return laneOf() % 4 * 2; }

#if defined(GENREC_SIMT)
using simt::copyAsync16;
using simt::loadMatrices;
using simt::loadMatricesTransposed;
using simt::multiplyAdd;
using simt::commitCopies;
template <int Left> void waitForCopies() { simt::waitForCopies(Left); }
#else

/// d += a * b.
__device__ inline void multiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
               "{%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads four 8 x 8 matrices of bfloat16. Lane 8m + r names row r of matrix m (16
/// bytes); every lane gets two elements per matrix: row g, columns 2q and 2q+1.
__device__ inline void loadMatrices(uint32_t (&r)[4], const void *row) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

/// The same of the transposed matrices: rows 2q and 2q+1, column g.
__device__ inline void loadMatricesTransposed(uint32_t (&r)[4], const void *row) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

/// Starts copying 16 bytes to shared memory; zeros where `inside` is false.
__device__ inline void copyAsync16(void *to, const void *from, bool inside) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
               : "memory");
}
/// Closes a group of copies.
__device__ inline void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `Left` of this thread's groups are under way.
template <int Left> __device__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}
#endif

//===----------------------------------------------------------------------===//
// Approximate functions: one instruction each, errors as the PTX ISA states them
//===----------------------------------------------------------------------===//

/// 2^x, to 2 units in the last place.
__device__ inline float exp2Approx(float x) {
#if defined(GENREC_SIMT)
  return simt::approximate(std::exp2(x), 2);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

/// tanh(x), to a relative 2^-11.
__device__ inline float tanhApprox(float x) {
#if defined(GENREC_SIMT)
  const float y = simt::approximate(std::tanh(x), 0x1p12f); // 2^-11
  return std::fmin(1.0f, std::fmax(-1.0f, y));
#else
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_TENSOR_MMA_H
