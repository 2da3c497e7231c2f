//===- library_products.cu - Products through cuBLASLt --------------------===//
//
// The library's matrices are by columns: rows of a product are its columns, so that
// y^T [n, rows] = W^T x^T, and out^T [n, k] = y^T x.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/library_products.h"

#include "library_plans.h"
#include "library_scratch.h"
#include "row_units.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/activation.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/part_copies.h"
#include "genrec_rt/kernels/cuda/scratch.h"

#include <algorithm>
#include <bit>

namespace genrec::rt::cuda {

namespace {

/// Of the copies of a contraction's chunk, and of the chunks that run at once: copies and sums. On
/// the host little, so that tests see groups of chunks, and chunks that are added one by one.
constexpr int64_t kMostCopyBytes = int64_t(256) << 20;
constexpr int64_t kMostChunkBytes = deviceSize(kMostCopyBytes, int64_t(2) << 20);
/// What the last of several chunks is rounded up to, so that few lengths are planned.
constexpr int64_t kChunkStep = 256;

//===----------------------------------------------------------------------===//
// Rows times a weight
//===----------------------------------------------------------------------===//

/// Where the sums and the bias go, before what is left to do.
float *sumsOf(const LinearProduct &p) { return p.pre ? p.pre : p.y; }
int64_t ldOfSums(const LinearProduct &p) { return p.pre ? p.ldPre : p.ldY; }
/// Whether the library adds the residual onto the sums: nothing comes between.
bool addsResidual(const LinearProduct &p) {
  return p.residual && !p.pre && p.activation == Activation::none;
}
bool hasMore(const LinearProduct &p) {
  return p.pre || p.activation != Activation::none || (p.residual && !addsResidual(p));
}

/// Rows and columns of the weight as it is stored.
int64_t weightRows(const LinearProduct &p) { return p.transposed ? p.n : p.k; }
int64_t weightColumns(const LinearProduct &p) { return p.transposed ? p.k : p.n; }

/// Whether the bias is copied into scratch: the library may load 16 bytes of it at once, and takes
/// no word on how it is aligned.
bool copiesBias(const LinearProduct &p) { return p.bias && alignmentOf(p.bias) < 16; }

/// Whether x is rounded into scratch.
bool copiesX(const LinearProduct &p) { return p.bf16 && !p.roundedX; }

LibraryShape shapeOf(const LinearProduct &p, int64_t rows) {
  LibraryShape s;
  s.device = currentDevice();
  s.isBf16 = p.bf16;
  s.transposesA = p.transposed;
  s.hasBias = p.bias != nullptr;
  s.m = p.n, s.n = rows, s.k = p.bf16 && p.transposed ? kernels::roundUp(p.k, 8) : p.k;
  s.ldA = p.bf16 ? kernels::roundUp(weightColumns(p), 8) : weightColumns(p);
  s.ldB = copiesX(p) ? kernels::roundUp(p.k, 8) : p.ldX;
  s.ldD = ldOfSums(p);
  if (!p.bf16)
    s.alignA = alignmentOf(p.weight), s.alignB = alignmentOf(p.x);
  if (p.roundedX)
    s.alignB = alignmentOf(p.roundedX);
  s.alignD = alignmentOf(sumsOf(p));
  if (addsResidual(p)) {
    s.addsC = true;
    s.ldC = p.ldResidual, s.alignC = alignmentOf(p.residual);
  }
  return s;
}

struct ProductScratch {
  ScratchCursor cursor;
  Bf16 *x, *weight;
  float *bias;
  void *workspace;

  ProductScratch(const LinearProduct &p, int64_t workspaceBytes, void *memory)
      : cursor(memory),
        x(cursor.take<Bf16>(copiesX(p) ? p.capacity * kernels::roundUp(p.k, 8) : 0)),
        weight(
            cursor.take<Bf16>(p.bf16 ? weightRows(p) * kernels::roundUp(weightColumns(p), 8) : 0)),
        bias(cursor.take<float>(copiesBias(p) ? p.n : 0)),
        workspace(cursor.take<char>(workspaceBytes)) {}
};

/// y = A(sums) + residual of the rows that there are, kUnit columns at a time (row_units.h).
template <int kUnit>
__global__ void __launch_bounds__(kUnitThreads)
    finishProduct(const LinearProduct p, const float *sums, int64_t ldSums, int shift) {
  const int64_t rows = p.rows->count, units = p.n / kUnit;
  const int64_t side = kUnitThreads >> shift;
  for (int64_t unit = (blockIdx.y << shift) + (threadIdx.x & ((1u << shift) - 1)); unit < units;
       unit += gridDim.y << shift) {
    const int64_t column = unit * kUnit;
    for (int64_t row = blockIdx.x * side + (threadIdx.x >> shift); row < rows;
         row += gridDim.x * side) {
      auto t = loadWhole<Floats<kUnit>>(sums + row * ldSums + column);
      Floats<kUnit> more{};
      if (p.residual)
        more = loadWhole<Floats<kUnit>>(p.residual + row * p.ldResidual + column);
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        t.x[i] = activate(p.activation, t.x[i]);
        if (p.residual)
          t.x[i] = t.x[i] + more.x[i];
      }
      storeWhole(p.y + row * p.ldY + column, t);
    }
  }
}

void finish(const LinearProduct &p, cudaStream_t stream) {
  auto isAligned = [](const float *at, int64_t ld) { return alignmentOf(at) == 16 && ld % 4 == 0; };
  const bool hasUnits = p.n % 4 == 0 && isAligned(sumsOf(p), ldOfSums(p)) &&
                        isAligned(p.y, p.ldY) &&
                        (!p.residual || isAligned(p.residual, p.ldResidual));
  auto launch = [&](auto kernel, int64_t units) {
    const UnitShape shape(p.capacity, units, 1);
    GENREC_CUDA_LAUNCH(stream, shape.launch, kernel, p, sumsOf(p), ldOfSums(p), shape.shift);
  };
  if (hasUnits)
    launch(finishProduct<4>, p.n / 4);
  else
    launch(finishProduct<1>, p.n);
}

void multiplyByLibrary(LibraryPlans &plans, const LinearProduct &p, void *memory,
                       cudaStream_t stream) {
  const LibraryShape shape = shapeOf(p, p.capacity);
  const ProductScratch scratch(p, plans.workspaceBytes(shape), memory);
  LibraryOperands operands{p.weight, p.x, sumsOf(p), p.bias, p.residual};
  if (p.bf16) {
    const int64_t ldX = kernels::roundUp(p.k, 8), ldWeight = kernels::roundUp(weightColumns(p), 8);
    const PartCopy<Bf16> copies[] = {
        {nullptr, weightRows(p), 1, p.weight, weightColumns(p), weightColumns(p), scratch.weight,
         ldWeight, ldWeight},
        {p.rows, p.capacity, 1, p.x, p.ldX, p.k, scratch.x, ldX, ldX, /*clearsRest=*/true}};
    copyParts(std::span(copies, copiesX(p) ? 2 : 1), stream);
    operands.a = scratch.weight;
    operands.b = p.roundedX ? p.roundedX : scratch.x;
  }
  if (copiesBias(p)) {
    GENREC_CUDA_CHECK(cudaMemcpyAsync(scratch.bias, p.bias,
                                      static_cast<size_t>(p.n) * sizeof(float),
                                      cudaMemcpyDeviceToDevice, stream));
    operands.bias = scratch.bias;
  }
  plans.multiply(shape, operands, scratch.workspace, stream);
  if (hasMore(p))
    finish(p, stream);
}

//===----------------------------------------------------------------------===//
// Contractions over rows
//===----------------------------------------------------------------------===//

/// A side of a contraction: what the library reads is a copy, unless it was rounded before. That
/// ends in zeros behind the last row, too, but has no more rows than the capacity.
struct Side {
  const float *floats;
  const Bf16 *rounded;
  int64_t ld, size;
};
Side xOf(const RowContraction &c) { return {c.x, c.roundedX, c.ldX, c.k}; }
Side yOf(const RowContraction &c) { return {c.y, c.roundedY, c.ldY, c.n}; }

/// Leading dimensions of copies: whole steps of 16 bytes.
int64_t ldOfCopy(const RowContraction &c, int64_t size) {
  return kernels::roundUp(size, c.bf16 ? 8 : 4);
}
int64_t ldOf(const RowContraction &c, const Side &side) {
  return side.rounded ? side.ld : ldOfCopy(c, side.size);
}
int64_t bytesOfFactor(const RowContraction &c) { return c.bf16 ? 2 : 4; }
/// Of the copy that a side needs.
int64_t bytesOfCopy(const RowContraction &c, const Side &side, int64_t rows) {
  return side.rounded ? 0 : rows * ldOfCopy(c, side.size) * bytesOfFactor(c);
}

int64_t bytesOfCopies(const RowContraction &c, int64_t rows) {
  return rows * (ldOfCopy(c, c.k) + ldOfCopy(c, c.n)) * bytesOfFactor(c);
}
int64_t bytesOfChunk(const RowContraction &c) {
  return bytesOfCopies(c, chunkRows(c)) + c.k * c.n * 4;
}

/// Whether chunks run one by one, each added onto `out` by the library: those so large that no two
/// of them run at once.
bool addsOnto(const RowContraction &c) { return 2 * bytesOfChunk(c) > kMostChunkBytes; }

/// How the rows that there is room for are cut: whole chunks, of which `each` run at once, and the
/// rows of a last one that is shorter. It has the bits of a whole one, whose other rows are zeros.
struct Chunks {
  int64_t whole, last, each;

  explicit Chunks(const RowContraction &c) {
    const int64_t chunk = chunkRows(c);
    const bool isCopied = !c.roundedX && !c.roundedY;
    const int64_t rows = isCopied ? kernels::roundUp(c.capacity, kChunkStep) : c.capacity;
    whole = rows / chunk, last = rows % chunk;
    each = addsOnto(c) ? 1
                       : std::clamp<int64_t>(kMostChunkBytes / takenByChunk(c), 1,
                                             std::max<int64_t>(whole, 1));
  }

private:
  /// Scratch bytes: copies and sums.
  static int64_t takenByChunk(const RowContraction &c) {
    const int64_t rows = chunkRows(c);
    return bytesOfCopy(c, xOf(c), rows) + bytesOfCopy(c, yOf(c), rows) + c.k * c.n * 4;
  }
};

LibraryShape shapeOf(const RowContraction &c, int64_t rows, int64_t chunks) {
  LibraryShape s;
  s.device = currentDevice();
  s.isBf16 = c.bf16;
  s.transposesB = true;
  s.m = c.n, s.n = c.k, s.k = rows;
  s.ldA = ldOf(c, yOf(c)), s.ldB = ldOf(c, xOf(c)), s.ldD = c.n;
  if (c.roundedY)
    s.alignA = alignmentOf(c.roundedY);
  if (c.roundedX)
    s.alignB = alignmentOf(c.roundedX);
  s.batches = chunks;
  s.strideA = rows * s.ldA;
  s.strideB = rows * s.ldB;
  s.strideD = c.k * c.n;
  if (addsOnto(c)) {
    s.addsC = true;
    s.ldC = s.ldD;
    s.alignC = s.alignD = alignmentOf(c.out);
  }
  return s;
}

/// Calls `visit(first, rows, chunks)` for the chunks that run at once, in their order: `chunks` of
/// `rows` rows each, from row `first` on.
template <class Visit> void forGroups(const RowContraction &c, const Visit &visit) {
  const Chunks cut(c);
  const int64_t chunk = chunkRows(c);
  for (int64_t first = 0; first < cut.whole; first += cut.each)
    visit(first * chunk, chunk, std::min(cut.each, cut.whole - first));
  if (cut.last > 0)
    visit(cut.whole * chunk, cut.last, int64_t(1));
}

/// What the algorithm is chosen for: a few chunks, whatever the capacity.
LibraryShape planned(const RowContraction &c) {
  const int64_t chunk = chunkRows(c);
  return shapeOf(c, chunk, addsOnto(c) ? 1 : std::max<int64_t>(kPlannedRows / chunk, 4));
}

int64_t workspaceBytes(LibraryPlans &plans, const RowContraction &c) {
  int64_t bytes = 0;
  forGroups(c, [&](int64_t, int64_t rows, int64_t chunks) {
    bytes = std::max(bytes, plans.workspaceBytes(shapeOf(c, rows, chunks)));
  });
  return bytes;
}

struct ContractionScratch {
  ScratchCursor cursor;
  char *x, *y;
  float *sums; ///< where chunks are not added onto `out`
  void *workspace;

  ContractionScratch(LibraryPlans &plans, const RowContraction &c, void *memory)
      : ContractionScratch(c, Chunks(c), workspaceBytes(plans, c), memory) {}

private:
  ContractionScratch(const RowContraction &c, const Chunks &cut, int64_t workspaceBytes,
                     void *memory)
      : cursor(memory) {
    const int64_t rows = cut.whole > 0 ? cut.each * chunkRows(c) : cut.last;
    x = cursor.take<char>(bytesOfCopy(c, xOf(c), rows));
    y = cursor.take<char>(bytesOfCopy(c, yOf(c), rows));
    sums = cursor.take<float>(addsOnto(c) ? 0 : cut.each * c.k * c.n);
    workspace = cursor.take<char>(workspaceBytes);
  }
};

/// out (+)= the sums of `chunks` chunks from row `first` on, as far as there are rows, in their
/// order.
__global__ void __launch_bounds__(kThreads)
    addChunks(const RowContraction c, const float *sums, int64_t first, int64_t chunk,
              int64_t chunks) {
  const int64_t size = c.k * c.n, rows = c.rows->count - first;
  const int64_t there = min(chunks, (rows + chunk - 1) / chunk);
  for (int64_t i = threadInGrid(); i < size; i += threadsInGrid()) {
    float sum = first == 0 ? 0.0f : c.out[i];
#pragma unroll 8
    for (int64_t number = 0; number < there; ++number)
      sum += sums[number * size + i];
    c.out[i] = sum;
  }
}

/// Both sides as the library reads them, from row `first` on: copied to scratch where they must be.
template <class T>
std::pair<const void *, const void *> readRows(const RowContraction &c, int64_t first, int64_t rows,
                                               const ContractionScratch &scratch,
                                               cudaStream_t stream) {
  PartCopy<T> copies[2];
  size_t count = 0;
  const auto read = [&](const Side &side, void *to) -> const void * {
    if (side.rounded)
      return side.rounded + first * side.ld;
    const int64_t ldTo = ldOfCopy(c, side.size);
    copies[count++] = {c.rows,
                       rows,
                       1,
                       side.floats,
                       side.ld,
                       side.size,
                       static_cast<T *>(to),
                       ldTo,
                       ldTo,
                       /*clearsRest=*/true,
                       first};
    return to;
  };
  const void *x = read(xOf(c), scratch.x), *y = read(yOf(c), scratch.y);
  copyParts(std::span<const PartCopy<T>>(copies, count), stream);
  return {x, y};
}

void contractByLibrary(LibraryPlans &plans, const RowContraction &c, void *memory,
                       cudaStream_t stream) {
  const ContractionScratch scratch(plans, c, memory);
  const bool adds = addsOnto(c);
  if (adds)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(c.out, 0, static_cast<size_t>(c.k * c.n) * sizeof(float), stream));
  forGroups(c, [&](int64_t first, int64_t rows, int64_t chunks) {
    const auto [x, y] = c.bf16 ? readRows<Bf16>(c, first, rows * chunks, scratch, stream)
                               : readRows<float>(c, first, rows * chunks, scratch, stream);
    plans.multiply(shapeOf(c, rows, chunks), {y, x, adds ? c.out : scratch.sums, nullptr, c.out},
                   scratch.workspace, stream);
    if (!adds)
      GENREC_CUDA_LAUNCH(stream, shapeOfThreads(c.k * c.n, kThreads), addChunks, c, scratch.sums,
                         first, rows, chunks);
  });
}

bool isLarge(int64_t capacity, int64_t k, int64_t n) {
  return capacity > 0 && k >= kLeastLibrarySize && n >= kLeastLibrarySize;
}

} // namespace

int64_t chunkRows(const RowContraction &c) {
  constexpr int64_t kTile = 128;
  const int64_t tiles = blocksFor(c.k, kTile) * blocksFor(c.n, kTile);
  const auto even = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tiles)));
  const int64_t least = c.bf16 ? 1024 : kChunkStep;
  int64_t rows = c.bf16 ? std::clamp<int64_t>(even * 128, least, 16384)
                        : std::clamp<int64_t>(even * 64, least, 4096);
  while (rows > least && bytesOfCopies(c, rows) > kMostCopyBytes)
    rows /= 2;
  return rows;
}

bool libraryTakes(const LinearProduct &p) {
  LibraryPlans *plans = isLarge(p.capacity, p.k, p.n) ? LibraryPlans::get() : nullptr;
  return plans && plans->has(shapeOf(p, p.capacity), shapeOf(p, kPlannedRows));
}

bool libraryTakes(const RowContraction &c) {
  LibraryPlans *plans = isLarge(c.capacity, c.k, c.n) ? LibraryPlans::get() : nullptr;
  bool takes = plans != nullptr;
  if (plans)
    forGroups(c, [&](int64_t, int64_t rows, int64_t chunks) {
      takes = takes && plans->has(shapeOf(c, rows, chunks), planned(c));
    });
  return takes;
}

int64_t fastestScratchBytes(const LinearProduct &p) {
  if (!libraryTakes(p))
    return 0;
  const int64_t workspace = LibraryPlans::get()->workspaceBytes(shapeOf(p, p.capacity));
  return ProductScratch(p, workspace, nullptr).cursor.bytes();
}

int64_t fastestScratchBytes(const RowContraction &c) {
  if (!libraryTakes(c))
    return contractionScratchBytes(c.capacity, c.k, c.n);
  return ContractionScratch(*LibraryPlans::get(), c, nullptr).cursor.bytes();
}

void multiplyFastest(const LinearProduct &product, void *scratch, cudaStream_t stream) {
  if (libraryTakes(product))
    multiplyByLibrary(*LibraryPlans::get(), product, scratch, stream);
  else
    multiply(product, stream);
}

void contractFastest(const RowContraction &contraction, void *scratch, cudaStream_t stream) {
  if (libraryTakes(contraction))
    contractByLibrary(*LibraryPlans::get(), contraction, scratch, stream);
  else
    contractRows(contraction, scratch, stream);
}

} // namespace genrec::rt::cuda
