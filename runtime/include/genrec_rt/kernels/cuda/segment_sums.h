//===- segment_sums.h - Sums of the gradients of distinct rows ----*- C++ -*-===//
//
// What an update needs before its kernel runs. The kernel, generated from the optimizer's one body
// as every row kernel is, adds up the gradients of a row itself (segments.h), in the
// order of the row's occurrences, in float: the bits of the CPU, whatever runs when. A giant, a
// row with more than kMostSummed occurrences, is summed by a tree instead: pieces of kMostSummed
// occurrences each by a warp of its own, then the sums of the pieces in the same way, until a warp
// has kMostSummed of them at most. Those pieces are made here. The tree follows from the number of
// occurrences alone, so its bits are always the same as well.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENT_SUMS_H
#define GENREC_RT_KERNELS_CUDA_SEGMENT_SUMS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

namespace genrec::rt::cuda {

class SegmentReduction {
public:
  explicit SegmentReduction(const std::string &name)
      : bounds(name + ".piece_bounds"), partSums(name + ".piece_sums"),
        firstOf(name + ".first_pieces"), counts(name + ".piece_counts") {}

  /// Row u is the sum of its terms, terms.order[offsets[u] … offsets[u + 1]) (order.h), `dim`
  /// floats each, `occurrences` of all rows together at most. `count` rows, of which *used exist
  /// (null: all). *made, of the device, is for kernels after this call in `stream`, until the next
  /// call. `rows`: the device's descriptor of a domain without parent that gets *used rows, or
  /// null.
  void run(int64_t count, const uint32_t *used, int64_t dim, const SegmentTerms &terms,
           const int64_t *offsets, int64_t occurrences, SegmentSums *made, genrec_domain *rows,
           cudaStream_t stream);

private:
  DeviceArray<int64_t> bounds;
  DeviceArray<float> partSums;
  DeviceArray<int64_t> firstOf;
  DeviceArray<uint32_t> counts;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SEGMENT_SUMS_H
