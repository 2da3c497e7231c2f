//===- step_linear.h - Matrix products as emitted stages call them -*- C++ -*-===//
//
// The calls of cpu/step_linear.h, of all rows of a domain (library_products.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_LINEAR_H
#define GENREC_RT_KERNELS_CUDA_STEP_LINEAR_H

#include "genrec_rt/kernels/cuda/library_products.h"
#include "genrec_rt/kernels/cuda/rounded_factors.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {
using cuda::Activation;

namespace detail {
inline void setFactor(const float *from, const float *&floats, const cuda::Bf16 *&) {
  floats = from;
}
inline void setFactor(const Bf16 *from, const float *&, const cuda::Bf16 *&rounded) {
  rounded = asFactors(from);
}
} // namespace detail

/// y[rows, N] = A(x[rows, K] W + bias) + residual, and what A is applied to in `pre`; W is [K, N],
/// or [N, K] when Transposed. What is absent (HasBias, HasResidual, HasPre) is neither read nor
/// written. With Bf16 x and W are rounded to bfloat16; x, of floats or kernels::Bf16, may have been
/// before.
template <int K, int N, bool Transposed, Activation A, bool HasBias, bool HasResidual, bool HasPre,
          bool Bf16 = false, class X>
void fusedLinear(genrec_step *step, const genrec_domain *rows, const X *x, int64_t ldX,
                 const float *weight, const float *bias, const float *residual, int64_t ldResidual,
                 float *y, int64_t ldY, float *pre, int64_t ldPre) {
  cuda::LinearProduct product;
  product.rows = rows->device;
  product.capacity = rows->capacity;
  product.k = K;
  product.n = N;
  detail::setFactor(x, product.x, product.roundedX);
  product.ldX = ldX;
  product.weight = weight;
  product.transposed = Transposed;
  product.bf16 = Bf16;
  product.bias = HasBias ? bias : nullptr;
  product.activation = A;
  product.residual = HasResidual ? residual : nullptr;
  product.ldResidual = ldResidual;
  product.pre = HasPre ? pre : nullptr;
  product.ldPre = ldPre;
  product.y = y;
  product.ldY = ldY;
  const int64_t bytes = cuda::fastestScratchBytes(product);
  cuda::multiplyFastest(product, bytes > 0 ? scratchOf(step, bytes) : nullptr, streamOf(step));
}

/// y[rows, N] = x[rows, K] W + bias.
template <int K, int N, bool Transposed, bool HasBias, bool Bf16 = false, class X>
void linear(genrec_step *step, const genrec_domain *rows, const X *x, int64_t ldX,
            const float *weight, const float *bias, float *y, int64_t ldY) {
  fusedLinear<K, N, Transposed, Activation::none, HasBias, false, false, Bf16>(
      step, rows, x, ldX, weight, bias, nullptr, 0, y, ldY, nullptr, 0);
}

/// out[K, N] = x[rows, K]^T y[rows, N]; with Bf16 both are rounded to bfloat16.
template <int K, int N, bool Bf16 = false, class X, class Y>
void weightGradient(genrec_step *step, const genrec_domain *rows, const X *x, int64_t ldX,
                    const Y *y, int64_t ldY, float *out) {
  cuda::RowContraction contraction;
  contraction.rows = rows->device;
  contraction.capacity = rows->capacity;
  contraction.k = K;
  contraction.n = N;
  detail::setFactor(x, contraction.x, contraction.roundedX);
  contraction.ldX = ldX;
  detail::setFactor(y, contraction.y, contraction.roundedY);
  contraction.ldY = ldY;
  contraction.out = out;
  contraction.bf16 = Bf16;
  void *scratch = scratchOf(step, cuda::fastestScratchBytes(contraction));
  cuda::contractFastest(contraction, scratch, streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_STEP_LINEAR_H
