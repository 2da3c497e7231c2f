//===- distinct.cu - Matrix products per distinct row on a device ---------===//
//
// Lookups are taken a window at a time, whatever their groups, so that what lies between the
// kernels of a window has a bound: products of all its distinct rows forward, sums of gradients
// backward.
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

/// On the host little, so that tests see windows that memory bounds.
constexpr int64_t kMostWindowBytes = deviceSize(64 << 20, 32 << 10);
/// Lookups of a window, an argument of kernels.
constexpr int64_t kWindowParts = 128;

/// A lookup of a window, as kernels see it.
struct WindowPart {
  const float *values; ///< of its group's distinct rows
  float *dvalues;      ///< likewise; backward
  int64_t ldValues;
  int64_t partials;  ///< floats of partial sums of the window's lookups before it
  int32_t d;         ///< columns of its rows
  int32_t column;    ///< the first of its rows of the weight
  int32_t group;     ///< the first lookup of its group
  int32_t weightRow; ///< rows of the weight's gradient before its own
};

/// Some lookups of a product, as kernels see them.
struct Window {
  DistinctLookups lookups;
  int64_t n;
  const float *weight;
  bool bf16;
  int64_t first, count; ///< of lookups
  WindowPart parts[kWindowParts];

  __device__ int64_t origin() const { return lookups.starts[first]; }
  __device__ int64_t distinct() const { return lookups.starts[first + count] - origin(); }
};

/// The distinct rows of a lookup of a window: numbered within the window, and within its group.
struct PartRows {
  int64_t begin, size, inGroup;

  __device__ PartRows(const Window &w, int64_t part) {
    const int64_t *starts = w.lookups.starts, number = w.first + part;
    begin = starts[number] - w.origin();
    size = starts[number + 1] - starts[number];
    inGroup = starts[number] - starts[w.parts[part].group];
  }
};

/// The most of what `of` says of a group.
template <class Of> int64_t mostOf(const DistinctProduct &p, const Of &of) {
  int64_t most = 0;
  for (const DistinctGroup &group : p.groups)
    most = std::max<int64_t>(most, of(group));
  return most;
}

int64_t mostColumns(const DistinctProduct &p) {
  return mostOf(p, [](const DistinctGroup &group) { return group.d; });
}

/// Chunks of a lookup's distinct rows at most.
int64_t chunksOf(const DistinctProduct &p, const DistinctGroup &group) {
  return mostDistinctChunks(p.lookups.capacity, group.d, p.n);
}
int64_t mostChunks(const DistinctProduct &p) {
  return mostOf(p, [&](const DistinctGroup &group) { return chunksOf(p, group); });
}

/// Floats that a lookup has between kernels: forward its products, backward its sums, and a
/// gradient of its rows of the weight for each chunk.
int64_t productFloats(const DistinctProduct &p) { return p.lookups.capacity * p.n; }
int64_t partialFloats(const DistinctProduct &p) {
  return mostOf(p, [&](const DistinctGroup &group) { return chunksOf(p, group) * group.d * p.n; });
}
int64_t gradientFloats(const DistinctProduct &p) { return productFloats(p) + partialFloats(p); }

int64_t partsAtOnce(const DistinctProduct &p, int64_t floats) {
  const int64_t fit = kMostWindowBytes / std::max<int64_t>(4 * floats, 1);
  return std::min(std::clamp<int64_t>(fit, 1, kWindowParts), p.lookups.parts);
}

/// Calls `run` with each window, of lookups that need `floats` each. `dvalues`: of each group, or
/// null.
template <class Run>
void forWindows(const DistinctProduct &p, int64_t floats, float *const *dvalues, const Run &run) {
  const int64_t each = partsAtOnce(p, floats);
  Window window{p.lookups, p.n, p.weight, p.bf16, 0, 0, {}};
  int64_t part = 0, partials = 0;
  int32_t weightRow = 0;
  for (size_t group = 0; group < p.groups.size(); ++group) {
    const DistinctGroup &of = p.groups[group];
    const int64_t first = part;
    for (; part < first + of.lookups; ++part) {
      if (window.count == each) {
        run(window);
        window.first = part;
        window.count = partials = 0;
      }
      window.parts[window.count++] = {of.values,
                                      dvalues ? dvalues[group] : nullptr,
                                      of.ldValues,
                                      partials,
                                      static_cast<int32_t>(of.d),
                                      static_cast<int32_t>(p.columns[part]),
                                      static_cast<int32_t>(first),
                                      weightRow};
      partials += chunksOf(p, of) * of.d * p.n;
      weightRow += static_cast<int32_t>(of.d);
    }
  }
  if (window.count > 0)
    run(window);
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

/// products[., n]: of the window's distinct rows. A block per tile and lookup.
__global__ void __launch_bounds__(kProductThreads)
    multiplyValues(__grid_constant__ const Window w, float *products) {
  const WindowPart &part = w.parts[blockIdx.z];
  const PartRows own(w, blockIdx.z);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile;
  if (firstRow >= own.size)
    return;
  const int64_t ldValues = part.ldValues;
  const float *values = part.values + own.inGroup * ldValues,
              *weight = w.weight + part.column * w.n;
  const auto left = [&](int place, int64_t step) {
    const int64_t row = firstRow + place;
    return row < own.size ? factor(w.bf16, values[row * ldValues + step]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    const int64_t column = firstColumn + place;
    return column < w.n ? factor(w.bf16, weight[step * w.n + column]) : 0.0f;
  };
  ProductTile tile;
  tile.add<false, true>(0, part.d, left, right);
  writeTile(tile, firstRow, firstColumn, own.size, w.n, products + own.begin * w.n);
}

/// y[row] (+)= the window's products that were found for it.
__global__ void __launch_bounds__(kProductThreads)
    addProducts(__grid_constant__ const Window w, const float *products, float *y, int64_t ldY) {
  const int64_t rows = w.lookups.rows->count, origin = w.origin();
  for (int64_t i = threadInGrid(); i < rows * w.n; i += threadsInGrid()) {
    const int64_t row = i / w.n, column = i % w.n;
    float *to = y + row * ldY + column;
    float sum = w.first == 0 ? 0.0f : *to;
    for (int64_t part = w.first; part < w.first + w.count; ++part)
      sum += products[(w.lookups.numbers[part * rows + row] - origin) * w.n + column];
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

/// sums[., n]: of the gradients of the rows that found a distinct row of the window. A warp per
/// distinct row and kEach * 32 columns.
template <int kEach>
__global__ void __launch_bounds__(kProductThreads)
    sumGradients(__grid_constant__ const Window w, SegmentSums found, float *sums) {
  // So the host has them; the compiler leaves out what they would take.
  found.terms.parents = found.terms.listOffsets = nullptr;
  found.terms.rows = nullptr;
  const int64_t origin = w.origin(), distinct = w.distinct();
  const int64_t firstColumn = static_cast<int64_t>(blockIdx.y) * kWarp * kEach + laneOf();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kProductWarps + warpOf(); i < distinct;
       i += static_cast<int64_t>(gridDim.x) * kProductWarps) {
    float sum[kEach] = {};
    addSegment(found, origin + i, firstColumn, w.n, sum);
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (firstColumn + c * kWarp < w.n)
        sums[i * w.n + firstColumn + c * kWarp] = sum[c];
  }
}

/// dvalues[., d] = sums weight^T. A block per tile and lookup.
__global__ void __launch_bounds__(kProductThreads)
    multiplySums(__grid_constant__ const Window w, const float *sums) {
  const WindowPart &part = w.parts[blockIdx.z];
  const PartRows own(w, blockIdx.z);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile, d = part.d;
  if (firstRow >= own.size || firstColumn >= d)
    return;
  const float *weight = w.weight + part.column * w.n;
  const auto left = [&](int place, int64_t step) {
    const int64_t row = firstRow + place;
    return row < own.size ? factor(w.bf16, sums[(own.begin + row) * w.n + step]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    const int64_t column = firstColumn + place;
    return column < d ? factor(w.bf16, weight[column * w.n + step]) : 0.0f;
  };
  ProductTile tile;
  tile.add<false, false>(0, w.n, left, right);
  writeTile(tile, firstRow, firstColumn, own.size, d, part.dvalues + own.inGroup * d);
}

/// partials[lookup][chunk][d, n] = values^T sums over a chunk of the lookup's distinct rows. A
/// block per tile, chunk and lookup.
__global__ void __launch_bounds__(kProductThreads)
    contractSums(__grid_constant__ const Window w, const float *sums, int64_t mostChunks,
                 float *partials) {
  const int64_t number = blockIdx.z / mostChunks, chunk = blockIdx.z % mostChunks;
  const WindowPart &part = w.parts[number];
  const PartRows own(w, number);
  const int64_t d = part.d, ldValues = part.ldValues,
                grain = distinctChunks(own.size, d, w.n).grain;
  const int64_t begin = chunk * grain, end = min(own.size, begin + grain);
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x) * kProductTile,
                firstColumn = static_cast<int64_t>(blockIdx.y) * kProductTile;
  if (begin >= end || firstRow >= d)
    return;
  const float *values = part.values + (own.inGroup + begin) * ldValues + firstRow,
              *added = sums + (own.begin + begin) * w.n + firstColumn;
  const int rows = static_cast<int>(min(d - firstRow, int64_t(kProductTile))),
            columns = static_cast<int>(min(w.n - firstColumn, int64_t(kProductTile)));
  const auto left = [&](int place, int64_t step) {
    return place < rows ? factor(w.bf16, values[step * ldValues + place]) : 0.0f;
  };
  const auto right = [&](int place, int64_t step) {
    return place < columns ? factor(w.bf16, added[step * w.n + place]) : 0.0f;
  };
  ProductTile tile;
  tile.add<true, true>(0, end - begin, left, right);
  writeTile(tile, firstRow, firstColumn, d, w.n, partials + part.partials + chunk * d * w.n);
}

/// The chunks of each lookup in order.
__global__ void __launch_bounds__(kProductThreads)
    addPartials(__grid_constant__ const Window w, const float *partials, float *dweight) {
  const WindowPart &part = w.parts[blockIdx.y];
  const int64_t size = part.d * w.n;
  const int64_t chunks = distinctChunks(PartRows(w, blockIdx.y).size, part.d, w.n).count;
  for (int64_t i = threadInGrid(); i < size; i += threadsInGrid()) {
    float sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      sum += partials[part.partials + chunk * size + i];
    dweight[part.weightRow * w.n + i] = sum;
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
                  parts = partsAtOnce(p, gradientFloats(p));
    begins = cursor.take<int64_t>(places + 1);
    order = cursor.take<uint32_t>(places);
    ordering = cursor.take<char>(orderScratchBytes(places, places + 1));
    sums = cursor.take<float>(parts * productFloats(p));
    partials = cursor.take<float>(parts * partialFloats(p));
    pieces = Pieces::in(cursor, places, p.n, places, p.lookups.capacity);
    bytes = cursor.bytes();
  }
};

} // namespace

int64_t countLookups(std::span<const DistinctGroup> groups) {
  int64_t count = 0;
  for (const DistinctGroup &group : groups)
    count += group.lookups;
  return count;
}

int64_t distinctProductScratchBytes(const DistinctProduct &product) {
  return 4 * partsAtOnce(product, productFloats(product)) * productFloats(product);
}

void multiplyDistinct(const DistinctProduct &product, float *y, int64_t ldY, void *scratch,
                      cudaStream_t stream) {
  const int64_t capacity = product.lookups.capacity;
  if (capacity == 0)
    return;
  auto *products = static_cast<float *>(scratch);
  forWindows(product, productFloats(product), nullptr, [&](const Window &window) {
    GENREC_CUDA_LAUNCH(stream, shapeOfTiles(capacity, product.n, window.count), multiplyValues,
                       window, products);
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity * product.n, kProductThreads), addProducts,
                       window, products, y, ldY);
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
  const int64_t chunks = mostChunks(product), columns = mostColumns(product);
  forWindows(product, gradientFloats(product), gradient.dvalues, [&](const Window &window) {
    if (capacity > 0) {
      LaunchShape perRow = shapeOfThreads(window.count * capacity * kWarp, kProductThreads);
      perRow.grid.y = static_cast<unsigned>(blocksFor(product.n, kWarp * kPieceColumns));
      GENREC_CUDA_LAUNCH(stream, perRow,
                         product.n <= kWarp ? sumGradients<1> : sumGradients<kPieceColumns>, window,
                         found, scratch.sums);
      GENREC_CUDA_LAUNCH(stream, shapeOfTiles(capacity, columns, window.count), multiplySums,
                         window, scratch.sums);
      GENREC_CUDA_LAUNCH(stream, shapeOfTiles(columns, product.n, window.count * chunks),
                         contractSums, window, scratch.sums, chunks, scratch.partials);
    }
    LaunchShape perWeight = shapeOfThreads(columns * product.n, kProductThreads);
    perWeight.grid.y = static_cast<unsigned>(window.count);
    GENREC_CUDA_LAUNCH(stream, perWeight, addPartials, window, scratch.partials, gradient.dweight);
  });
}

} // namespace genrec::rt::cuda
