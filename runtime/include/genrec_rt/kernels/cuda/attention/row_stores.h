//===- row_stores.h - Rows of a warp's fragment to device memory ------*- C++ -*-===//
//
// A lane of a fragment has two neighbouring columns of two rows: stored as they are, a
// warp writes 16 bytes of a row at a time. Where a warp has shared memory for them, rows
// pass through it and leave in words of 16 bytes, side by side.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H

#include "genrec_rt/kernels/cuda/attention/result_rows.h"
#include "genrec_rt/kernels/cuda/tensor/mma.h"

namespace genrec::rt::cuda {

/// Stores the 16 rows of a warp, row h of a lane times factor[h]; `to` begins with the warp's first
/// row. Rows behind `inside` and columns behind Size are left out.
template <int Size, int N, class Rows>
__device__ __forceinline__ void storeRows(const Fragment<N> &d, const Rows &to, int inside,
                                          const float (&factor)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = fragmentRow() + 8 * h;
    if (row >= inside)
      continue;
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
      if (8 * n < Size) // sizes are multiples of 8
        to.storePair(row, 8 * n + fragmentColumn(), d.d[n][2 * h] * factor[h],
                     d.d[n][2 * h + 1] * factor[h]);
  }
}

/// Stores rows from where they are.
struct DirectRows {
  template <int Size, int N, class Rows>
  __device__ __forceinline__ void store(const Fragment<N> &d, const Rows &to, int inside,
                                        const float (&factor)[2]) const {
    storeRows<Size>(d, to, inside, factor);
  }
};

/// Stores rows through shared memory of the warp, aligned to 16 bytes, in which a row has `Words`
/// words of 16 bytes: so many columns at a time. Words are permuted by the row, so that the lanes
/// of one access hit all banks.
template <int Words> struct StagedRows {
  static_assert(Words == 8 || Words == 16);
  static constexpr int kRows = 16, kBytes = kRows * Words * 16;
  void *space; ///< [kBytes]; nobody else reads or writes it

  /// Called by all lanes of a warp.
  template <int Size, int N, class Rows>
  __device__ __forceinline__ void store(const Fragment<N> &d, const Rows &to, int inside,
                                        const float (&factor)[2]) const {
    constexpr int kColumns = Words * Rows::kInWord;
    if (!to.takesWords()) {
      storeRows<Size>(d, to, inside, factor);
      return;
    }
#pragma unroll
    for (int begin = 0; begin < Size; begin += kColumns)
      storeColumns<Size, kColumns>(d, to, begin, inside, factor);
  }

private:
  template <int Size, int Columns, int N, class Rows>
  __device__ __forceinline__ void storeColumns(const Fragment<N> &d, const Rows &to, int begin,
                                               int inside, const float (&factor)[2]) const {
    using Staged = typename Rows::Staged;
    constexpr int kAtOnce = kWarp / Words; // rows that the lanes store at once
    const int column = laneOf() % Words * Rows::kInWord;
    const bool hasColumn = begin + column < Size;
    typename Rows::Ahead ahead[kRows / kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce)
      if (const int row = i + laneOf() / Words; row < inside && hasColumn)
        ahead[i / kAtOnce] = to.ahead(row, begin + column);
    __syncwarp(); // what was here before has been read
#pragma unroll
    for (int n = begin / 8; n < N / 8 && 8 * n < Size && 8 * n < begin + Columns; ++n)
      for (int h = 0; h < 2; ++h)
        ResultRows<Staged>{at<Staged>(fragmentRow() + 8 * h, 8 * n - begin + fragmentColumn()), 0}
            .storePair(0, 0, d.d[n][2 * h] * factor[h], d.d[n][2 * h + 1] * factor[h]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kRows; i += kAtOnce)
      if (const int row = i + laneOf() / Words; row < inside && hasColumn)
        to.storeWord(row, begin + column, loadWhole<uint4>(at<Staged>(row, column)),
                     ahead[i / kAtOnce]);
  }

  /// Two neighbouring values.
  template <class Staged> __device__ Staged *at(int row, int column) const {
    constexpr int kInWord = 16 / sizeof(Staged);
    const int word = column / kInWord ^ row * static_cast<int>(sizeof(Staged) / 2) % 8;
    return static_cast<Staged *>(space) + (row * Words + word) * kInWord + column % kInWord;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H
