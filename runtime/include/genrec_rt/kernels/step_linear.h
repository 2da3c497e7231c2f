//===- step_linear.h - Matrix products as emitted stages call them -*- C++ -*-===//
//
// gemm.h with scratch from the step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_STEP_LINEAR_H
#define GENREC_RT_KERNELS_STEP_LINEAR_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/gemm.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// y[rows, N] = x[rows, K] W + bias; W is [K, N], or [N, K] when Transposed.
/// `bias` ([N]) is not read without HasBias.
template <int K, int N, bool Transposed, bool HasBias>
inline void linear(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                   const float *weight, const float *bias, float *y,
                   int64_t ldY) {
  void *scratch = genrec_rt_thread_scratch(step, matmulScratchBytes<K, N>());
  Epilogue<Activation::none, HasBias> epilogue;
  epilogue.bias = bias;
  matmul<K, N, Transposed>(step->pool, rows, x, ldX, weight, Transposed ? K : N,
                           y, ldY, epilogue, scratch);
}

/// y[rows, N] = A(x[rows, K] W + bias) + residual, and what A is applied to in `pre`.
/// What is absent (HasBias, HasResidual, HasPre) is not read; `residual` and `pre`
/// are [rows, N].
template <int K, int N, bool Transposed, Activation A, bool HasBias,
          bool HasResidual, bool HasPre>
inline void fusedLinear(genrec_step *step, int64_t rows, const float *x,
                        int64_t ldX, const float *weight, const float *bias,
                        const float *residual, int64_t ldResidual, float *y,
                        int64_t ldY, float *pre, int64_t ldPre) {
  void *scratch = genrec_rt_thread_scratch(step, matmulScratchBytes<K, N>());
  Epilogue<A, HasBias, HasPre, HasResidual> epilogue;
  epilogue.bias = bias;
  epilogue.pre = pre;
  epilogue.ldPre = ldPre;
  epilogue.residual = residual;
  epilogue.ldResidual = ldResidual;
  matmul<K, N, Transposed>(step->pool, rows, x, ldX, weight, Transposed ? K : N,
                           y, ldY, epilogue, scratch);
}

/// out[K, N] = x[rows, K]^T y[rows, N].
template <int K, int N>
inline void weightGradient(genrec_step *step, int64_t rows, const float *x,
                           int64_t ldX, const float *y, int64_t ldY,
                           float *out) {
  void *scratch = genrec_rt_thread_scratch(step, matmulRowsScratchBytes<K, N>());
  matmulRows<K, N>(step->pool, rows, x, ldX, y, ldY, out, N, scratch);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_STEP_LINEAR_H
