//===- tile.h - Rows of bfloat16 in shared memory, for mma ---------*- C++ -*-===//
//
// Rows are cut into chunks of 16 bytes; chunk c of row r lies at chunk c ^ (r % 8),
// so that eight rows of one chunk, which is what loadMatrices reads at a time, are on
// different banks.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_TENSOR_TILE_H
#define GENREC_RT_KERNELS_CUDA_TENSOR_TILE_H

#include "genrec_rt/kernels/cuda/tensor/mma.h"

namespace genrec::rt::cuda {

/// Rows x Size values; Size is padded to whole groups of 8 chunks.
template <int Rows, int Size> struct MmaTile {
  static constexpr int kChunks = (Size + 63) / 64 * 8;
  /// Steps of 16 that cover Size; the last may reach into chunks of zeros.
  static constexpr int kSteps = (Size + 15) / 16;
  alignas(16) uint16_t values[Rows * kChunks * 8];

  __device__ uint16_t *chunk(int row, int chunk) {
    return values + (row * kChunks + (chunk ^ (row & 7))) * 8;
  }
  __device__ const uint16_t *chunk(int row, int chunk) const {
    return const_cast<MmaTile *>(this)->chunk(row, chunk);
  }

  /// Starts copying rows [0, inside) from `from`; the others, and columns behind Size, become
  /// zeros. Called by `threads` threads.
  __device__ void copyFrom(const Bf16 *from, int64_t ld, int inside, int thread, int threads) {
    constexpr int kUsed = kSteps * 2;
    for (int at = thread; at < Rows * kUsed; at += threads) {
      const int row = at / kUsed, c = at % kUsed;
      const bool exists = row < inside && c * 8 < Size;
      copyAsync16(chunk(row, c), exists ? from + row * ld + c * 8 : from, exists);
    }
  }

  /// Rows [row, row + 16) and columns of one step as an A.
  __device__ void loadLeft(uint32_t (&a)[4], int row, int step) const {
    const int m = laneOf() / 8, r = laneOf() % 8;
    loadMatrices(a, chunk(row + (m & 1) * 8 + r, 2 * step + (m >> 1)));
  }
  /// The same of the transposed tile: columns [16 * group, ..) as rows of A, rows [row, row + 16)
  /// as its columns.
  __device__ void loadLeftTransposed(uint32_t (&a)[4], int row, int group) const {
    const int m = laneOf() / 8, r = laneOf() % 8;
    loadMatricesTransposed(a, chunk(row + (m >> 1) * 8 + r, 2 * group + (m & 1)));
  }
  /// Two B side by side, b[0], b[1] and b[2], b[3], from the transposed tile: rows [row, row + 16)
  /// of the tile are their columns, the columns of one step their rows.
  __device__ void loadRightTransposed(uint32_t (&b)[4], int row, int step) const {
    const int m = laneOf() / 8, r = laneOf() % 8;
    loadMatrices(b, chunk(row + (m >> 1) * 8 + r, 2 * step + (m & 1)));
  }
  /// Two B side by side: rows [row, row + 16) of the tile, columns [16 * group, 16 * group + 16).
  __device__ void loadRight(uint32_t (&b)[4], int row, int group) const {
    const int m = laneOf() / 8, r = laneOf() % 8;
    loadMatricesTransposed(b, chunk(row + (m & 1) * 8 + r, 2 * group + (m >> 1)));
  }
};

/// d += left[row .. row + 16) * right^T, over their common Size.
template <int N, int Size, int LeftRows, int RightRows>
__device__ __forceinline__ void multiplyRows(Fragment<N> &d, const MmaTile<LeftRows, Size> &left,
                                             int row, const MmaTile<RightRows, Size> &right) {
  static_assert(N <= RightRows);
#pragma unroll
  for (int step = 0; step < MmaTile<LeftRows, Size>::kSteps; ++step) {
    uint32_t a[4];
    left.loadLeft(a, row, step);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      uint32_t b[4];
      right.loadRightTransposed(b, 16 * n, step);
      multiplyAdd(d.d[2 * n], a, b[0], b[1]);
      multiplyAdd(d.d[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// d += weights (rounded) * right[0 .. K).
template <int N, int K, int Rows, int Size>
__device__ __forceinline__ void multiplyWeights(Fragment<N> &d, const Fragment<K> &weights,
                                                const MmaTile<Rows, Size> &right) {
#pragma unroll
  for (int step = 0; step < K / 16; ++step) {
    uint32_t a[4];
    weights.asLeft(step, a);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      uint32_t b[4];
      right.loadRight(b, 16 * step, n);
      multiplyAdd(d.d[2 * n], a, b[0], b[1]);
      multiplyAdd(d.d[2 * n + 1], a, b[2], b[3]);
    }
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_TENSOR_TILE_H
