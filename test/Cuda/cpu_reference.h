//===- cpu_reference.h - Kernels of the CPU for tests of devices --*- C++ -*-===//
//
// Kernels whose headers have vector code, which nvcc does not compile: cpu_reference.cpp calls them
// for the sizes that tests ask for, compiled by the project's own compiler. Where templates lack a
// size the linker says so.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_CPU_REFERENCE_H
#define GENREC_TEST_CUDA_CPU_REFERENCE_H

#include "genrec_rt/abi.h"

#include <cstdint>

namespace genrec::rt::cuda::test {

/// y = x wT: x [m, k], w [n, k], y [m, n], with their leading dimensions.
void multiplyOnCpu(int64_t m, int64_t k, int64_t n, const float *x, int64_t ldX, const float *w,
                   int64_t ldW, float *y, int64_t ldY);

/// Cross attention of the rows of `queries` with those of `keys`, and its gradients for `dOut`.
struct CrossAttentionCase {
  const genrec_domain *queries, *keys;
  const float *q;
  int64_t ldQ;
  const float *k;
  int64_t ldK;
  const float *v;
  int64_t ldV;
  float scale;
  const float *dOut;
  int64_t ldDOut;
};
/// Results of both directions, [rows, Heads * Qk] and [rows, Heads * V].
struct CrossAttentionResults {
  float *out, *dQ, *dK, *dV;
};
/// Bf16: its factors are rounded.
template <int Heads, int Qk, int V, bool Bf16>
void crossAttentionOnCpu(const CrossAttentionCase &of, const CrossAttentionResults &to);

/// Products per distinct row of a group and their gradients: of `found`, what findDistinct left,
/// the `parts` lookups from `first` on. `columns`: where the rows of a lookup begin in the weight.
struct DistinctCase {
  const void *found;
  int64_t first, parts;
  const float *values;
  int64_t ldValues;
  const float *weight;
  const int64_t *columns;
  const float *gradient;
  int64_t ldY;
};
/// y [count, N] by ldY, to which a group adds that is not the first; dvalues [distinct, D], dweight
/// [parts * D, N].
struct DistinctResults {
  float *y, *dvalues, *dweight;
};
template <int D, int N> void distinctLinearOnCpu(const DistinctCase &of, const DistinctResults &to);

/// In-batch softmax of `rows` rows of vectors of `size`, and its gradients for `dLoss`; `logQ` and
/// `valid` may be null.
struct InBatchCase {
  int64_t rows, size;
  const float *query;
  int64_t ldQuery;
  const float *item;
  int64_t ldItem;
  const int64_t *id;
  const float *logQ;
  const uint8_t *valid;
  float temperature;
  const float *dLoss;
};
/// loss [rows], kept [rows, 2], gradients [rows, size].
struct InBatchResults {
  float *loss, *kept, *dQuery, *dItem;
};
void inBatchOnCpu(const InBatchCase &of, const InBatchResults &to);

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_CPU_REFERENCE_H
