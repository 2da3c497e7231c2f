//===- row_stores.h - Rows of a warp's fragment to device memory ------*- C++ -*-===//
//
// A lane of a fragment has two neighbouring columns of two rows: stored as they are, a
// warp writes 16 bytes of a row at a time. Where a warp has shared memory for them, rows
// pass through it and leave in words of 16 bytes, side by side.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H

#include "genrec_rt/kernels/cuda/attention/prepare.h"
#include "genrec_rt/kernels/cuda/tensor/mma.h"

namespace genrec::rt::cuda {

/// Two values next to each other, where they exist.
__device__ inline void storePair(Bf16 *to, float low, float high) {
  const uint32_t packed = packBf16(low, high);
  *reinterpret_cast<uint32_t *>(to) = packed;
}
__device__ inline void storePair(float *to, float low, float high) { // which nothing aligns
  to[0] = low;
  to[1] = high;
}

/// Stores the 16 rows of a warp, row h of a lane times factor[h]; `to` is the warp's first row.
/// Rows behind `inside` and columns behind Size are left out.
template <int Size, int N, class Result>
__device__ __forceinline__ void storeRows(const Fragment<N> &d, Result *to, int64_t ld, int inside,
                                          const float (&factor)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = fragmentRow() + 8 * h;
    if (row >= inside)
      continue;
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
      if (8 * n < Size) // sizes are multiples of 8
        storePair(to + row * ld + 8 * n + fragmentColumn(), d.d[n][2 * h] * factor[h],
                  d.d[n][2 * h + 1] * factor[h]);
  }
}

/// Stores rows from where they are.
struct DirectRows {
  template <int Size, int N, class Result>
  __device__ __forceinline__ void store(const Fragment<N> &d, Result *to, int64_t ld, int inside,
                                        const float (&factor)[2]) const {
    storeRows<Size>(d, to, ld, inside, factor);
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
  template <int Size, int N, class Result>
  __device__ __forceinline__ void store(const Fragment<N> &d, Result *to, int64_t ld, int inside,
                                        const float (&factor)[2]) const {
    constexpr int kInWord = 16 / sizeof(Result), kColumns = Words * kInWord;
    if constexpr (sizeof(Result) == 4)
      if (reinterpret_cast<uint64_t>(to) % 16 != 0 || ld % kInWord != 0) {
        storeRows<Size>(d, to, ld, inside, factor); // nothing aligns rows of floats
        return;
      }
#pragma unroll
    for (int begin = 0; begin < Size; begin += kColumns) {
      __syncwarp(); // what was here before has been read
#pragma unroll
      for (int n = begin / 8; n < N / 8 && 8 * n < Size && 8 * n < begin + kColumns; ++n)
        for (int h = 0; h < 2; ++h)
          storePair(at<Result>(fragmentRow() + 8 * h, 8 * n - begin + fragmentColumn()),
                    d.d[n][2 * h] * factor[h], d.d[n][2 * h + 1] * factor[h]);
      __syncwarp();
      const int column = laneOf() % Words * kInWord;
#pragma unroll
      for (int i = 0; i < kRows; i += kWarp / Words) {
        const int row = i + laneOf() / Words;
        if (row < inside && begin + column < Size)
          storeFour(reinterpret_cast<uint4 *>(to + row * ld + begin + column),
                    loadWhole<uint4>(at<Result>(row, column)));
      }
    }
  }

private:
  /// Two neighbouring values.
  template <class Result> __device__ Result *at(int row, int column) const {
    constexpr int kInWord = 16 / sizeof(Result);
    const int word = column / kInWord ^ row * static_cast<int>(sizeof(Result) / 2) % 8;
    return static_cast<Result *>(space) + (row * Words + word) * kInWord + column % kInWord;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_STORES_H
