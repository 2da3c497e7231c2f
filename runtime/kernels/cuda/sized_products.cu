//===- sized_products.cu - Products whose sizes are on the device ---------===//

#include "genrec_rt/kernels/cuda/sized_products.h"

#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/product_tile.h"
#include "genrec_rt/kernels/cuda/row_notes.h"

namespace genrec::rt::cuda {

namespace {

/// A result of fewer tiles is cut along a contraction of more than kChunk steps.
constexpr int64_t kEnoughTiles = 128, kChunk = 4096;
constexpr int64_t kMostPartialBytes = int64_t(64) << 20;

__device__ int64_t sizeOf(const ProductSize &size) {
  if (!size.rows)
    return size.most;
  const int64_t left = size.rows->count - size.first;
  return left < 0 ? 0 : left < size.most ? left : size.most;
}

/// How a contraction is cut.
struct ProductChunks {
  int64_t steps, count;

  explicit ProductChunks(const SizedProduct &p) : steps(std::max<int64_t>(p.k.most, 1)), count(1) {
    const int64_t tiles = blocksFor(p.m.most, kProductTile) * blocksFor(p.n.most, kProductTile);
    if (p.inOrder || tiles >= kEnoughTiles || p.k.most <= kChunk)
      return;
    const int64_t bytes = std::max<int64_t>(p.m.most * p.n.most * 4, 1);
    const int64_t mostChunks = std::max<int64_t>(kMostPartialBytes / bytes, 1);
    steps = blocksFor(blocksFor(p.k.most, mostChunks), kChunk) * kChunk;
    count = blocksFor(p.k.most, steps);
  }
};

/// An element as the product leaves it; whether it is NaN.
__device__ bool writeElement(const SizedProduct &p, int64_t rows, int64_t columns, int64_t row,
                             int64_t column, float sum) {
  if (row >= rows && p.keepsRest)
    return false;
  float value = row >= rows ? 0.0f : p.rest;
  if (row < rows && column < columns)
    value = p.onto ? p.onto[row * p.ldOnto + column] + sum : sum;
  p.result[row * p.ldResult + column] = value;
  return value != value;
}

/// Tiles across the columns.
__host__ __device__ unsigned tilesAcross(const SizedProduct &p) {
  return static_cast<unsigned>((p.n.most + kProductTile - 1) / kProductTile);
}

/// A block per tile, of which x has all (y has room for 65,535: rows may be items of a catalogue),
/// and chunk. With `partial`, which is [chunk][m][n] by their bounds, sums go there.
template <bool LeftTransposed, bool RightTransposed>
__global__ void __launch_bounds__(kProductThreads)
    multiplyTiles(SizedProduct p, int64_t chunkSteps, float *partial) {
  const int64_t rows = sizeOf(p.m), columns = sizeOf(p.n), steps = sizeOf(p.k);
  const unsigned across = tilesAcross(p);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x / across) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.x % across) * kProductTile,
                begin = blockIdx.z * chunkSteps, end = min(steps, begin + chunkSteps);
  ProductTile tile;
  if (firstRow < rows && firstColumn < columns) {
    const auto left = [&](int place, int64_t step) {
      const int64_t row = firstRow + place;
      return row >= rows      ? 0.0f
             : LeftTransposed ? p.left[step * p.ldLeft + row]
                              : p.left[row * p.ldLeft + step];
    };
    const auto right = [&](int place, int64_t step) {
      const int64_t column = firstColumn + place;
      return column >= columns ? 0.0f
             : RightTransposed ? p.right[column * p.ldRight + step]
                               : p.right[step * p.ldRight + column];
    };
    tile.add<LeftTransposed, !RightTransposed>(begin, end, left, right);
  }
  bool sawNaN = false;
  for (int i = 0; i < kProductEach; ++i)
    for (int j = 0; j < kProductEach; ++j) {
      const int64_t row = firstRow + ProductTile::row() + i,
                    column = firstColumn + ProductTile::column() + j;
      if (row >= p.m.most || column >= p.n.most)
        continue;
      if (!partial)
        sawNaN |= writeElement(p, rows, columns, row, column, tile.sums[i][j]);
      else if (row < rows && column < columns && begin < end)
        partial[(blockIdx.z * p.m.most + row) * p.n.most + column] = tile.sums[i][j];
    }
  if (sawNaN && p.nanNote)
    noteRow(p.nanNote, nullptr, 0);
}

/// The chunks' sums in order.
__global__ void __launch_bounds__(kProductThreads)
    addProductChunks(SizedProduct p, int64_t chunkSteps, const float *partial) {
  const int64_t rows = sizeOf(p.m), columns = sizeOf(p.n), steps = sizeOf(p.k);
  const int64_t chunks = (steps + chunkSteps - 1) / chunkSteps;
  for (int64_t i = threadInGrid(); i < p.m.most * p.n.most; i += threadsInGrid()) {
    const int64_t row = i / p.n.most, column = i % p.n.most;
    float sum = 0;
    if (row < rows && column < columns)
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        sum += partial[chunk * p.m.most * p.n.most + i];
    if (writeElement(p, rows, columns, row, column, sum) && p.nanNote)
      noteRow(p.nanNote, nullptr, 0);
  }
}

using Kernel = void (*)(SizedProduct, int64_t, float *);

Kernel kernelOf(const SizedProduct &p) {
  if (p.leftTransposed)
    return p.rightTransposed ? multiplyTiles<true, true> : multiplyTiles<true, false>;
  return p.rightTransposed ? multiplyTiles<false, true> : multiplyTiles<false, false>;
}

} // namespace

int64_t productScratchBytes(const SizedProduct &product) {
  const ProductChunks chunks(product);
  return chunks.count > 1 ? chunks.count * product.m.most * product.n.most * 4 : 0;
}

void multiply(const SizedProduct &product, void *scratch, cudaStream_t stream) {
  if (product.m.most == 0 || product.n.most == 0)
    return;
  const ProductChunks chunks(product);
  auto *partial = chunks.count > 1 ? static_cast<float *>(scratch) : nullptr;
  const auto down = static_cast<unsigned>(blocksFor(product.m.most, kProductTile));
  const dim3 grid(tilesAcross(product) * down, 1, static_cast<unsigned>(chunks.count));
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{grid, dim3(kProductThreads)}), kernelOf(product), product,
                     chunks.steps, partial);
  if (partial)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(product.m.most * product.n.most, kProductThreads),
                       addProductChunks, product, chunks.steps, partial);
}

} // namespace genrec::rt::cuda
