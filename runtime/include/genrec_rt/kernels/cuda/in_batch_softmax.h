//===- in_batch_softmax.h - Softmax over the items of other rows -*- C++ -*-===//
//
// kernels/cpu/in_batch_softmax.h says what is computed. A block has a tile of rows and goes over
// tiles of others (product_tile.h): a score is one chain of multiply-adds in the order of columns.
// Forward keeps the greatest logit and the sum per row, rescaled as greater logits come. Backward
// makes the coefficients of a tile of scores again and multiplies them by the others' vectors, 64
// columns of the gradient per block; queries and items are a kernel each, so that a sum has one
// writer. No atomics: the same bits in every run. A sum over n rows is in their order, that of exp
// by tiles: within (n + size + 8) * 2^-23 of the sum of the terms' magnitudes. Without tensor
// cores.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_IN_BATCH_SOFTMAX_H
#define GENREC_RT_KERNELS_CUDA_IN_BATCH_SOFTMAX_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// A call; the domain and arrays lie in device memory, leading dimensions are in floats.
struct InBatch {
  const genrec_domain *rows = nullptr;
  int64_t capacity = 0;
  int64_t size = 0;             ///< of a vector
  const float *query = nullptr; ///< [rows, size]
  int64_t ldQuery = 0;
  const float *item = nullptr; ///< [rows, size]
  int64_t ldItem = 0;
  const int64_t *id = nullptr;    ///< of the items
  const float *logQ = nullptr;    ///< null: 0
  const uint8_t *valid = nullptr; ///< null: all rows count
  float perTemperature = 1;
};

/// loss [rows], kept [rows, 2]; rows past the last one are zeros.
void inBatchForward(const InBatch &a, float *loss, float *kept, cudaStream_t stream);

/// dQuery, dItem [rows, size] one behind another, of the gradient `dLoss` of the loss; rows past
/// the last one are zeros.
void inBatchBackward(const InBatch &a, const float *kept, const float *dLoss, float *dQuery,
                     float *dItem, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_IN_BATCH_SOFTMAX_H
