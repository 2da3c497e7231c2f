//===- scattered_sums.cu - Sums into rows that an index picks -------------===//

#include "genrec_rt/kernels/cuda/scattered_sums.h"

#include "segment_pieces.h"

#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/scratch.h"
#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <type_traits>

namespace genrec::rt::kernels {
namespace {

using cuda::Piece;
using cuda::Pieces;

constexpr int kTermThreads = 128;
/// Vectors that a thread loads before it adds the first.
constexpr int kAtOnce = 8;
/// Columns up to which a result is added up as a whole. Of a wider one all rows are added up kSlice
/// columns at a time, of bfloat16 twice as many: their part of every vector stays in the
/// second-level cache, and a vector is read once for each of its terms.
constexpr int64_t kWhole = 64, kSlice = 32;
bool isSliced(const SumShape &shape) { return shape.stride > kWhole; }

/// Blocks that a multiprocessor has at once: as many as leave room for what a thread loads.
template <int V> constexpr int kBlocks = V >= 4 ? 7 : 8;

/// V neighbouring elements, which a thread moves at once, 16 bytes at a time.
template <int V, class Element = float>
struct alignas(V * sizeof(Element) < 16 ? V * sizeof(Element) : 16) Pack {
  Element at[V];
};

/// Adds coefficients times vectors, of which vectorOf(k, coefficient) is the k-th, for `Count` of
/// them from `first` on: one after another, but all are under way before the first is added.
template <int Count, int V, class VectorOf>
__device__ void addSome(int first, const VectorOf &vectorOf, Pack<V> &total) {
  float coefficients[Count];
  using Element = std::remove_cvref_t<decltype(*vectorOf(first, coefficients[0]))>;
  Pack<V, Element> packs[Count];
#pragma unroll
  for (int k = 0; k < Count; ++k)
    packs[k] = cuda::loadWhole<Pack<V, Element>>(vectorOf(first + k, coefficients[k]));
#pragma unroll
  for (int k = 0; k < Count; ++k)
#pragma unroll
    for (int v = 0; v < V; ++v)
      total.at[v] = detail::mulAdd(coefficients[k], widened(packs[k].at[v]), total.at[v]);
}

/// The same for all of `count`.
template <int V, class VectorOf>
__device__ void addAll(int count, const VectorOf &vectorOf, Pack<V> &total) {
  static_assert(kAtOnce == 8);
  int k = 0;
#pragma unroll 1
  for (; k + kAtOnce <= count; k += kAtOnce)
    addSome<kAtOnce>(k, vectorOf, total);
  if (count & 4)
    addSome<4>(k, vectorOf, total);
  k += count & 4;
  if (count & 2)
    addSome<2>(k, vectorOf, total);
  k += count & 2;
  if (count & 1)
    addSome<1>(k, vectorOf, total);
}

/// Terms by their place in the order.
struct OrderedTerms {
  ScatteredTerms terms;
  SumShape shape;
  const uint32_t *order;
  const float *coefficients; ///< in this order; null: where rows left them

  __device__ int64_t valuesOfRow() const {
    return valueFloats(shape.terms, shape.vectors, shape.width, shape.isScaled, shape.isRounded);
  }
  /// Where among the values, in words, the vector of the term at `at` is, and what it is multiplied
  /// by.
  __device__ int64_t vector(int64_t at, float &coefficient) const {
    const uint32_t term = order[at], perRow = static_cast<uint32_t>(shape.terms);
    const uint32_t row = shape.terms > 1 ? term / perRow : term;
    const int64_t values = row * valuesOfRow();
    const auto inRow = static_cast<int32_t>(term - row * perRow);
    coefficient = coefficients     ? coefficients[at]
                  : shape.isScaled ? terms.values[values + inRow]
                                   : 1;
    int32_t number = 0;
#pragma unroll
    for (int32_t v = 1; v < kMostTermVectors; ++v)
      number += v < shape.vectors && inRow >= shape.firstTerms[v];
    const int32_t words = shape.isRounded ? shape.width / 2 : shape.width;
    return values + coefficientFloats(shape.terms, shape.isScaled) + number * words;
  }
};

/// L neighbours of a warp, which do something together: the first what they have, and how far on
/// their next is.
template <int L> struct Lanes {
  static_assert(cuda::kWarp % L == 0);

  __device__ static int lane() { return cuda::laneOf() % L; }
  __device__ static uint32_t mask() {
    return cuda::kAllLanes >> (cuda::kWarp - L) << cuda::laneOf() / L * L;
  }
  __device__ static int64_t first() { return cuda::threadInGrid() / L; }
  __device__ static int64_t step() { return cuda::threadsInGrid() / L; }
};

/// Lanes that add up sums of vectors of Element, with V columns each of a slice of the result:
/// blockIdx.y is its number.
template <int L, int V, class Element> struct SumLanes : Lanes<L> {
  static_assert(L % kAtOnce == 0);
  using Lanes<L>::lane, Lanes<L>::mask;

  /// The first of this thread's columns.
  __device__ static int64_t column() { return (static_cast<int64_t>(blockIdx.y) * L + lane()) * V; }

  /// The sum of `count` terms from `begin` on, for this thread's columns. Each lane looks up one
  /// term in L, for all of them. One without columns reads the first, and has zeros.
  __device__ static Pack<V> sum(const OrderedTerms &from, int64_t begin, int count) {
    const int64_t own = column() < from.shape.width ? column() : 0;
    Pack<V> total = {};
    for (int first = 0; first < count; first += L) {
      float coefficient = 0;
      int64_t at = 0;
      if (first + lane() < count)
        at = from.vector(begin + first + lane(), coefficient);
      addAll(
          count - first < L ? count - first : L,
          [&](int k, float &of) {
            of = __shfl_sync(mask(), coefficient, k, L);
            const float *vector = from.terms.values + __shfl_sync(mask(), at, k, L);
            return reinterpret_cast<const Element *>(vector) + own;
          },
          total);
    }
    return column() < from.shape.width ? total : Pack<V>{};
  }
};

/// Lanes that look for where a row begins: what is left is cut into one part more with each look.
constexpr int kLookers = 4;

/// begins[row] = where its terms begin in the order, for rows 0 … rows: before all that are for
/// later rows.
__global__ void __launch_bounds__(kTermThreads)
    findBegins(const uint32_t *keys, const uint32_t *order, int64_t count, int64_t rows,
               int64_t *begins) {
  using Lookers = Lanes<kLookers>;
  for (int64_t row = Lookers::first(); row <= rows; row += Lookers::step()) {
    int64_t first = 0;
    for (int64_t left = count; left > 0;) {
      // Each lane looks at the last of its part.
      const int64_t part = (left + kLookers) / (kLookers + 1),
                    last = (Lookers::lane() + 1) * part - 1;
      const bool isBefore = last < left && keys[order[first + last]] < static_cast<uint32_t>(row);
      const int parts = __popc(__ballot_sync(Lookers::mask(), isBefore));
      first += parts * part;
      left -= parts * part;
      if (parts < kLookers && left >= part)
        left = part - 1; // the next lane's last is not before
    }
    if (Lookers::lane() == 0)
      begins[row] = first;
  }
}

/// to[at] = the coefficient of the term at `at`, of those of rows; `begins` is where these begin,
/// and the end of the last one. Behind it are places that no row has filled.
__global__ void __launch_bounds__(kTermThreads)
    orderCoefficients(const OrderedTerms from, const int64_t *begins, int64_t rows, float *to) {
  const int64_t count = begins[rows];
  for (int64_t at = cuda::threadInGrid(); at < count; at += cuda::threadsInGrid()) {
    float coefficient;
    from.vector(at, coefficient);
    to[at] = coefficient;
  }
}

/// The pieces of level 1.
template <int L, int V, class Element>
__global__ void __launch_bounds__(kTermThreads, kBlocks<V>)
    sumTermPieces(const OrderedTerms from, const Pieces pieces) {
  using Sums = SumLanes<L, V, Element>;
  const int64_t count = pieces.counts[1], width = from.shape.width;
  for (int64_t p = Sums::first(); p < count; p += Sums::step()) {
    const Piece piece = pieces.list[p];
    const Pack<V> total = Sums::sum(from, piece.begin, static_cast<int>(piece.end - piece.begin));
    if (Sums::column() < width)
      cuda::storeWhole(pieces.sums + p * width + Sums::column(), total);
  }
}

/// The rows of the result: terms are added, of giants the pieces that are left.
template <int L, int V, class Element>
__global__ void __launch_bounds__(kTermThreads, kBlocks<V>)
    addOrdered(const OrderedTerms from, const int64_t *begins, const Pieces pieces, int levels,
               float *to, int64_t rows) {
  using Sums = SumLanes<L, V, Element>;
  const int64_t column = Sums::column(), width = from.shape.width, stride = from.shape.stride;
  for (int64_t row = Sums::first(); row < rows; row += Sums::step()) {
    const int64_t begin = begins[row], size = begins[row + 1] - begin;
    Pack<V> total = {};
    if (size <= cuda::kMostSummed) {
      total = Sums::sum(from, begin, static_cast<int>(size));
    } else if (column < width) {
      const float *sums = pieces.sums + pieces.firstOf[row] * width + column;
      const auto left = static_cast<int>(cuda::detail::itemsAfter(size, levels));
      addAll(
          left,
          [&](int piece, float &coefficient) {
            coefficient = 1;
            return sums + piece * width;
          },
          total);
    }
    if (column < stride)
      cuda::storeWhole(to + row * stride + column, total);
  }
}

/// What lies in the scratch of a sum; a null pointer only counts.
struct Scratch {
  uint32_t *order;
  void *ordering;
  int64_t *begins;
  float *coefficients; ///< of a result that is added up in slices
  Pieces pieces;
  int64_t bytes;

  Scratch(const ScatteredSum &sum, void *memory) {
    cuda::ScratchCursor cursor(memory);
    const int64_t count = sum.count();
    order = cursor.take<uint32_t>(count);
    ordering = cursor.take<char>(cuda::orderScratchBytes(count, sum.rows + 1));
    begins = cursor.take<int64_t>(sum.rows + 1);
    coefficients = cursor.take<float>(sum.shape.isScaled && isSliced(sum.shape) ? count : 0);
    pieces = Pieces::in(cursor, sum.rows, sum.shape.width, count, count);
    bytes = cursor.bytes();
  }
};

cuda::LaunchShape shapeOf(int64_t threads, int slices = 1) {
  cuda::LaunchShape shape = cuda::shapeOfThreads(threads, kTermThreads);
  shape.grid.y = static_cast<unsigned>(slices); // one slice begins after another
  return shape;
}

/// Adds up the terms that `scratch` has the order of: L threads a row, V columns each.
template <int L, int V, class Element = float>
void addUp(cudaStream_t stream, const ScatteredSum &sum, const Scratch &scratch) {
  const int64_t count = sum.count();
  const auto slices = static_cast<int>(cuda::blocksFor(sum.shape.stride, L * V));
  OrderedTerms terms{sum.terms, sum.shape, scratch.order, nullptr};
  if (isSliced(sum.shape) && sum.shape.isScaled) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), orderCoefficients, terms, scratch.begins, sum.rows,
                       scratch.coefficients);
    terms.coefficients = scratch.coefficients;
  }
  cuda::sumPieces(sum.rows, nullptr, sum.shape.width, scratch.begins, count, count, scratch.pieces,
                  stream, [&](int64_t mostPieces) {
                    GENREC_CUDA_LAUNCH(stream, shapeOf(mostPieces * L, slices),
                                       (sumTermPieces<L, V, Element>), terms, scratch.pieces);
                  });
  GENREC_CUDA_LAUNCH(stream, shapeOf(sum.rows * L, slices), (addOrdered<L, V, Element>), terms,
                     scratch.begins, scratch.pieces, Pieces::levelsOf(count), sum.to, sum.rows);
}

} // namespace

int64_t scatteredScratchBytes(const ScatteredSum &sum) { return Scratch(sum, nullptr).bytes; }

void clearTerms(cudaStream_t stream, const ScatteredSum &sum) {
  static_assert(ScatteredTerms::kNoRow == 0xFFFFFFFFu);
  if (sum.count() > 0)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(sum.terms.keys, 0xFF, static_cast<size_t>(sum.count()) * 4, stream));
}

void addTerms(cudaStream_t stream, const ScatteredSum &sum, void *memory) {
  if (sum.rows == 0)
    return;
  const int64_t count = sum.count(), width = sum.shape.width;
  const Scratch scratch(sum, memory);
  cuda::orderStably(sum.terms.keys, count, sum.rows + 1, scratch.order, scratch.ordering, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf((sum.rows + 1) * kLookers), findBegins, sum.terms.keys,
                     scratch.order, count, sum.rows, scratch.begins);
  // What a thread moves at once is aligned in vectors, in their sums and in the result.
  const auto both = static_cast<uint64_t>(width) | static_cast<uint64_t>(sum.shape.stride) |
                    reinterpret_cast<uintptr_t>(sum.to) / sizeof(float);
  const bool isWide = sum.shape.stride > kSlice && !isSliced(sum.shape);
  if (sum.shape.isRounded)
    return both % 8 == 0 ? addUp<2 * kSlice / 8, 8, Bf16>(stream, sum, scratch)
                         : addUp<kSlice, 1, Bf16>(stream, sum, scratch);
  auto add = both % 4 == 0   ? isWide ? addUp<kWhole / 4, 4> : addUp<kSlice / 4, 4>
             : both % 2 == 0 ? isWide ? addUp<kWhole / 2, 2> : addUp<kSlice / 2, 2>
                             : addUp<kSlice, 1>;
  add(stream, sum, scratch);
}

} // namespace genrec::rt::kernels
