//===- segments.h - Gradients of distinct rows, added up where they are used -*- C++ -*-===//
//
// What genrec_rt_unique_rows leaves: by distinct row the gradients that belong to it, its
// members. A kernel over the distinct rows adds them up row by row, so that no sum is ever in
// memory; of a row with one gradient it reads just that.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_SEGMENTS_H
#define GENREC_RT_KERNELS_CPU_SEGMENTS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/rowbody.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// A member is part << kSegmentPartShift | gradient row.
constexpr int kSegmentPartShift = 40;

/// How genrec_rt_unique_rows lays out `segments`: a line that begins with the number of
/// contributions, then these arrays one after another.
struct SegmentArrays {
  int64_t *offsets; ///< total + 1: where the members of a distinct row begin
  int64_t *members; ///< total, in the order of (part, row) within each row

  explicit SegmentArrays(void *segments)
      : SegmentArrays(segments, *static_cast<int64_t *>(segments)) {}
  SegmentArrays(void *segments, int64_t total)
      : offsets(static_cast<int64_t *>(segments) + 8), members(offsets + total + 1) {}
};

/// Members with what they stand for: rows of `gradients`, by part, `strides` floats apart.
struct SegmentSums {
  const int64_t *offsets = nullptr, *members = nullptr;
  const float *const *gradients = nullptr;
  const int64_t *strides = nullptr;
  int64_t memberCount = 0;

  const float *gradient(int64_t member) const {
    int64_t part = members[member] >> kSegmentPartShift;
    int64_t row = members[member] & ((int64_t(1) << kSegmentPartShift) - 1);
    return gradients[part] + row * strides[part];
  }
};

/// For kernels over `touched`, the domain that `segments` was filled for.
inline SegmentSums segmentSums(const genrec_domain *touched, void *segments,
                               const float *const *gradients, const int64_t *strides) {
  SegmentArrays arrays(segments);
  int64_t members = touched->count > 0 ? arrays.offsets[touched->count] : 0;
  return {arrays.offsets, arrays.members, gradients, strides, members};
}

/// The rows that the rank updates: `own`, unless several portions or ranks have been added up.
inline float **ownedRows(const genrec_collected_rows *collected, float **own) {
  return collected ? collected->rows : own;
}

inline float *ownedSums(const genrec_collected_rows *collected, float *own) {
  return collected ? collected->sums : own;
}

/// Changes `own`: then each row has one gradient, its sum.
inline SegmentSums *ownedSums(const genrec_collected_rows *collected, SegmentSums *own) {
  if (collected)
    *own = {collected->numbers, collected->numbers, &collected->sums, &collected->dim, 0};
  return own;
}

/// The sum of the gradients of distinct row `row`, D floats, in the order of its members: the one
/// gradient itself, or `sum` with them added up.
template <int64_t D>
GENREC_SIMD const float *segmentSum(const SegmentSums *sums, int64_t row, float *sum) {
  int64_t begin = sums->offsets[row], end = sums->offsets[row + 1];
#if !defined(GENREC_COUNTS_ACCESSES)
  // Columns of a wide gradient lie far apart: some are on their way while others are added.
  constexpr int64_t kAhead = 8;
  for (int64_t member = begin + kAhead; member < end + kAhead && member < sums->memberCount;
       ++member)
    __builtin_prefetch(sums->gradient(member));
#endif
  const float *first = sums->gradient(begin);
  if (end - begin == 1)
    return first;
  const float *second = sums->gradient(begin + 1);
  for (int64_t i = 0; i < D; ++i)
    sum[i] = first[i] + second[i];
  for (int64_t member = begin + 2; member < end; ++member) {
    const float *next = sums->gradient(member);
    for (int64_t i = 0; i < D; ++i)
      sum[i] += next[i];
  }
  return sum;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_SEGMENTS_H
