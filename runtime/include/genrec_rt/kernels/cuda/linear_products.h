//===- linear_products.h - Matrix products over the rows of a domain -*- C++ -*-===//
//
// In float, the factors rounded to bfloat16 on request (factors.h; sums stay float). The number of
// rows is read on the device, so that the host need not know it. An element of a product of rows is
// one chain of multiply-adds in ascending order, as on the CPU; a contraction over rows adds up
// fixed chunks of them, so its bits follow from the rows alone.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LINEAR_PRODUCTS_H
#define GENREC_RT_KERNELS_CUDA_LINEAR_PRODUCTS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/bf16.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// As cpu/gemm.h has them.
enum class Activation { none, relu, silu, gelu, sigmoid, tanh };

/// y[rows, n] = A(x[rows, k] W + bias) + residual, and what A is applied to in `pre`. Null: absent.
/// All pointers are the device's.
struct LinearProduct {
  const genrec_domain *rows = nullptr;
  int64_t capacity = 0; ///< of rows
  int64_t k = 0, n = 0;
  const float *x = nullptr;
  const Bf16 *roundedX = nullptr; ///< x, where it was rounded before (rounded_factors.h)
  int64_t ldX = 0;
  const float *weight = nullptr; ///< [k, n], or [n, k] when transposed
  bool transposed = false;
  bool bf16 = false; ///< x and W are rounded to bfloat16
  const float *bias = nullptr;
  Activation activation = Activation::none;
  const float *residual = nullptr;
  int64_t ldResidual = 0;
  float *pre = nullptr;
  int64_t ldPre = 0;
  float *y = nullptr;
  int64_t ldY = 0;
};
void multiply(const LinearProduct &product, cudaStream_t stream);

/// out[k, n] = x[rows, k]^T y[rows, n].
struct RowContraction {
  const genrec_domain *rows = nullptr;
  int64_t capacity = 0;
  int64_t k = 0, n = 0;
  const float *x = nullptr;
  int64_t ldX = 0;
  const float *y = nullptr;
  int64_t ldY = 0;
  float *out = nullptr;
  bool bf16 = false; ///< x and y are rounded to bfloat16
  const Bf16 *roundedX = nullptr, *roundedY = nullptr; ///< where they were before
};
void contractRows(const RowContraction &contraction, void *scratch, cudaStream_t stream);
int64_t contractionScratchBytes(int64_t capacity, int64_t k, int64_t n);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LINEAR_PRODUCTS_H
