//===- library_products.cu - Products through cuBLASLt --------------------===//
//
// The library's matrices are by columns: rows of a product are its columns, so that
// y^T [n, rows] = W^T x^T, and out^T [n, k] = y^T x.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/library_products.h"

#include "library_plans.h"
#include "library_scratch.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/activation.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/part_copies.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256;
/// Of a group of a contraction's chunks: copies and sums.
constexpr int64_t kMostGroupBytes = int64_t(64) << 20;

//===----------------------------------------------------------------------===//
// Rows times a weight
//===----------------------------------------------------------------------===//

/// Where the sums and the bias go, before what is left to do.
float *sumsOf(const LinearProduct &p) { return p.pre ? p.pre : p.y; }
int64_t ldOfSums(const LinearProduct &p) { return p.pre ? p.ldPre : p.ldY; }
bool hasMore(const LinearProduct &p) {
  return p.pre || p.residual || p.activation != Activation::none;
}

/// Rows and columns of the weight as it is stored.
int64_t weightRows(const LinearProduct &p) { return p.transposed ? p.n : p.k; }
int64_t weightColumns(const LinearProduct &p) { return p.transposed ? p.k : p.n; }

LibraryShape shapeOf(const LinearProduct &p, int64_t rows) {
  LibraryShape s;
  s.device = currentDevice();
  s.isBf16 = p.bf16;
  s.transposesA = p.transposed;
  s.hasBias = p.bias != nullptr;
  s.m = p.n, s.n = rows, s.k = p.bf16 && p.transposed ? roundedTo(p.k, 8) : p.k;
  s.ldA = p.bf16 ? roundedTo(weightColumns(p), 8) : weightColumns(p);
  s.ldB = p.bf16 ? roundedTo(p.k, 8) : p.ldX;
  s.ldD = ldOfSums(p);
  if (!p.bf16)
    s.alignA = alignmentOf(p.weight), s.alignB = alignmentOf(p.x);
  s.alignD = alignmentOf(sumsOf(p));
  return s;
}

struct ProductScratch {
  Parts parts;
  Bf16 *x, *weight;
  void *workspace;

  ProductScratch(const LinearProduct &p, int64_t workspaceBytes, void *memory)
      : parts(memory), x(parts.take<Bf16>(p.bf16 ? p.capacity * roundedTo(p.k, 8) : 0)),
        weight(parts.take<Bf16>(p.bf16 ? weightRows(p) * roundedTo(weightColumns(p), 8) : 0)),
        workspace(parts.take<char>(workspaceBytes)) {}
};

/// y = A(sums) + residual of the rows that there are.
__global__ void __launch_bounds__(kThreads)
    finishProduct(const LinearProduct p, const float *sums, int64_t ldSums) {
  const int64_t rows = p.rows->count;
  for (int64_t i = threadInGrid(); i < rows * p.n; i += threadsInGrid()) {
    const int64_t row = i / p.n, column = i % p.n;
    float t = activate(p.activation, sums[row * ldSums + column]);
    if (p.residual)
      t = t + p.residual[row * p.ldResidual + column];
    p.y[row * p.ldY + column] = t;
  }
}

void multiplyByLibrary(LibraryPlans &plans, const LinearProduct &p, void *memory,
                       cudaStream_t stream) {
  const LibraryShape shape = shapeOf(p, p.capacity);
  const ProductScratch scratch(p, plans.workspaceBytes(shape), memory);
  LibraryOperands operands{p.weight, p.x, sumsOf(p), p.bias};
  if (p.bf16) {
    const int64_t ldX = roundedTo(p.k, 8), ldWeight = roundedTo(weightColumns(p), 8);
    copyParts(PartCopy<Bf16>{p.rows, p.capacity, 1, p.x, p.ldX, p.k, scratch.x, ldX, ldX,
                             /*clearsRest=*/true},
              stream);
    copyParts(PartCopy<Bf16>{nullptr, weightRows(p), 1, p.weight, weightColumns(p),
                             weightColumns(p), scratch.weight, ldWeight, ldWeight},
              stream);
    operands.a = scratch.weight;
    operands.b = scratch.x;
  }
  plans.multiply(shape, operands, scratch.workspace, stream);
  if (hasMore(p))
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(p.capacity * p.n, kThreads), finishProduct, p,
                       sumsOf(p), ldOfSums(p));
}

//===----------------------------------------------------------------------===//
// Contractions over rows
//===----------------------------------------------------------------------===//

/// Leading dimensions of copies: whole steps of 16 bytes.
int64_t ldOfCopy(const RowContraction &c, int64_t size) { return roundedTo(size, c.bf16 ? 8 : 4); }
int64_t bytesOfFactor(const RowContraction &c) { return c.bf16 ? 2 : 4; }
int64_t chunksOf(const RowContraction &c) { return blocksFor(c.capacity, kContractionRows); }

int64_t chunksAtOnce(const RowContraction &c) {
  const int64_t factors = ldOfCopy(c, c.k) + ldOfCopy(c, c.n);
  const int64_t each = kContractionRows * factors * bytesOfFactor(c) + c.k * c.n * 4;
  return std::clamp<int64_t>(kMostGroupBytes / each, 1, chunksOf(c));
}

LibraryShape shapeOf(const RowContraction &c, int64_t chunks) {
  LibraryShape s;
  s.device = currentDevice();
  s.isBf16 = c.bf16;
  s.transposesB = true;
  s.m = c.n, s.n = c.k, s.k = kContractionRows;
  s.ldA = ldOfCopy(c, c.n), s.ldB = ldOfCopy(c, c.k), s.ldD = c.n;
  s.batches = chunks;
  s.strideA = kContractionRows * s.ldA;
  s.strideB = kContractionRows * s.ldB;
  s.strideD = c.k * c.n;
  return s;
}

struct ContractionScratch {
  Parts parts;
  char *x, *y;
  float *sums;
  void *workspace;

  ContractionScratch(const RowContraction &c, int64_t workspaceBytes, void *memory)
      : parts(memory), x(takeCopy(c, c.k)), y(takeCopy(c, c.n)),
        sums(parts.take<float>(chunksAtOnce(c) * c.k * c.n)),
        workspace(parts.take<char>(workspaceBytes)) {}

private:
  char *takeCopy(const RowContraction &c, int64_t size) {
    return parts.take<char>(chunksAtOnce(c) * kContractionRows * ldOfCopy(c, size) *
                            bytesOfFactor(c));
  }
};

/// out (+)= the sums of `chunks` chunks from `first` on, as far as there are rows, in their order.
__global__ void __launch_bounds__(kThreads)
    addChunks(const RowContraction c, const float *sums, int64_t first, int64_t chunks) {
  const int64_t size = c.k * c.n, rows = c.rows->count - first * kContractionRows;
  const int64_t there = min(chunks, (rows + kContractionRows - 1) / kContractionRows);
  for (int64_t i = threadInGrid(); i < size; i += threadsInGrid()) {
    float sum = first == 0 ? 0.0f : c.out[i];
    for (int64_t chunk = 0; chunk < there; ++chunk)
      sum += sums[chunk * size + i];
    c.out[i] = sum;
  }
}

/// The rows of some chunks as the library reads them.
void copyRows(const RowContraction &c, int64_t first, int64_t chunks, const float *from, int64_t ld,
              int64_t size, void *to, cudaStream_t stream) {
  const int64_t ldTo = ldOfCopy(c, size), rows = chunks * kContractionRows;
  auto copy = [&]<class T>(T *typed) {
    copyParts(PartCopy<T>{c.rows, rows, 1, from, ld, size, typed, ldTo, ldTo, /*clearsRest=*/true,
                          first * kContractionRows},
              stream);
  };
  if (c.bf16)
    copy(static_cast<Bf16 *>(to));
  else
    copy(static_cast<float *>(to));
}

void contractByLibrary(LibraryPlans &plans, const RowContraction &c, void *memory,
                       cudaStream_t stream) {
  const int64_t each = chunksAtOnce(c), all = chunksOf(c);
  const ContractionScratch scratch(c, plans.workspaceBytes(shapeOf(c, each)), memory);
  for (int64_t first = 0; first < all; first += each) {
    copyRows(c, first, each, c.x, c.ldX, c.k, scratch.x, stream);
    copyRows(c, first, each, c.y, c.ldY, c.n, scratch.y, stream);
    plans.multiply(shapeOf(c, each), {scratch.y, scratch.x, scratch.sums, nullptr},
                   scratch.workspace, stream);
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(c.k * c.n, kThreads), addChunks, c, scratch.sums,
                       first, each);
  }
}

bool isLarge(int64_t capacity, int64_t k, int64_t n) {
  return capacity > 0 && k >= kLeastLibrarySize && n >= kLeastLibrarySize;
}

} // namespace

bool libraryTakes(const LinearProduct &p) {
  LibraryPlans *plans = isLarge(p.capacity, p.k, p.n) ? LibraryPlans::get() : nullptr;
  return plans && plans->has(shapeOf(p, p.capacity), shapeOf(p, kPlannedRows));
}

bool libraryTakes(const RowContraction &c) {
  LibraryPlans *plans = isLarge(c.capacity, c.k, c.n) ? LibraryPlans::get() : nullptr;
  return plans &&
         plans->has(shapeOf(c, chunksAtOnce(c)), shapeOf(c, kPlannedRows / kContractionRows));
}

int64_t fastestScratchBytes(const LinearProduct &p) {
  if (!libraryTakes(p))
    return 0;
  const int64_t workspace = LibraryPlans::get()->workspaceBytes(shapeOf(p, p.capacity));
  return ProductScratch(p, workspace, nullptr).parts.bytes;
}

int64_t fastestScratchBytes(const RowContraction &c) {
  if (!libraryTakes(c))
    return contractionScratchBytes(c.capacity, c.k, c.n);
  const int64_t workspace = LibraryPlans::get()->workspaceBytes(shapeOf(c, chunksAtOnce(c)));
  return ContractionScratch(c, workspace, nullptr).parts.bytes;
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
