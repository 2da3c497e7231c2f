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

/// The sum of the gradients of distinct row `row`, D floats, in the order of its terms; of a giant
/// in the order of the tree that follows from the number of its terms. Zeros without terms. The
/// first is not added to a zero: -0 stays -0, as on the CPU.
template <int64_t D, int64_t L, int64_t V, class Sum>
__device__ inline void segmentSum(const SegmentSums *sums, int64_t row, Sum &&sum) {
  int64_t begin = sums->offsets[row], size = sums->offsets[row + 1] - begin;
  const bool isGiant = size > cuda::kMostSummed;
  if (isGiant) {
    begin = sums->pieces[row];
    size = cuda::detail::itemsAfter(size, sums->levels);
  }
  forElements<D, L, V>([&](int64_t slot, int64_t element) { elementOf(sum, slot, element) = 0; });
  for (int64_t at = begin; at < begin + size; ++at) {
    float share = 1;
    const float *from = isGiant ? sums->pieceSums + at * sums->dim : sums->terms.row(at, share);
    forLoaded<D, L, V>(from, [&](int64_t slot, int64_t element, float value) {
      const float term = value * share;
      float &total = elementOf(sum, slot, element);
      total = at == begin ? term : total + term;
    });
  }
  meetAfterWriting<L, Sum>();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_H
