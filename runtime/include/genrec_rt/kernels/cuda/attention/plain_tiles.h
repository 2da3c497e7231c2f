//===- plain_tiles.h - Tiles of attention without tensor cores ---*- C++ -*-===//
//
// Rows in shared memory, products of pairs of them, and sums of rows: what plain.h is made of. A
// thread has 2 x 4 pairs of a tile, so that a value that it reads is a factor of several products.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_TILES_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_TILES_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/attention/result_rows.h"
#include "genrec_rt/kernels/cuda/factors.h"

namespace genrec::rt::cuda {

/// Rows of a tile, and its columns.
template <class C> constexpr int kPlainTile = C::Qk + C::V <= 256 ? 32 : 16;
constexpr int kPlainThreads = 128;

namespace plain {

/// A block is 16 rows of 8 lanes; a thread has every 16th row of a tile, of that every 8th column.
constexpr int kRowThreads = 16, kLanes = 8;
static_assert(kRowThreads * kLanes == kPlainThreads);
template <class C> constexpr int kRows = kPlainTile<C> / kRowThreads;
template <class C> constexpr int kColumns = kPlainTile<C> / kLanes;

/// Where a thread's rows and columns begin.
struct Place {
  int row = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
};

/// Four neighbours in shared memory.
struct alignas(16) Four {
  float values[4];

  static __device__ __forceinline__ Four at(const float *from) {
    Four four;
    const auto word = cuda::loadWhole<uint4>(from);
    __builtin_memcpy(&four, &word, sizeof word);
    return four;
  }
};

/// Rows of a tile in shared memory, in fours, the last one filled up with zeros. An odd number of
/// fours is between rows: the same four of eight rows lies in different banks.
template <int Size, int Rows> struct TileRows {
  static constexpr int kFours = (Size + 3) / 4;
  static constexpr int kStride = 4 * (kFours | 1);
  alignas(16) float values[Rows * kStride];

  /// Rows behind the end of the list become zeros. Neighbouring lanes load neighbouring elements,
  /// as nothing says that fours of them are aligned.
  template <class E>
  __device__ void load(const E *from, int64_t ld, int64_t first, int head, RowRange rows) {
    constexpr int kWidth = 4 * kFours, kAtOnce = 4;
    for (int base = static_cast<int>(threadIdx.x); base < Rows * kWidth;
         base += kAtOnce * kPlainThreads) {
      float loaded[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = (base + i * kPlainThreads) / kWidth;
        const int column = (base + i * kPlainThreads) % kWidth;
        const bool isRow = row < Rows && rows.begin + row < rows.end;
        const E *of = from + (first + rows.begin + row) * ld + head * Size + column;
        loaded[i] = isRow && column < Size ? toFloat(*of) : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (const int at = base + i * kPlainThreads; at < Rows * kWidth)
          values[at / kWidth * kStride + at % kWidth] = loaded[i];
    }
  }
  __device__ Four four(int row, int number) const {
    return Four::at(values + row * kStride + number * 4);
  }
};

/// What is multiplied of each pair of a thread: products[i][j] is of its row i and column j.
template <class C> struct Products {
  float values[kRows<C>][kColumns<C>];

  /// Each sum in the order of the elements.
  template <int Size, int Rows>
  __device__ __forceinline__ Products(const TileRows<Size, Rows> &a, const TileRows<Size, Rows> &b,
                                      const Place &place) {
#pragma unroll
    for (int i = 0; i < kRows<C>; ++i)
#pragma unroll
      for (int j = 0; j < kColumns<C>; ++j)
        values[i][j] = 0;
#pragma unroll 2
    for (int number = 0; number < TileRows<Size, Rows>::kFours; ++number) {
      Four left[kRows<C>], right[kColumns<C>];
#pragma unroll
      for (int i = 0; i < kRows<C>; ++i)
        left[i] = a.four(place.row + i * kRowThreads, number);
#pragma unroll
      for (int j = 0; j < kColumns<C>; ++j)
        right[j] = b.four(place.lane + j * kLanes, number);
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int i = 0; i < kRows<C>; ++i)
#pragma unroll
          for (int j = 0; j < kColumns<C>; ++j)
            values[i][j] = __fmaf_rn(left[i].values[e], right[j].values[e], values[i][j]);
    }
  }
};

/// A weight or a gradient of a score as a factor of v, dOut, q or k.
template <class C> __device__ float factorOf(float weight) {
  return factor<sizeof(typename C::Element) == 2>(weight);
}

/// Weights or gradients of scores of a tile, [row][column].
template <class C> struct Square {
  static constexpr int kStride = kPlainTile<C> + 4;
  alignas(16) float values[kPlainTile<C> * kStride];

  __device__ float &at(int row, int column) { return values[row * kStride + column]; }
};

/// What a thread adds up of its rows of a result: every 8th four of columns.
template <class C, int Size> struct OutputRows {
  static constexpr int kFours = TileRows<Size, 1>::kFours;
  static constexpr int kCount = (kFours + kLanes - 1) / kLanes;
  Four sums[kRows<C>][kCount] = {};

  /// sums[i] *= factor[i].
  __device__ void multiply(const float (&factor)[kRows<C>]) {
#pragma unroll
    for (int i = 0; i < kRows<C>; ++i)
#pragma unroll
      for (int c = 0; c < kCount; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sums[i][c].values[e] *= factor[i];
  }
  /// Adds the rows of the square times `rows`, one after the other.
  __device__ void add(const Square<C> &square, const TileRows<Size, kPlainTile<C>> &rows,
                      const Place &place) {
#pragma unroll 2
    for (int first = 0; first < kPlainTile<C>; first += 4) {
      Four weights[kRows<C>];
#pragma unroll
      for (int i = 0; i < kRows<C>; ++i)
        weights[i] =
            Four::at(square.values + (place.row + i * kRowThreads) * Square<C>::kStride + first);
#pragma unroll
      for (int x = 0; x < 4; ++x)
#pragma unroll
        for (int c = 0; c < kCount; ++c)
          if (place.lane + c * kLanes < kFours)
            addFour(c, weights, x, rows.four(first + x, place.lane + c * kLanes));
    }
  }
  /// Row `row` of the thread, to the first row of `to`.
  template <class Rows>
  __device__ void store(const Rows &to, int row, int lane, float factor) const {
    const bool takesWords = Rows::kInWord == 4 && to.takesWords();
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      const int first = (lane + c * kLanes) * 4;
      float four[4];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        four[e] = sums[row][c].values[e] * factor;
      if (takesWords && first + 4 <= Size) {
        to.storeWord(0, first,
                     uint4{__float_as_uint(four[0]), __float_as_uint(four[1]),
                           __float_as_uint(four[2]), __float_as_uint(four[3])},
                     to.ahead(0, first));
        continue;
      }
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (first + e < Size)
          to.storeOne(first + e, four[e]);
    }
  }

private:
  __device__ __forceinline__ void addFour(int c, const Four (&weights)[kRows<C>], int x,
                                          const Four &values) {
#pragma unroll
    for (int i = 0; i < kRows<C>; ++i) {
      const float weight = factorOf<C>(weights[i].values[x]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[i][c].values[e] = __fmaf_rn(weight, values.values[e], sums[i][c].values[e]);
    }
  }
};

} // namespace plain
} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_TILES_H
