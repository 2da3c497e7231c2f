//===- segments_warp.h - Sums of the gradients of a row, by a warp -*- C++ -*-===//
//
// What a row kernel on a device calls to add up the gradients of a distinct row, as cpu/segments.h
// has it: a warp has the row, element i belongs to lane i % 32.
// segment_sums.h says where the sums come from.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENTS_WARP_H
#define GENREC_RT_KERNELS_CUDA_SEGMENTS_WARP_H

#include <cuda_runtime.h>
#include <stdint.h>

namespace genrec::rt::cuda {

/// Most terms that one warp adds up. A row with more is a giant: sums of so many terms each, its
/// pieces, are there before the kernel runs.
constexpr int64_t kMostSummed = 256;

/// Terms of a sum, one after another: terms order[begin … end), of which term t has gradient row
/// parents[t], or row t itself where `parents` is null; times 1 / the size of the row's list where
/// `listOffsets` is given (a mean).
struct SegmentTerms {
  const float *gradients = nullptr;
  int64_t ld = 0; ///< floats from one gradient row to the next
  const int64_t *parents = nullptr;
  const int64_t *listOffsets = nullptr;
  const uint32_t *order = nullptr;
  /// By term: where its gradient row is; then `gradients` and `parents` are not read.
  const float *const *rows = nullptr;

  __device__ const float *row(int64_t at, float &share) const {
    if (rows) {
      share = 1;
      return rows[order[at]];
    }
    const int64_t term = order[at], parent = parents ? parents[term] : term;
    share =
        listOffsets ? 1 / static_cast<float>(listOffsets[parent + 1] - listOffsets[parent]) : 1.0f;
    return gradients + parent * ld;
  }
};

/// Sums of the distinct rows of a step; lies in memory of the device.
struct SegmentSums {
  SegmentTerms terms;
  const int64_t *offsets = nullptr; ///< by row: where its terms begin; one more at the end
  const int64_t *pieces = nullptr;  ///< by row, of giants: their pieces of the last level begin
  const float *pieceSums = nullptr; ///< `dim` floats each
  int64_t dim = 0;
  int32_t levels = 0; ///< of pieces of the largest giant
};

namespace detail {

/// Items that `size` terms leave after `levels` levels of pieces.
__device__ inline int64_t itemsAfter(int64_t size, int32_t levels) {
  for (int32_t level = 0; level < levels && size > kMostSummed; ++level)
    size = (size + kMostSummed - 1) / kMostSummed;
  return size;
}

/// kTerms items from `first` on, as addColumns. Their rows are loaded together, so that a lane
/// waits for memory once for all of them; then they are added one after another.
template <int kTerms, int kEach, class Next>
__device__ inline void addSome(int64_t first, bool isFirst, int64_t base, int64_t dim, Next next,
                               float (&total)[kEach]) {
  const float *row[kTerms];
  float share[kTerms], values[kTerms][kEach];
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    share[i] = 1;
    row[i] = next(first + i, share[i]);
  }
#pragma unroll
  for (int i = 0; i < kTerms; ++i)
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (base + c * 32 < dim)
        values[i][c] = row[i][base + c * 32];
#pragma unroll
  for (int i = 0; i < kTerms; ++i)
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (base + c * 32 < dim) {
        const float term = values[i][c] * share[i];
        total[c] = isFirst && i == 0 ? term : total[c] + term;
      }
}

/// This lane's columns base, base + 32, … of the sum of items [begin, end), of which next(i) is
/// the i-th row and its share; those at `dim` and beyond stay as they are. The first is not added
/// to a zero: -0 stays -0, as on the CPU.
template <int kEach, class Next>
__device__ inline void addColumns(int64_t begin, int64_t end, int64_t base, int64_t dim, Next next,
                                  float (&total)[kEach]) {
  int64_t at = begin;
  for (; at + 4 <= end; at += 4)
    addSome<4>(at, at == begin, base, dim, next, total);
  if (at + 2 <= end) {
    addSome<2>(at, at == begin, base, dim, next, total);
    at += 2;
  }
  if (at < end)
    addSome<1>(at, at == begin, base, dim, next, total);
}

template <int kEach>
__device__ inline void addTerms(const SegmentTerms &terms, int64_t begin, int64_t end, int64_t base,
                                int64_t dim, float (&total)[kEach]) {
  addColumns(
      begin, end, base, dim, [&](int64_t at, float &share) { return terms.row(at, share); }, total);
}

template <int kEach>
__device__ inline void addPieces(const float *sums, int64_t begin, int64_t end, int64_t base,
                                 int64_t dim, float (&total)[kEach]) {
  addColumns(begin, end, base, dim, [&](int64_t at, float &) { return sums + at * dim; }, total);
}

} // namespace detail

/// The sum of the gradients of distinct row `row`, D floats, in the order of its terms; of a giant
/// in the order of the tree that follows from the number of its terms. Zeros without terms. Called
/// by all lanes of a warp, for which `sum` is shared memory.
template <int64_t D>
__device__ inline const float *segmentSum(const SegmentSums *sums, int64_t row, float *sum) {
  constexpr int kEach = D <= 32 ? 1 : D <= 64 ? 2 : 4;
  const int64_t lane = threadIdx.x % 32;
  __syncwarp(); // the last sum has been read
  const int64_t begin = sums->offsets[row], size = sums->offsets[row + 1] - begin;
  for (int64_t base = lane; base < D; base += 32 * kEach) {
    float total[kEach] = {};
    if (size <= kMostSummed) {
      detail::addTerms(sums->terms, begin, begin + size, base, D, total);
    } else {
      const int64_t first = sums->pieces[row];
      detail::addPieces(sums->pieceSums, first, first + detail::itemsAfter(size, sums->levels),
                        base, D, total);
    }
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (base + c * 32 < D)
        sum[base + c * 32] = total[c];
  }
  __syncwarp();
  return sum;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_WARP_H
