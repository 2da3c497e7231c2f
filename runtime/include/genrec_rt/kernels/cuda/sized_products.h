//===- sized_products.h - Products whose sizes are on the device --*- C++ -*-===//
//
// For sizes that the host does not know: it knows bounds, from which grids follow, and
// the rest is read from domains in device memory. Without tensor cores, in fp32.
// An element is a chain of multiply-adds in ascending order: the CPU's bits. Only where
// the result is small and the contraction long, it is cut into chunks, whose
// sums are added in order; an element of k terms is then within k * 2^-24 of the
// sum of the terms' magnitudes, as any order is. The same bits in every run.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SIZED_PRODUCTS_H
#define GENREC_RT_KERNELS_CUDA_SIZED_PRODUCTS_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// A size: `most`, or how many rows `rows` has from row `first` on, `most` at most.
struct ProductSize {
  int64_t most = 0;
  const genrec_domain *rows = nullptr; ///< in device memory
  int64_t first = 0;
};

/// result[m, n] = onto + left right. Rows of `result` from m on up to its bound are zeros unless
/// `keepsRest`, columns from n on up to its bound are `rest`.
struct SizedProduct {
  ProductSize m, k, n;
  const float *left = nullptr; ///< [m, k], or [k, m]
  int64_t ldLeft = 0;
  bool leftTransposed = false;
  const float *right = nullptr; ///< [k, n], or [n, k]
  int64_t ldRight = 0;
  bool rightTransposed = false;
  const float *onto = nullptr; ///< null: 0; may be `result`
  int64_t ldOnto = 0;
  float *result = nullptr;
  int64_t ldResult = 0;
  bool keepsRest = false;
  bool inOrder = false; ///< never cut the contraction: the CPU's bits, and no scratch
  float rest = 0;
  /// Row 0 is noted where an element is NaN; null: not looked for.
  genrec_row_note *nanNote = nullptr;
};

/// Bytes of scratch of `multiply`.
int64_t productScratchBytes(const SizedProduct &product);
void multiply(const SizedProduct &product, void *scratch, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SIZED_PRODUCTS_H
