//===- row_addresses.h - Where a store's rows are -----------------*- C++ -*-===//

#ifndef GENREC_RT_CUDA_ROW_ADDRESSES_H
#define GENREC_RT_CUDA_ROW_ADDRESSES_H

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Where rows are; copied into kernels.
struct RowAddresses {
  float *const *chunks = nullptr; ///< on the device
  float *only = nullptr;          ///< the one chunk of a cache: no table of chunks is read
  int64_t chunkShift = 0;         ///< rows are of chunk number >> chunkShift
  int64_t chunkRows = 0;          ///< that a chunk has memory for
  int64_t stride = 0;             ///< floats from one row to the next

  __device__ float *chunkOf(uint32_t number) const {
    return only ? only : chunks[number >> chunkShift];
  }
  __device__ int64_t inChunk(uint32_t number) const {
    return number & ((int64_t(1) << chunkShift) - 1);
  }
  __device__ float *row(uint32_t number) const {
    return chunkOf(number) + inChunk(number) * stride;
  }
  /// The id of a row, behind the rows of its chunk.
  __device__ int64_t *id(uint32_t number) const {
    return reinterpret_cast<int64_t *>(chunkOf(number) + chunkRows * stride) + inChunk(number);
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_ROW_ADDRESSES_H
