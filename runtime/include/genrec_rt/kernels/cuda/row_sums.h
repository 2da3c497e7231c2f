//===- row_sums.h - Sums of the chunks of a row kernel -----------*- C++ -*-===//
//
// A kernel that adds up results over all rows leaves the sums of each chunk of rows (row_mapping.h)
// side by side; these are added in a tree over chunk numbers: i and i + 1, then i and i + 2, and so
// on, as on the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_SUMS_H
#define GENREC_RT_KERNELS_CUDA_ROW_SUMS_H

#include "genrec_rt/abi.h"

#include <cuda_runtime.h>

#include <span>

namespace genrec::rt::kernels {

/// Where the sum of a kernel's result goes.
struct SumResult {
  float *to = nullptr;
  int64_t size = 0; ///< floats
};

/// Adds the sums of the chunks that the rows of `domain` (in device memory) are cut into, `floats`
/// each, into `results`, which lie side by side in those of a chunk, each in whole cache lines
/// (sumFloats); zeros where there are no rows.
void addChunks(cudaStream_t stream, const genrec_domain *domain, const float *sums, int64_t floats,
               std::span<const SumResult> results);

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROW_SUMS_H
