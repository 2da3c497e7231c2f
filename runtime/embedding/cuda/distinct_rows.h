//===- distinct_rows.h - Distinct touched rows on a device --------*- C++ -*-===//
//
// What embedding/segments.h does on the CPU: the rows that some gradient touches, numbered by first
// appearance in (part, row), and for each its gradients in that order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_EMBEDDING_CUDA_DISTINCT_ROWS_H
#define GENREC_RT_EMBEDDING_CUDA_DISTINCT_ROWS_H

#include "genrec_rt/device.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/segment_sums.h"
#include "genrec_rt/kernels/cuda/unique.h"

namespace genrec::rt::cuda {

/// Scratch of such calls, reused from call to call.
class DistinctRows {
public:
  /// Fills `touched` (of the host's step; its device's descriptor gets the count), `rows`, and
  /// `segments` for kernels that run until the next call with `sums`.
  void run(const DeviceGradients &gradients, SegmentReduction &sums, genrec_domain *touched,
           float **rows, void *segments, cudaStream_t stream);

  /// sums[s] = the sum of the gradients of row s of `touched`, `dim` floats.
  static void sum(const genrec_domain *touched, const void *segments, int64_t dim, float *sums,
                  cudaStream_t stream);

private:
  DeviceArray<int64_t> ids{
      "update.ids"}; ///< by entry: the address of its row, 0 where it touches none
  DeviceArray<uint32_t> inverse{"update.inverse"};
  DeviceArray<uint32_t> rowCount{"update.rows"};
  Unique unique{"update"};
  StableOrder stableOrder{"update"};
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_DISTINCT_ROWS_H
