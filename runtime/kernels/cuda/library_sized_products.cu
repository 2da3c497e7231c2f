//===- library_sized_products.cu - Scores and their gradients through cuBLASLt ---===//
//
// The library's matrices are by columns: result^T [n, m] = right^T [n, k] left^T [k, m].
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/library_products.h"

#include "library_plans.h"
#include "library_scratch.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/scratch.h"

namespace genrec::rt::cuda {

namespace {

/// Steps of a contraction that the library adds up in one sum, where the contraction is long and
/// the result small; and the most memory of such sums.
constexpr int64_t kSteps = 4096;
constexpr int64_t kMostSumBytes = int64_t(64) << 20;
/// How many sums at once the algorithm is chosen for.
constexpr int64_t kPlannedPieces = 4;

//===----------------------------------------------------------------------===//
// What the library is asked for
//===----------------------------------------------------------------------===//

/// Whether every step is there: then memory behind the last one is not touched.
bool isKnown(const ProductSize &size) { return !size.rows; }

/// Whether the contraction is over rows of both sides. Rows behind the last one are nobody's, so
/// they can be cleared.
bool isOverRows(const SizedProduct &p) { return p.leftTransposed && !p.rightTransposed; }

/// A long contraction whose length no batch changes.
bool isCut(const SizedProduct &p) { return isKnown(p.k) && p.k.most > kSteps; }

LibraryShape shapeOf(const SizedProduct &p, int64_t rows, int64_t steps, int64_t batches) {
  LibraryShape s;
  s.device = currentDevice();
  s.transposesA = p.rightTransposed, s.transposesB = p.leftTransposed;
  s.m = p.n.most, s.n = rows, s.k = steps;
  s.ldA = p.ldRight, s.ldB = p.ldLeft;
  s.alignA = alignmentOf(p.right), s.alignB = alignmentOf(p.left);
  if (isCut(p)) {
    s.ldD = p.n.most;
    s.batches = batches;
    s.strideA = kSteps * (p.rightTransposed ? 1 : p.ldRight);
    s.strideB = kSteps * (p.leftTransposed ? p.ldLeft : 1);
    s.strideD = p.m.most * p.n.most;
    return s;
  }
  s.ldD = p.ldResult;
  s.alignD = alignmentOf(p.result);
  s.addsC = p.onto != nullptr;
  if (p.onto)
    s.ldC = p.ldOnto, s.alignC = alignmentOf(p.onto);
  return s;
}

/// How a contraction is cut: whole pieces, of which `each` are added up at once, and a last one.
struct ProductPieces {
  int64_t whole, last, each;

  explicit ProductPieces(const SizedProduct &p)
      : whole(p.k.most / kSteps), last(p.k.most % kSteps) {
    const int64_t bytes = p.m.most * p.n.most * 4;
    each = std::clamp<int64_t>(kMostSumBytes / bytes, 1, whole);
  }
};

/// Every shape that a product runs in. Sizes that differ between batches, and how many pieces are
/// added up at once, are those of `planned` there.
template <class Visit> void forShapes(const SizedProduct &p, const Visit &visit) {
  if (!isCut(p))
    return visit(shapeOf(p, p.m.most, p.k.most, 1));
  const ProductPieces pieces(p);
  visit(shapeOf(p, p.m.most, kSteps, pieces.each));
  if (pieces.whole % pieces.each > 0)
    visit(shapeOf(p, p.m.most, kSteps, pieces.whole % pieces.each));
  if (pieces.last > 0)
    visit(shapeOf(p, p.m.most, pieces.last, 1));
}

LibraryShape planned(const SizedProduct &p) {
  const int64_t rows = isKnown(p.m) ? p.m.most : kPlannedRows;
  if (isCut(p))
    return shapeOf(p, rows, kSteps, kPlannedPieces);
  return shapeOf(p, rows, isKnown(p.k) ? p.k.most : kPlannedRows, 1);
}

int64_t workspaceBytes(LibraryPlans &plans, const SizedProduct &p) {
  int64_t bytes = 0;
  forShapes(
      p, [&](const LibraryShape &shape) { bytes = std::max(bytes, plans.workspaceBytes(shape)); });
  return bytes;
}

struct SizedScratch {
  ScratchCursor cursor;
  float *sums;
  void *workspace;

  SizedScratch(LibraryPlans &plans, const SizedProduct &p, void *memory)
      : cursor(memory),
        sums(cursor.take<float>(isCut(p) ? ProductPieces(p).each * p.m.most * p.n.most : 0)),
        workspace(cursor.take<char>(workspaceBytes(plans, p))) {}
};

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// Rows of `width` floats become 0, from the last one of `size` up to its bound.
__global__ void __launch_bounds__(kThreads)
    clearRows(const ProductSize size, float *rows, int64_t ld, int64_t width) {
  const int64_t count = min(max(size.rows->count - size.first, int64_t(0)), size.most);
  for (int64_t i = threadInGrid(); i < (size.most - count) * width; i += threadsInGrid())
    rows[(count + i / width) * ld + i % width] = 0.0f;
}

/// Nothing where the host knows that all are there.
void clearRest(const ProductSize &size, const float *rows, int64_t ld, int64_t width,
               cudaStream_t stream) {
  if (isKnown(size))
    return;
  // At most an eighth is padding.
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads((size.most / 8 + 1) * width, kThreads), clearRows, size,
                     const_cast<float *>(rows), ld, width);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// result = onto, or what is there after the first pieces, and `pieces` sums in their order.
__global__ void __launch_bounds__(kThreads)
    addPieces(const SizedProduct p, const float *sums, int64_t pieces, bool isFirst) {
  const int64_t rows =
      p.m.rows ? min(max(p.m.rows->count - p.m.first, int64_t(0)), p.m.most) : p.m.most;
  const int64_t size = p.m.most * p.n.most;
  for (int64_t i = threadInGrid(); i < rows * p.n.most; i += threadsInGrid()) {
    const int64_t row = i / p.n.most, column = i % p.n.most;
    float *to = p.result + row * p.ldResult + column;
    float sum = !isFirst ? *to : p.onto ? p.onto[row * p.ldOnto + column] : 0.0f;
    for (int64_t piece = 0; piece < pieces; ++piece)
      sum += sums[piece * size + i];
    *to = sum;
  }
}

void multiplyPieces(LibraryPlans &plans, const SizedProduct &p, const SizedScratch &scratch,
                    cudaStream_t stream) {
  const ProductPieces pieces(p);
  auto run = [&](int64_t first, int64_t steps, int64_t count) {
    const LibraryShape shape = shapeOf(p, p.m.most, steps, count);
    plans.multiply(shape,
                   {p.right + first * shape.strideA, p.left + first * shape.strideB, scratch.sums},
                   scratch.workspace, stream);
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(p.m.most * p.n.most, kThreads), addPieces, p,
                       scratch.sums, count, first == 0);
  };
  for (int64_t first = 0; first < pieces.whole; first += pieces.each)
    run(first, kSteps, std::min(pieces.each, pieces.whole - first));
  if (pieces.last > 0)
    run(pieces.whole, pieces.last, 1);
}

void multiplyByLibrary(LibraryPlans &plans, const SizedProduct &p, void *memory,
                       cudaStream_t stream) {
  const SizedScratch scratch(plans, p, memory);
  if (isOverRows(p)) {
    clearRest(p.k, p.left, p.ldLeft, p.m.most, stream);
    clearRest(p.k, p.right, p.ldRight, p.n.most, stream);
  }
  if (isCut(p))
    multiplyPieces(plans, p, scratch, stream);
  else
    plans.multiply(shapeOf(p, p.m.most, p.k.most, 1), {p.right, p.left, p.result, nullptr, p.onto},
                   scratch.workspace, stream);
  clearRest(p.m, p.result, p.ldResult, p.n.most, stream);
}

} // namespace

bool libraryTakes(const SizedProduct &p) {
  const bool isLarge = p.m.most > 0 && p.n.most >= kLeastLibrarySize &&
                       (isKnown(p.k) ? p.k.most >= kLeastLibrarySize : p.k.most > 0);
  if (!isLarge || !isKnown(p.n) || p.nanNote || (p.keepsRest && !isKnown(p.m)) ||
      (!isKnown(p.k) && !isOverRows(p)))
    return false;
  LibraryPlans *plans = LibraryPlans::get();
  bool takes = plans != nullptr;
  if (plans)
    forShapes(p,
              [&](const LibraryShape &shape) { takes = takes && plans->has(shape, planned(p)); });
  return takes;
}

int64_t fastestScratchBytes(const SizedProduct &p) {
  return libraryTakes(p) ? SizedScratch(*LibraryPlans::get(), p, nullptr).cursor.bytes()
                         : productScratchBytes(p);
}

void multiplyFastest(const SizedProduct &product, void *scratch, cudaStream_t stream) {
  if (libraryTakes(product))
    multiplyByLibrary(*LibraryPlans::get(), product, scratch, stream);
  else
    multiply(product, scratch, stream);
}

} // namespace genrec::rt::cuda
