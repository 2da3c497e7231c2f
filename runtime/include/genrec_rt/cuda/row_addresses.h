//===- row_addresses.h - Where a store's rows are -----------------*- C++ -*-===//

#ifndef GENREC_RT_CUDA_ROW_ADDRESSES_H
#define GENREC_RT_CUDA_ROW_ADDRESSES_H

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Where rows are; copied into kernels.
struct RowAddresses {
  float *const *chunks = nullptr; ///< on the device
  int64_t chunkShift = 0;
  int64_t stride = 0; ///< floats from one row to the next

  __host__ __device__ int64_t chunkRows() const { return int64_t(1) << chunkShift; }
  __device__ float *row(uint32_t number) const {
    return chunks[number >> chunkShift] + (number & (chunkRows() - 1)) * stride;
  }
  /// The id of a row, behind the rows of its chunk.
  __device__ int64_t *id(uint32_t number) const {
    return reinterpret_cast<int64_t *>(chunks[number >> chunkShift] + chunkRows() * stride) +
           (number & (chunkRows() - 1));
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_ROW_ADDRESSES_H
