//===- rows.h - Gathering, pooling, updating rows -----------------*- C++ -*-===//
//
// What a step does with table rows beside finding them. A warp has a row; rows have
// 4 to 512 elements, float or Bf16, at any stride. Sums are taken in the order of
// positions, in float: the same bits whatever runs when, and those of the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_ROWS_H
#define GENREC_RT_CUDA_ROWS_H

#include "genrec_rt/cuda/bf16.h"

#include <cstdint>

namespace genrec::rt::cuda {

/// out[i * ldOut …] = the `dim` elements of row i; zeros for null.
template <class T>
void gatherRows(const T *const *rows, int64_t count, int64_t dim, T *out, int64_t ldOut,
                cudaStream_t stream);

enum class Pool { sum, mean };

/// Recover and pool in one: out[p * ldOut …] = the sum or mean over the children i in [offsets[p],
/// offsets[p + 1]) of rows[inverse[i]]; duplicates are read, never written out. Zeros for an empty
/// list.
template <class T>
void poolRows(const T *const *rows, const uint32_t *inverse, const int64_t *offsets,
              int64_t parents, int64_t dim, Pool pool, float *out, int64_t ldOut,
              cudaStream_t stream);

/// PyTorch's equations and defaults; moments of Adam are lazy (touched rows only).
enum class OptimizerKind { sgd, adagrad, adam, adamw };

struct RowOptimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  float rate = 0.01f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weightDecay = 0;
  /// The 1-based step of Adam's bias correction.
  int64_t step = 1;
};

/// Gradients of the occurrences of a row: occurrence i adds gradients[parent(i) * ld …], where
/// parent(i) is parents[i], or i itself for null; times 1 / max(size of the list, 1) where
/// `listOffsets` is given (a mean).
struct RowGradients {
  const float *gradients = nullptr;
  int64_t ld = 0;
  const int64_t *parents = nullptr;
  const int64_t *listOffsets = nullptr;
};

/// Reduce and update in one pass: row u gets the sum of the gradients of its occurrences
/// order[segments[u] … segments[u + 1]) (order.h), and one step of the optimizer. A row is `dim`
/// elements of T, rounded up to 4 bytes, then the states, `dim` floats each. Null rows are left
/// out. `count` rows, of which *used exist (null: all).
template <class T>
void updateRows(T *const *rows, int64_t count, const uint32_t *used, int64_t dim,
                const uint32_t *order, const int64_t *segments, const RowGradients &gradients,
                const RowOptimizer &optimizer, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_ROWS_H
