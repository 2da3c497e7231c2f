//===- segments_warp.h - Sums of the gradients of a row, by a warp -*- C++ -*-===//
//
// Terms of sums, and how a warp adds them up, element i in lane i % 32. A row kernel adds up those
// of its rows itself (segments.h). segment_sums.h says where the sums come from.
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
__device__ inline void addSome(int first, bool isFirst, int64_t base, int64_t dim, const Next &next,
                               float (&total)[kEach]) {
  const float *row[kTerms];
  float share[kTerms], values[kTerms][kEach];
#pragma unroll
  for (int i = 0; i < kTerms; ++i)
    row[i] = next(first + i, share[i]);
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

/// This lane's columns base, base + 32, … of the sum of `count` items, of which next(i) is the i-th
/// row and its share; those at `dim` and beyond stay as they are. The first of all is not added to
/// a zero: -0 stays -0, as on the CPU.
template <int kEach, class Next>
__device__ inline void addColumns(int count, bool isFirst, int64_t base, int64_t dim,
                                  const Next &next, float (&total)[kEach]) {
  constexpr int kAtOnce = kEach <= 2 ? 8 : 4;
  int at = 0;
  for (; at + kAtOnce <= count; at += kAtOnce)
    addSome<kAtOnce>(at, isFirst && at == 0, base, dim, next, total);
  if constexpr (kAtOnce > 4)
    if (count & 4) {
      addSome<4>(at, isFirst && at == 0, base, dim, next, total);
      at += 4;
    }
  if (count & 2) {
    addSome<2>(at, isFirst && at == 0, base, dim, next, total);
    at += 2;
  }
  if (count & 1)
    addSome<1>(at, isFirst && at == 0, base, dim, next, total);
}

/// The same of terms [begin, end), for all lanes of a warp together: each looks up where one term
/// is, for all of them.
template <int kEach>
__device__ inline void addTerms(const SegmentTerms &terms, int64_t begin, int64_t end, int64_t base,
                                int64_t dim, float (&total)[kEach]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t first = begin; first < end; first += 32) {
    float ownShare = 1;
    const float *ownRow = first + lane < end ? terms.row(first + lane, ownShare) : nullptr;
    addColumns(
        static_cast<int>(end - first < 32 ? end - first : 32), first == begin, base, dim,
        [&](int i, float &share) {
          share = __shfl_sync(0xFFFFFFFFu, ownShare, i);
          const auto at = __shfl_sync(0xFFFFFFFFu, reinterpret_cast<uintptr_t>(ownRow), i);
          return reinterpret_cast<const float *>(at);
        },
        total);
  }
}

template <int kEach>
__device__ inline void addPieces(const float *sums, int64_t begin, int64_t end, int64_t base,
                                 int64_t dim, float (&total)[kEach]) {
  addColumns(
      static_cast<int>(end - begin), true, base, dim,
      [&](int i, float &share) {
        share = 1;
        return sums + (begin + i) * dim;
      },
      total);
}

} // namespace detail

/// This lane's columns base, base + 32, … of the sum of the gradients of distinct row `row`, in the
/// order of its terms; of a giant in the order of the tree that follows from the number of its
/// terms. What lies at `dim` and beyond stays as it is. Called by all lanes of a warp.
template <int kEach>
__device__ inline void addSegment(const SegmentSums &sums, int64_t row, int64_t base, int64_t dim,
                                  float (&total)[kEach]) {
  const int64_t begin = sums.offsets[row], size = sums.offsets[row + 1] - begin;
  if (size <= kMostSummed) {
    detail::addTerms(sums.terms, begin, begin + size, base, dim, total);
  } else {
    const int64_t first = sums.pieces[row];
    detail::addPieces(sums.pieceSums, first, first + detail::itemsAfter(size, sums.levels), base,
                      dim, total);
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_WARP_H
