//===- step_linear.h - Matrix products as emitted stages call them -*- C++ -*-===//
//
// gemm.h and gemm_bf16.h (Bf16) with scratch from the step, and for blocks of rows.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_STEP_LINEAR_H
#define GENREC_RT_KERNELS_CPU_STEP_LINEAR_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/gemm_bf16.h"
#include "genrec_rt/kernels/cpu/row_blocks.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

template <int K, int N, bool Transposed, bool Bf16, class E>
inline void matmulOf(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                     const float *weight, float *y, int64_t ldY, const E &epilogue) {
  void *scratch = genrec_rt_thread_scratch(step, matmulScratchBytes<K, N>());
  constexpr int64_t ld = Transposed ? K : N;
  if constexpr (Bf16)
    matmulBf16<K, N, Transposed>(step->pool, rows, x, ldX, weight, ld, y, ldY, epilogue, scratch);
  else
    matmul<K, N, Transposed>(step->pool, rows, x, ldX, weight, ld, y, ldY, epilogue, scratch);
}

/// For a block of rows: the weight is packed once for all blocks.
template <int K, int N, bool Transposed, bool Bf16, class E>
inline void matmulOf(RowBlock *block, int64_t rows, const float *x, int64_t ldX,
                     const float *weight, float *y, int64_t ldY, const E &epilogue) {
  if (block->isWhole())
    return matmulOf<K, N, Transposed, Bf16>(block->all, rows, x, ldX, weight, y, ldY, epilogue);
  float *packed = block->keep<float>(matmulScratchBytes<K, N>() / 4);
  constexpr int64_t ld = Transposed ? K : N;
  const MatmulSides sides{x, ldX, packed, y, ldY, K};
  if (block->phase == BlockPhase::prepare) {
    if constexpr (Bf16)
      packBf16Columns<K, N>(weight, ld, Transposed, packed);
    else
      packColumns(planColumns(K, N), weight, ld, Transposed, K, packed);
  } else if (block->phase == BlockPhase::rows) {
    if constexpr (Bf16)
      matmulBf16Range<K, N>(sides, epilogue, 0, rows);
    else
      matmulRange<K, N>(sides, epilogue, 0, rows);
  }
}

} // namespace detail

/// y[rows, N] = x[rows, K] W + bias; W is [K, N], or [N, K] when Transposed.
/// `bias` ([N]) is not read without HasBias. With Bf16 x and W are rounded to bfloat16. `step` is a
/// genrec_step or a RowBlock.
template <int K, int N, bool Transposed, bool HasBias, bool Bf16 = false, class Step>
inline void linear(Step *step, int64_t rows, const float *x, int64_t ldX, const float *weight,
                   const float *bias, float *y, int64_t ldY) {
  Epilogue<Activation::none, HasBias> epilogue;
  epilogue.bias = bias;
  detail::matmulOf<K, N, Transposed, Bf16>(step, rows, x, ldX, weight, y, ldY, epilogue);
}

/// y[rows, N] = A(x[rows, K] W + bias) + residual, and what A is applied to in `pre`.
/// What is absent (HasBias, HasResidual, HasPre) is not read; `residual` and `pre`
/// are [rows, N].
template <int K, int N, bool Transposed, Activation A, bool HasBias, bool HasResidual, bool HasPre,
          bool Bf16 = false, class Step>
inline void fusedLinear(Step *step, int64_t rows, const float *x, int64_t ldX, const float *weight,
                        const float *bias, const float *residual, int64_t ldResidual, float *y,
                        int64_t ldY, float *pre, int64_t ldPre) {
  Epilogue<A, HasBias, HasPre, HasResidual> epilogue;
  epilogue.bias = bias;
  epilogue.pre = pre;
  epilogue.ldPre = ldPre;
  epilogue.residual = residual;
  epilogue.ldResidual = ldResidual;
  detail::matmulOf<K, N, Transposed, Bf16>(step, rows, x, ldX, weight, y, ldY, epilogue);
}

/// out[K, N] = x[rows, K]^T y[rows, N]; with Bf16 both are rounded to bfloat16.
template <int K, int N, bool Bf16 = false>
inline void weightGradient(genrec_step *step, int64_t rows, const float *x, int64_t ldX,
                           const float *y, int64_t ldY, float *out) {
  void *scratch = genrec_rt_thread_scratch(step, matmulRowsScratchBytes<K, N>());
  if constexpr (Bf16)
    matmulRowsBf16<K, N>(step->pool, rows, x, ldX, y, ldY, out, N, scratch);
  else
    matmulRows<K, N>(step->pool, rows, x, ldX, y, ldY, out, N, scratch);
}

/// The same for blocks of rows, with sums of its own for each chunk.
template <int K, int N, bool Bf16 = false>
inline void weightGradient(RowBlock *block, int64_t rows, const float *x, int64_t ldX,
                           const float *y, int64_t ldY, float *out) {
  if (block->isWhole())
    return weightGradient<K, N, Bf16>(block->all, rows, x, ldX, y, ldY, out);
  constexpr int64_t ldPart = roundUp(N, kLanes), floats = K * ldPart;
  float *parts = block->keepPerChunk(floats);
  if (block->phase == BlockPhase::finish)
    return detail::addPartials(block->pool, parts, block->chunks, K, N, ldPart,
                               /*accumulate=*/false, out, N);
  if (block->phase != BlockPhase::rows)
    return;
  float *part = parts + block->chunk * floats;
  if (block->startsChunk)
    __builtin_memset(part, 0, floats * 4); // a block may have no rows
  if constexpr (Bf16)
    detail::contractBf16Range<K, N>({x, ldX, y, ldY}, 0, rows, part, ldPart, /*first=*/false);
  else
    detail::contractRange<K, N>({x, ldX, y, ldY}, 0, rows, part, ldPart, /*first=*/false);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_LINEAR_H
