//===- distinct.cu - Matrix products per distinct row on a device ---------===//
//
// Lookups are taken a group at a time, so that what lies between the kernels of a group has a
// bound: products of all its distinct rows forward, sums of gradients backward.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/distinct.h"

#include "segment_pieces.h"

#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/product_tile.h"
#include "genrec_rt/kernels/cuda/scratch.h"
#include "genrec_rt/scratch_sizes.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kProductWarps = kProductThreads / kWarp;

/// On the host little, so that tests see groups that memory bounds.
constexpr int64_t kMostGroupBytes = deviceSize(64 << 20, 32 << 10);
/// Lookups of a group; their columns are an argument of kernels.
constexpr int64_t kMostParts = 256;

/// Some lookups of a product, as kernels see them.
struct Group {
  DistinctProduct p;
  int64_t first, count; ///< of lookups
  int32_t columns[kMostParts];

  __device__ int64_t origin() const { return p.lookups.starts[first]; }
  __device__ int64_t distinct() const { return p.lookups.starts[first + count] - origin(); }
};

/// The distinct rows of a lookup of a group, numbered within the group.
struct PartRows {
  int64_t begin, size;

  __device__ PartRows(const Group &g, int64_t part)
      : begin(g.p.lookups.starts[g.first + part] - g.origin()),
        size(g.p.lookups.starts[g.first + part + 1] - g.p.lookups.starts[g.first + part]) {}
};

int64_t mostChunks(const DistinctProduct &p) {
  return mostDistinctChunks(p.lookups.capacity, p.d, p.n);
}

/// Bytes that a lookup has between kernels.
int64_t forwardBytes(const DistinctProduct &p) { return p.lookups.capacity * p.n * 4; }
int64_t backwardBytes(const DistinctProduct &p) {
  return forwardBytes(p) + mostChunks(p) * p.d * p.n * 4;
}

int64_t partsAtOnce(const DistinctProduct &p, int64_t bytes) {
  const int64_t fit = kMostGroupBytes / std::max<int64_t>(bytes, 1);
  return std::min(std::clamp<int64_t>(fit, 1, kMostParts), p.lookups.parts);
}

template <class Run> void forGroups(const DistinctProduct &p, int64_t bytes, const Run &run) {
  const int64_t each = partsAtOnce(p, bytes);
  for (int64_t first = 0; first < p.lookups.parts; first += each) {
    Group group{p, first, std::min(each, p.lookups.parts - first), {}};
    for (int64_t part = 0; part < group.count; ++part)
      group.columns[part] = static_cast<int32_t>(p.columns[first + part]);
    run(group);
  }
}

LaunchShape shapeOfTiles(int64_t rows, int64_t columns, int64_t parts) {
  return {dim3(static_cast<unsigned>(blocksFor(rows, kProductTile)),
               static_cast<unsigned>(blocksFor(columns, kProductTile)),
               static_cast<unsigned>(parts)),
          dim3(kProductThreads)};
}

/// Writes what of a tile lies within [rows, columns] of `to`: a thread's four neighbours at once
/// where each row of `to` is aligned for that.
__device__ void writeTile(const ProductTile &tile, int64_t firstRow, int64_t firstColumn,
                          int64_t rows, int64_t columns, float *to) {
  static_assert(kProductEach == 4);
  const int64_t column = firstColumn + ProductTile::column();
  const bool areWhole = columns % 4 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0;
#pragma unroll
  for (int i = 0; i < kProductEach; ++i) {
    const int64_t row = firstRow + ProductTile::row() + i;
    const float (&own)[kProductEach] = tile.sums[i];
    if (row < rows && areWhole && column < columns)
      storeWhole(to + row * columns + column, Floats<4>{own[0], own[1], own[2], own[3]});
#pragma unroll
    for (int j = 0; j < kProductEach; ++j)
      if (row < rows && !areWhole && column + j < columns)
        to[row * columns + column + j] = own[j];
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// products[., n]: of the group's distinct rows. A block per tile and lookup.
__global__ void __launch_bounds__(kProductThreads) multiplyValues(const Group g, float *products) {
  const PartRows own(g, blockIdx.z);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile;
  if (firstRow >= own.size)
    return;
  const float *values = g.p.values + (g.origin() + own.begin) * g.p.ldValues,
              *weight = g.p.weight + g.columns[blockIdx.z] * g.p.n;
  const auto left = [&](int place, int64_t step) {
    const int64_t row = firstRow + place;
    return row < own.size ? factor(g.p.bf16, values[row * g.p.ldValues + step]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    const int64_t column = firstColumn + place;
    return column < g.p.n ? factor(g.p.bf16, weight[step * g.p.n + column]) : 0.0f;
  };
  ProductTile tile;
  tile.add<false, true>(0, g.p.d, left, right);
  writeTile(tile, firstRow, firstColumn, own.size, g.p.n, products + own.begin * g.p.n);
}

/// y[row] (+)= the group's products that were found for it.
__global__ void __launch_bounds__(kProductThreads)
    addProducts(const Group g, const float *products, float *y, int64_t ldY) {
  const int64_t rows = g.p.lookups.rows->count, origin = g.origin();
  for (int64_t i = threadInGrid(); i < rows * g.p.n; i += threadsInGrid()) {
    const int64_t row = i / g.p.n, column = i % g.p.n;
    float *to = y + row * ldY + column;
    float sum = g.first == 0 ? 0.0f : *to;
    for (int64_t part = g.first; part < g.first + g.count; ++part)
      sum += products[(g.p.lookups.numbers[part * rows + row] - origin) * g.p.n + column];
    *to = sum;
  }
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// How many numbers there are, the lower word of a count (devices are little-endian). Places
/// without a row have the one behind: they are of no segment.
const uint32_t *countOfNumbers(const DistinctLookups &lookups) {
  return reinterpret_cast<const uint32_t *>(lookups.starts + lookups.parts);
}

/// Of places (lookup, row) their rows: what they add to sums is the gradient of those.
__global__ void rowsOfPlaces(const DistinctLookups lookups, uint32_t *order) {
  const auto rows = static_cast<uint32_t>(lookups.rows->count);
  for (int64_t i = threadInGrid(); i < lookups.parts * rows; i += threadsInGrid())
    order[i] %= rows;
}

/// sums[., n]: of the gradients of the rows that found a distinct row of the group. A warp per
/// distinct row and kEach * 32 columns.
template <int kEach>
__global__ void __launch_bounds__(kProductThreads)
    sumGradients(const Group g, SegmentSums found, float *sums) {
  // So the host has them; the compiler leaves out what they would take.
  found.terms.parents = found.terms.listOffsets = nullptr;
  found.terms.rows = nullptr;
  const int64_t origin = g.origin(), distinct = g.distinct();
  const int64_t firstColumn = static_cast<int64_t>(blockIdx.y) * kWarp * kEach + laneOf();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kProductWarps + warpOf(); i < distinct;
       i += static_cast<int64_t>(gridDim.x) * kProductWarps) {
    float sum[kEach] = {};
    addSegment(found, origin + i, firstColumn, g.p.n, sum);
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (firstColumn + c * kWarp < g.p.n)
        sums[i * g.p.n + firstColumn + c * kWarp] = sum[c];
  }
}

/// dvalues[., d] = sums weight^T. A block per tile and lookup.
__global__ void __launch_bounds__(kProductThreads)
    multiplySums(const Group g, const float *sums, float *dvalues) {
  const PartRows own(g, blockIdx.z);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile;
  if (firstRow >= own.size)
    return;
  const float *weight = g.p.weight + g.columns[blockIdx.z] * g.p.n;
  const auto left = [&](int place, int64_t step) {
    const int64_t row = firstRow + place;
    return row < own.size ? factor(g.p.bf16, sums[(own.begin + row) * g.p.n + step]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    const int64_t column = firstColumn + place;
    return column < g.p.d ? factor(g.p.bf16, weight[column * g.p.n + step]) : 0.0f;
  };
  ProductTile tile;
  tile.add<false, false>(0, g.p.n, left, right);
  writeTile(tile, firstRow, firstColumn, own.size, g.p.d,
            dvalues + (g.origin() + own.begin) * g.p.d);
}

/// partials[lookup][chunk][d, n] = values^T sums over a chunk of the lookup's distinct rows. A
/// block per tile, chunk and lookup.
__global__ void __launch_bounds__(kProductThreads)
    contractSums(const Group g, const float *sums, int64_t mostChunks, float *partials) {
  const int64_t part = blockIdx.z / mostChunks, chunk = blockIdx.z % mostChunks;
  const PartRows own(g, part);
  const int64_t grain = distinctChunks(own.size, g.p.d, g.p.n).grain;
  const int64_t begin = chunk * grain, end = min(own.size, begin + grain);
  if (begin >= end)
    return;
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile;
  const float *values = g.p.values + (g.origin() + own.begin + begin) * g.p.ldValues + firstRow,
              *added = sums + (own.begin + begin) * g.p.n + firstColumn;
  const int rows = static_cast<int>(min(g.p.d - firstRow, int64_t(kProductTile))),
            columns = static_cast<int>(min(g.p.n - firstColumn, int64_t(kProductTile)));
  const auto left = [&](int place, int64_t step) {
    return place < rows ? factor(g.p.bf16, values[step * g.p.ldValues + place]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    return place < columns ? factor(g.p.bf16, added[step * g.p.n + place]) : 0.0f;
  };
  ProductTile tile;
  tile.add<true, true>(0, end - begin, left, right);
  writeTile(tile, firstRow, firstColumn, g.p.d, g.p.n, partials + blockIdx.z * g.p.d * g.p.n);
}

/// The chunks of each lookup in order.
__global__ void __launch_bounds__(kProductThreads)
    addPartials(const Group g, const float *partials, int64_t mostChunks, float *dweight) {
  const int64_t size = g.p.d * g.p.n;
  for (int64_t i = threadInGrid(); i < g.count * size; i += threadsInGrid()) {
    const int64_t part = i / size;
    const int64_t chunks = distinctChunks(PartRows(g, part).size, g.p.d, g.p.n).count;
    float sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      sum += partials[(part * mostChunks + chunk) * size + i % size];
    dweight[g.first * size + i] = sum;
  }
}

/// What lies in the scratch of a gradient; a null pointer only counts.
struct GradientScratch {
  uint32_t *order;
  int64_t *begins;
  void *ordering;
  float *sums, *partials;
  Pieces pieces; ///< of the rows that found a distinct row
  int64_t bytes;

  GradientScratch(const DistinctProduct &p, void *memory) {
    ScratchCursor cursor(memory);
    const int64_t places = p.lookups.parts * p.lookups.capacity,
                  parts = partsAtOnce(p, backwardBytes(p));
    begins = cursor.take<int64_t>(places + 1);
    order = cursor.take<uint32_t>(places);
    ordering = cursor.take<char>(orderScratchBytes(places, places + 1));
    sums = cursor.take<float>(parts * p.lookups.capacity * p.n);
    partials = cursor.take<float>(parts * mostChunks(p) * p.d * p.n);
    pieces = Pieces::in(cursor, places, p.n, places, p.lookups.capacity);
    bytes = cursor.bytes();
  }
};

} // namespace

int64_t distinctProductScratchBytes(const DistinctProduct &product) {
  return partsAtOnce(product, forwardBytes(product)) * forwardBytes(product);
}

void multiplyDistinct(const DistinctProduct &product, float *y, int64_t ldY, void *scratch,
                      cudaStream_t stream) {
  const int64_t capacity = product.lookups.capacity;
  if (capacity == 0)
    return;
  auto *products = static_cast<float *>(scratch);
  forGroups(product, forwardBytes(product), [&](const Group &group) {
    GENREC_CUDA_LAUNCH(stream, shapeOfTiles(capacity, product.n, group.count), multiplyValues,
                       group, products);
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity * product.n, kProductThreads), addProducts,
                       group, products, y, ldY);
  });
}

int64_t distinctGradientScratchBytes(const DistinctProduct &product) {
  return GradientScratch(product, nullptr).bytes;
}

void multiplyDistinctGradient(const DistinctProduct &product, const DistinctGradient &gradient,
                              void *memory, cudaStream_t stream) {
  const DistinctLookups &lookups = product.lookups;
  const int64_t capacity = lookups.capacity, places = lookups.parts * capacity;
  const GradientScratch scratch(product, memory);
  const uint32_t *numbers = countOfNumbers(lookups);
  if (places > 0) {
    orderStably(lookups.numbers, places, places + 1, scratch.order, scratch.ordering, stream);
    findSegments(lookups.numbers, scratch.order, places, numbers, scratch.begins, stream);
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(places, kProductThreads), rowsOfPlaces, lookups,
                       scratch.order);
  }
  // A lookup finds a row once for each row of the batch at most.
  const SegmentTerms terms{
      .gradients = gradient.gradient, .ld = gradient.ldGradient, .order = scratch.order};
  const SegmentSums found = sumGiants(places, numbers, product.n, terms, scratch.begins, places,
                                      capacity, scratch.pieces, stream);
  const int64_t chunks = mostChunks(product);
  forGroups(product, backwardBytes(product), [&](const Group &group) {
    if (capacity > 0) {
      LaunchShape perRow = shapeOfThreads(group.count * capacity * kWarp, kProductThreads);
      perRow.grid.y = static_cast<unsigned>(blocksFor(product.n, kWarp * kPieceColumns));
      GENREC_CUDA_LAUNCH(stream, perRow,
                         product.n <= kWarp ? sumGradients<1> : sumGradients<kPieceColumns>, group,
                         found, scratch.sums);
      GENREC_CUDA_LAUNCH(stream, shapeOfTiles(capacity, product.d, group.count), multiplySums,
                         group, scratch.sums, gradient.dvalues);
      GENREC_CUDA_LAUNCH(stream, shapeOfTiles(product.d, product.n, group.count * chunks),
                         contractSums, group, scratch.sums, chunks, scratch.partials);
    }
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(group.count * product.d * product.n, kProductThreads),
                       addPartials, group, scratch.partials, chunks, gradient.dweight);
  });
}

} // namespace genrec::rt::cuda
