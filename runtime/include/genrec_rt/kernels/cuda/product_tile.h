//===- product_tile.h - A tile of a product of float matrices -----*- C++ -*-===//
//
// By a block, through shared memory, without tensor cores: every element is one chain
// of multiply-adds in ascending order, which are the CPU's bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_PRODUCT_TILE_H
#define GENREC_RT_KERNELS_CUDA_PRODUCT_TILE_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

constexpr int kProductThreads = 256;
/// Rows and columns of a tile; a thread has 4 by 4 of them.
constexpr int kProductTile = 64, kProductEach = 4;
/// Neighbouring threads that have the elements of a row.
constexpr int kProductLanes = kProductTile / kProductEach;
/// Steps of the contraction that are in shared memory at a time.
constexpr int kProductSteps = 16;

/// Of a side of a product, the steps that are in shared memory. Lanes write one element of each of
/// 16 steps: a pad of four words leaves two of them in one bank, where without it all were.
using ProductSide = float[kProductSteps][kProductTile + 4];

/// Rows of a thread's elements are row() + i, columns column() + j.
struct ProductTile {
  float sums[kProductEach][kProductEach] = {};

  __device__ static int row() {
    return static_cast<int>(threadIdx.x / kProductLanes * kProductEach);
  }
  __device__ static int column() {
    return static_cast<int>(threadIdx.x % kProductLanes * kProductEach);
  }

  /// sums += left^T right over the first `steps` of two sides: this thread's elements.
  __device__ static void addSteps(const ProductSide &left, const ProductSide &right, int steps,
                                  float (&sums)[kProductEach][kProductEach]) {
    for (int step = 0; step < steps; ++step) {
      const auto rows = loadWhole<Floats<kProductEach>>(&left[step][row()]),
                 columns = loadWhole<Floats<kProductEach>>(&right[step][column()]);
#pragma unroll
      for (int i = 0; i < kProductEach; ++i)
#pragma unroll
        for (int j = 0; j < kProductEach; ++j)
          sums[i][j] = fmaf(rows.x[i], columns.x[j], sums[i][j]);
    }
  }

  /// sums += the contraction over [begin, end) of left(row, step) and right(column, step), which
  /// are 0 outside of the matrices. By the whole block. A side is read along its steps, or, where
  /// its steps are the rows of memory, across them.
  template <bool LeftAcross, bool RightAcross, class Left, class Right>
  __device__ void add(int64_t begin, int64_t end, const Left &left, const Right &right) {
    alignas(16) __shared__ ProductSide lefts, rights;
    for (int64_t first = begin; first < end; first += kProductSteps) {
      load<LeftAcross>(lefts, first, end, left);
      load<RightAcross>(rights, first, end, right);
      __syncthreads();
      const int steps = end - first < kProductSteps ? static_cast<int>(end - first) : kProductSteps;
      addSteps(lefts, rights, steps, sums);
      __syncthreads(); // the next steps are written there
    }
  }

private:
  template <bool Across, class Side>
  __device__ static void load(ProductSide &to, int64_t first, int64_t end, const Side &side) {
    for (int at = static_cast<int>(threadIdx.x); at < kProductSteps * kProductTile;
         at += kProductThreads) {
      const int step = Across ? at / kProductTile : at % kProductSteps;
      const int place = Across ? at % kProductTile : at / kProductSteps;
      to[step][place] = first + step < end ? side(place, first + step) : 0.0f;
    }
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_PRODUCT_TILE_H
