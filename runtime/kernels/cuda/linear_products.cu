//===- linear_products.cu - Matrix products over the rows of a domain -----===//
//
// Tiles of 64 by 64 in 256 threads, 4 by 4 elements each, operands through shared memory.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/linear_products.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/activation.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/product_tile.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kTile = kProductTile, kDepth = kProductSteps, kEach = kProductEach;
static_assert(kThreads == kProductThreads);

/// An element of a factor, at `at` of either what was rounded before, or floats.
__device__ inline float factorAt(const Bf16 *rounded, const float *floats, bool rounds,
                                 int64_t at) {
  return rounded ? toFloat(rounded[at]) : factor(rounds, floats[at]);
}

/// Three blocks on a multiprocessor, which is 80 registers; ptxas takes 100 by itself.
__global__ void __launch_bounds__(kThreads, 3) multiplyTiles(const LinearProduct p) {
  alignas(16) __shared__ ProductSide left, right;
  const int64_t rows = p.rows->count, columns = static_cast<int64_t>(blockIdx.y) * kTile;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTile; first < rows;
       first += static_cast<int64_t>(gridDim.x) * kTile) {
    float sums[kEach][kEach] = {};
    for (int64_t base = 0; base < p.k; base += kDepth) {
      const int depth = static_cast<int>(min(p.k - base, static_cast<int64_t>(kDepth)));
      for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
        const int k = i % kDepth, r = i / kDepth;
        const bool isThere = first + r < rows && k < depth;
        left[k][r] =
            isThere ? factorAt(p.roundedX, p.x, p.bf16, (first + r) * p.ldX + base + k) : 0.0f;
      }
      for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
        const int k = p.transposed ? i % kDepth : i / kTile;
        const int c = p.transposed ? i / kDepth : i % kTile;
        const int64_t column = columns + c, at = base + k;
        const bool isThere = k < depth && column < p.n;
        const int64_t place = p.transposed ? column * p.k + at : at * p.n + column;
        right[k][c] = isThere ? factor(p.bf16, p.weight[place]) : 0.0f;
      }
      __syncthreads();
      ProductTile::addSteps(left, right, depth, sums);
      __syncthreads();
    }
    const int64_t row = first + ProductTile::row(), column = columns + ProductTile::column();
    for (int i = 0; i < kEach && row + i < rows; ++i)
      for (int j = 0; j < kEach && column + j < p.n; ++j) {
        float t = sums[i][j];
        if (p.bias)
          t = t + p.bias[column + j];
        if (p.pre)
          p.pre[(row + i) * p.ldPre + column + j] = t;
        t = activate(p.activation, t);
        if (p.residual)
          t = t + p.residual[(row + i) * p.ldResidual + column + j];
        p.y[(row + i) * p.ldY + column + j] = t;
      }
  }
}

/// Chunks of rows whose sums are added up in their order: a function of the number of rows, and at
/// most kMostChunks of them.
constexpr int64_t kLeastChunk = 256, kMostChunks = 64;
__host__ __device__ inline int64_t chunkRows(int64_t rows) {
  const int64_t even = (rows + kMostChunks - 1) / kMostChunks;
  return even < kLeastChunk ? kLeastChunk : even;
}
__host__ __device__ inline int64_t chunkCount(int64_t rows) {
  return (rows + chunkRows(rows) - 1) / chunkRows(rows);
}
int64_t mostChunks(int64_t capacity) {
  return std::clamp<int64_t>(blocksFor(capacity, kLeastChunk), 1, kMostChunks);
}

__global__ void __launch_bounds__(kThreads) contractChunks(const RowContraction c, float *parts) {
  alignas(16) __shared__ ProductSide left, right;
  const int64_t rows = c.rows->count, each = chunkRows(rows);
  const int64_t begin = blockIdx.z * each, end = min(rows, begin + each);
  if (begin >= end)
    return;
  const int64_t firstK = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t firstN = static_cast<int64_t>(blockIdx.y) * kTile;
  // A thread's elements of a slice, which are under way while the slice before is multiplied.
  constexpr int kLoads = kTile * kDepth / kThreads;
  float nextX[kLoads], nextY[kLoads];
  auto load = [&](int64_t base) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int i = threadIdx.x + j * kThreads, column = i % kTile;
      const int64_t row = base + i / kTile;
      const bool isRow = row < end;
      const int64_t atX = firstK + column, atY = firstN + column;
      nextX[j] = isRow && atX < c.k ? factorAt(c.roundedX, c.x, /*rounds=*/false, row * c.ldX + atX)
                                    : 0.0f;
      nextY[j] = isRow && atY < c.n ? factorAt(c.roundedY, c.y, /*rounds=*/false, row * c.ldY + atY)
                                    : 0.0f;
    }
  };
  float sums[kEach][kEach] = {};
  load(begin);
  for (int64_t base = begin; base < end; base += kDepth) {
#pragma unroll
    for (int j = 0; j < kLoads; ++j) {
      const int i = threadIdx.x + j * kThreads;
      left[i / kTile][i % kTile] = factor(c.bf16, nextX[j]);
      right[i / kTile][i % kTile] = factor(c.bf16, nextY[j]);
    }
    __syncthreads();
    load(base + kDepth);
    ProductTile::addSteps(left, right,
                          static_cast<int>(min(end - base, static_cast<int64_t>(kDepth))), sums);
    __syncthreads();
  }
  float *part = parts + blockIdx.z * c.k * c.n;
  const int64_t row = firstK + ProductTile::row(), column = firstN + ProductTile::column();
  for (int i = 0; i < kEach && row + i < c.k; ++i)
    for (int j = 0; j < kEach && column + j < c.n; ++j)
      part[(row + i) * c.n + column + j] = sums[i][j];
}

__global__ void __launch_bounds__(kThreads) addParts(const RowContraction c, const float *parts) {
  const int64_t size = c.k * c.n, count = chunkCount(c.rows->count);
  for (int64_t i = threadInGrid(); i < size; i += threadsInGrid()) {
    float sum = 0;
    for (int64_t part = 0; part < count; ++part)
      sum += parts[part * size + i];
    c.out[i] = sum;
  }
}

unsigned tiles(int64_t size) { return static_cast<unsigned>(blocksFor(size, kTile)); }

} // namespace

void multiply(const LinearProduct &product, cudaStream_t stream) {
  if (product.capacity > 0)
    GENREC_CUDA_LAUNCH(stream,
                       (LaunchShape{dim3(std::min<unsigned>(tiles(product.capacity), kMostBlocks),
                                         tiles(product.n)),
                                    dim3(kThreads)}),
                       multiplyTiles, product);
}

int64_t contractionScratchBytes(int64_t capacity, int64_t k, int64_t n) {
  return mostChunks(capacity) * k * n * 4;
}

void contractRows(const RowContraction &contraction, void *scratch, cudaStream_t stream) {
  const int64_t size = contraction.k * contraction.n;
  auto *parts = static_cast<float *>(scratch);
  const LaunchShape shape{dim3(tiles(contraction.k), tiles(contraction.n),
                               static_cast<unsigned>(mostChunks(contraction.capacity))),
                          dim3(kThreads)};
  GENREC_CUDA_LAUNCH(stream, shape, contractChunks, contraction, parts);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(size, kThreads), addParts, contraction, parts);
}

} // namespace genrec::rt::cuda
