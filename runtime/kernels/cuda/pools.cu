//===- pools.cu - Pooling the parts of long lists -------------------------===//

#include "genrec_rt/kernels/cuda/pools.h"

#include "genrec_rt/cuda/device.h"

#include <algorithm>

namespace genrec::rt::kernels {
namespace {

constexpr int kPoolThreads = 128;
/// Parts of a column that a lane loads together.
constexpr int kAhead = 8;

/// What a launch pools, in device memory.
template <int Room> struct Pooled {
  PooledLists of[Room];
};

template <class T> __device__ T pooled(PoolOf of, T before, T part) {
  if (of == PoolOf::max)
    return part > before ? part : before;
  return before + part;
}

/// Column `column` of a result of the list that begins at leaf `first`.
template <class T>
__device__ T poolColumn(const PoolResult &result, int64_t words, const float *parts, int64_t first,
                        int64_t pieces, int64_t column) {
  auto load = [&](int64_t piece) {
    const int64_t slot = poolSlot(first + piece * kPoolPiece, piece == 0);
    return reinterpret_cast<const T *>(parts + slot * words + result.word)[column];
  };
  T total = load(0);
  for (int64_t piece = 1; piece < pieces; piece += kAhead) {
    T loaded[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (piece + i < pieces)
        loaded[i] = load(piece + i);
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (piece + i < pieces)
        total = pooled(result.of, total, loaded[i]);
  }
  return total;
}

/// Writes row `row` of all results; a lane has every 32nd column.
__device__ void poolList(const PoolShape &shape, const PooledLists &lists, int64_t row,
                         int64_t first, int64_t size) {
  const int64_t pieces = (size + kPoolPiece - 1) / kPoolPiece;
  for (int i = 0; i < shape.count; ++i) {
    const PoolResult &result = shape.results[i];
    for (int64_t column = cuda::laneOf(); column < result.width; column += cuda::kWarp) {
      const int64_t at = row * result.width + column;
      if (result.isInteger) {
        static_cast<int64_t *>(lists.results[i])[at] =
            poolColumn<int64_t>(result, shape.words, lists.parts, first, pieces, column);
      } else {
        const float total =
            poolColumn<float>(result, shape.words, lists.parts, first, pieces, column);
        static_cast<float *>(lists.results[i])[at] =
            result.of == PoolOf::mean ? total / static_cast<float>(size) : total;
      }
    }
  }
}

/// A lane looks at the size of a list; those with several pieces get all lanes of its warp.
template <int Room>
__global__ void __launch_bounds__(kPoolThreads, 8)
    poolLists(__grid_constant__ const PoolShape shape,
              __grid_constant__ const Pooled<Room> pooled) {
  const PooledLists &lists = pooled.of[blockIdx.y];
  const genrec_domain *leaves = lists.leaves;
  const int64_t rows = lists.domain->count, warps = cuda::threadsInGrid() / cuda::kWarp;
  for (int64_t base = cuda::threadInGrid() / cuda::kWarp * cuda::kWarp; base < rows;
       base += warps * cuda::kWarp) {
    const int64_t row = base + cuda::laneOf();
    const int64_t first = row < rows ? firstLeaf(leaves, shape.depth, row) : 0;
    const int64_t size = row < rows ? firstLeaf(leaves, shape.depth, row + 1) - first : 0;
    for (uint32_t left = __ballot_sync(0xFFFFFFFFu, size > kPoolPiece); left; left &= left - 1) {
      const int lane = __ffs(static_cast<int>(left)) - 1;
      poolList(shape, lists, base + lane, __shfl_sync(0xFFFFFFFFu, first, lane),
               __shfl_sync(0xFFFFFFFFu, size, lane));
    }
  }
}

template <int Room>
void launchLists(cudaStream_t stream, const PoolShape &shape, const PooledLists *lists, int count) {
  Pooled<Room> pooled{};
  int64_t rows = 0;
  for (int i = 0; i < count; ++i) {
    pooled.of[i] = lists[i];
    pooled.of[i].domain = lists[i].domain->device;
    pooled.of[i].leaves = lists[i].leaves->device;
    rows = std::max(rows, lists[i].domain->capacity);
  }
  cuda::LaunchShape blocks = cuda::shapeOfThreads(rows, kPoolThreads);
  blocks.grid.y = static_cast<unsigned>(count);
  GENREC_CUDA_LAUNCH(stream, blocks, poolLists<Room>, shape, pooled);
}

} // namespace

void poolParts(cudaStream_t stream, const PoolShape &shape, const PooledLists *lists, int count) {
  if (shape.count == 0)
    return;
  if (count == 1)
    return launchLists<1>(stream, shape, lists, 1);
  for (int begin = 0; begin < count; begin += kPooledColumns)
    launchLists<kPooledColumns>(stream, shape, lists + begin,
                                std::min(count - begin, kPooledColumns));
}

} // namespace genrec::rt::kernels
