//===- scattered_sums.cu - Sums into rows that an index picks -------------===//

#include "genrec_rt/kernels/cuda/scattered_sums.h"

#include "segment_pieces.h"

#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/shared/math.h"

#include <bit>

namespace genrec::rt::kernels {
namespace {

using cuda::Piece;
using cuda::Pieces;

constexpr int kThreads = 128;

/// Terms by their place in the order.
struct OrderedTerms {
  ScatteredTerms terms;
  SumShape shape;
  const uint32_t *order;

  /// The vector of the term at `at`, and what it is multiplied by.
  __device__ const float *vector(int64_t at, float &coefficient) const {
    const uint32_t term = order[at], perRow = static_cast<uint32_t>(shape.terms);
    const uint32_t row = shape.terms > 1 ? term / perRow : term;
    const float *values = terms.values + row * valuesOfRow();
    const auto inRow = static_cast<int32_t>(term - row * perRow);
    coefficient = shape.isScaled ? values[inRow] : 1;
    int32_t number = 0;
#pragma unroll
    for (int32_t v = 1; v < kMostTermVectors; ++v)
      number += v < shape.vectors && inRow >= shape.firstTerms[v];
    return values + coefficientFloats(shape.terms, shape.isScaled) + number * shape.width;
  }
  __device__ int64_t valuesOfRow() const {
    return valueFloats(shape.terms, shape.vectors, shape.width, shape.isScaled);
  }

  /// For sumLevel.
  template <int kEach>
  __device__ void add(int64_t begin, int64_t end, int64_t base, int64_t dim,
                      float (&total)[kEach]) const {
    for (int64_t at = begin; at < end; ++at) {
      float coefficient;
      const float *row = vector(at, coefficient);
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * cuda::kWarp < dim)
          total[c] = detail::mulAdd(coefficient, row[base + c * cuda::kWarp], total[c]);
    }
  }
};

/// begins[row] = where its terms begin in the order, for rows 0 … rows: before all that are for
/// later rows.
__global__ void __launch_bounds__(kThreads)
    findBegins(const uint32_t *keys, const uint32_t *order, int64_t count, int64_t rows,
               int64_t *begins) {
  for (int64_t row = cuda::threadInGrid(); row <= rows; row += cuda::threadsInGrid()) {
    int64_t first = 0;
    for (int64_t left = count; left > 0;) {
      const int64_t half = left / 2;
      const bool isBefore = keys[order[first + half]] < static_cast<uint32_t>(row);
      first = isBefore ? first + half + 1 : first;
      left = isBefore ? left - half - 1 : half;
    }
    begins[row] = first;
  }
}

/// 2^shift threads add up a row of the result, V neighbouring floats each.
template <int V>
__global__ void __launch_bounds__(kThreads)
    addOrdered(const OrderedTerms from, const int64_t *begins, const Pieces pieces, int levels,
               int shift, float *to, int64_t rows) {
  struct alignas(4 * V) Pack {
    float at[V];
  };
  const int64_t lanes = int64_t(1) << shift, width = from.shape.width, stride = from.shape.stride;
  const int64_t lane = cuda::threadInGrid() & (lanes - 1);
  for (int64_t row = cuda::threadInGrid() >> shift; row < rows;
       row += cuda::threadsInGrid() >> shift) {
    int64_t begin = begins[row], size = begins[row + 1] - begin;
    const bool isGiant = size > cuda::kMostSummed;
    if (isGiant) {
      begin = pieces.firstOf[row];
      size = cuda::detail::itemsAfter(size, levels);
    }
    for (int64_t column = lane * V; column < stride; column += lanes * V) {
      Pack total = {};
      if (column < width && isGiant)
        for (int64_t at = begin; at < begin + size; ++at) {
          const Pack piece = *reinterpret_cast<const Pack *>(pieces.sums + at * width + column);
#pragma unroll
          for (int v = 0; v < V; ++v)
            total.at[v] += piece.at[v];
        }
      else if (column < width)
#pragma unroll 4
        for (int64_t at = begin; at < begin + size; ++at) {
          float coefficient;
          const float *vector = from.vector(at, coefficient);
          const Pack term = *reinterpret_cast<const Pack *>(vector + column);
#pragma unroll
          for (int v = 0; v < V; ++v)
            total.at[v] = detail::mulAdd(coefficient, term.at[v], total.at[v]);
        }
      *reinterpret_cast<Pack *>(to + row * stride + column) = total;
    }
  }
}

/// What lies in the scratch of a sum; a null pointer only counts.
struct Scratch {
  uint32_t *order;
  void *ordering;
  int64_t *begins;
  Pieces pieces = {};
  int64_t bytes = 0;

  Scratch(const ScatteredSum &sum, void *memory) : base(static_cast<char *>(memory)) {
    const int64_t count = sum.count(), most = Pieces::mostOf(count);
    order = take<uint32_t>(count);
    ordering = take<char>(cuda::orderScratchBytes(count, sum.rows + 1));
    begins = take<int64_t>(sum.rows + 1);
    if (Pieces::levelsOf(count) > 0)
      pieces = {take<Piece>(most), take<float>(most * sum.shape.width), take<int64_t>(sum.rows),
                take<uint32_t>(Pieces::kMostLevels + 1)};
  }

private:
  template <class T> T *take(int64_t count) {
    char *at = base ? base + bytes : nullptr;
    bytes += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return reinterpret_cast<T *>(at);
  }

  char *base;
};

cuda::LaunchShape shapeOf(int64_t threads) {
  return cuda::shapeOfThreads(threads, kThreads);
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
  GENREC_CUDA_LAUNCH(stream, shapeOf(sum.rows + 1), findBegins, sum.terms.keys, scratch.order,
                     count, sum.rows, scratch.begins);
  const OrderedTerms terms{sum.terms, sum.shape, scratch.order};
  cuda::sumPieces(sum.rows, nullptr, width, terms, scratch.begins, count, scratch.pieces, stream);
  const int levels = Pieces::levelsOf(count);
  auto launch = [&](auto kernel, int64_t packs) {
    const int shift =
        std::min(5, static_cast<int>(std::bit_width(static_cast<uint64_t>(packs - 1))));
    GENREC_CUDA_LAUNCH(stream, shapeOf(sum.rows << shift), kernel, terms, scratch.begins,
                       scratch.pieces, levels, shift, sum.to, sum.rows);
  };
  const bool isPacked =
      width % 4 == 0 && sum.shape.stride % 4 == 0 && reinterpret_cast<uintptr_t>(sum.to) % 16 == 0;
  if (isPacked)
    launch(addOrdered<4>, sum.shape.stride / 4);
  else
    launch(addOrdered<1>, sum.shape.stride);
}

} // namespace genrec::rt::kernels
