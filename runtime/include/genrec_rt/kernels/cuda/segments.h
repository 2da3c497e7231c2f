//===- segments.h - Gradients of distinct rows, for row kernels --*- C++ -*-===//
//
// What a row kernel calls to add up the gradients of a distinct row, as cpu/segments.h has it, by
// the row's lanes (lanes.h). segment_sums.h says where the sums come from.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENTS_H
#define GENREC_RT_KERNELS_CUDA_SEGMENTS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

namespace genrec::rt::kernels {
using cuda::SegmentSums;

/// What genrec_rt_unique_rows has put there, on the device.
inline SegmentSums *segmentSums(void *segments) { return static_cast<SegmentSums *>(segments); }

/// The rows that the rank updates, and their sums: `own`, unless several portions or ranks have
/// been added up.
inline float **ownedRows(const genrec_collected_rows *collected, float **own) {
  return collected ? collected->rows : own;
}
inline float *ownedSums(const genrec_collected_rows *collected, float *own) {
  return collected ? collected->sums : own;
}
inline SegmentSums *ownedSums(const genrec_collected_rows *collected, SegmentSums *own) {
  return collected ? static_cast<SegmentSums *>(collected->segments) : own;
}
inline namespace GENREC_RT_ISA {

namespace detail {

/// Terms whose rows a lane has under way at once, of `Slots` elements each: 4 or more where these
/// are few.
template <int64_t Slots> constexpr int kTermsAtOnce = Slots <= 4 ? 8 : Slots <= 8 ? 4 : 2;

/// total += shares times rows, one after another; the first of all is not added to a zero. Rows are
/// aligned to `Aligned` floats.
template <int64_t D, int64_t L, int64_t V, int64_t Aligned, int Count, size_t Slots>
__device__ inline void addRowsInOrder(const float *const (&rows)[Count],
                                      const float (&shares)[Count], bool isFirst,
                                      float (&total)[Slots]) {
  constexpr int64_t kPack = V < D ? V : D;
#pragma unroll
  for (int64_t pack = 0; pack < kPacks<D, L, V>; ++pack) {
    const int64_t first = firstOfPack<L, V>(pack);
    if (first >= D)
      continue;
    float values[Count][kPack];
#pragma unroll
    for (int k = 0; k < Count; ++k)
      loadPack<Aligned>(rows[k] + first, values[k]);
#pragma unroll
    for (int k = 0; k < Count; ++k)
#pragma unroll
      for (int64_t j = 0; j < kPack; ++j) {
        const float term = values[k][j] * shares[k];
        float &sum = total[pack * kPack + j];
        sum = isFirst && k == 0 ? term : sum + term;
      }
  }
}

/// The same for terms i … i + Count - 1, of which next(i, share) is the i-th row: in packs where
/// all of these are aligned to them, which only running tells.
template <int64_t D, int64_t L, int64_t V, int Count, class Next, size_t Slots>
__device__ inline void addTermsInOrder(int i, bool isFirst, const Next &next,
                                       float (&total)[Slots]) {
  const float *rows[Count];
  float shares[Count];
  uintptr_t addresses = 0;
#pragma unroll
  for (int k = 0; k < Count; ++k) {
    rows[k] = next(i + k, shares[k]);
    addresses |= reinterpret_cast<uintptr_t>(rows[k]);
  }
  if constexpr (L > 1 && V > 1 && D % V == 0)
    if (addresses % (V * sizeof(float)) == 0)
      return addRowsInOrder<D, L, V, V>(rows, shares, isFirst, total);
  addRowsInOrder<D, L, V, 1>(rows, shares, isFirst, total);
}

/// The same for `count` terms.
template <int64_t D, int64_t L, int64_t V, class Next, size_t Slots>
__device__ inline void addTermsInOrder(int count, bool isFirst, const Next &next,
                                       float (&total)[Slots]) {
  constexpr int kAtOnce = kTermsAtOnce<Slots>;
  int i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce)
    addTermsInOrder<D, L, V, kAtOnce>(i, isFirst && i == 0, next, total);
  if constexpr (kAtOnce > 4)
    if (count & 4) {
      addTermsInOrder<D, L, V, 4>(i, isFirst && i == 0, next, total);
      i += 4;
    }
  if constexpr (kAtOnce > 2)
    if (count & 2) {
      addTermsInOrder<D, L, V, 2>(i, isFirst && i == 0, next, total);
      i += 2;
    }
  if (count & 1)
    addTermsInOrder<D, L, V, 1>(i, isFirst && i == 0, next, total);
}

} // namespace detail

/// The sum of the gradients of distinct row `row`, D floats, in the order of its terms; of a giant
/// in the order of the tree that follows from the number of its terms. Zeros without terms. The
/// first is not added to a zero: -0 stays -0, as on the CPU. Each lane looks up where one term is,
/// for all that are in its warp.
template <int64_t D, int64_t L, int64_t V, class Sum>
__device__ inline void segmentSum(const SegmentSums *sums, int64_t row, Sum &&sum) {
  constexpr int64_t kPack = L == 1 ? 1 : V, kGroup = kLanesOfWarp<L>;
  const int64_t begin = sums->offsets[row], size = sums->offsets[row + 1] - begin;
  float total[kSlots<D, L, kPack>] = {};
  auto add = [&](int count, bool isFirst, const auto &next) {
    detail::addTermsInOrder<D, L, kPack>(count, isFirst, next, total);
  };
  if (size > cuda::kMostSummed) {
    const float *pieces = sums->pieceSums + sums->pieces[row] * sums->dim;
    add(static_cast<int>(cuda::detail::itemsAfter(size, sums->levels)), true,
        [&](int i, float &share) {
          share = 1;
          return pieces + i * sums->dim;
        });
  } else if constexpr (L == 1) {
    add(static_cast<int>(size), true,
        [&](int i, float &share) { return sums->terms.row(begin + i, share); });
  } else {
    const auto count = static_cast<int>(size), group = static_cast<int>(kGroup);
    for (int first = 0; first < count; first += group) {
      const int own = first + static_cast<int>(lane<kGroup>());
      float ownShare = 1;
      const float *ownRow = own < count ? sums->terms.row(begin + own, ownShare) : nullptr;
      add(count - first < group ? count - first : group, first == 0, [&](int i, float &share) {
        share = valueOf<kGroup>(ownShare, i);
        const auto at = valueOf<kGroup>(reinterpret_cast<uintptr_t>(ownRow), i);
        return reinterpret_cast<const float *>(at);
      });
    }
  }
  forElements<D, L, kPack>(
      [&](int64_t slot, int64_t element) { elementOf(sum, slot, element) = total[slot]; });
  meetAfterWriting<L, Sum>();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_H
