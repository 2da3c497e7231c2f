//===- distinct_lookups.h - The distinct rows of lookups on a device -*- C++ -*-===//
//
// What embedding/distinct.h does on the CPU: the rows that each of several lookups found, numbered
// by first appearance in (lookup, row).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_EMBEDDING_CUDA_DISTINCT_LOOKUPS_H
#define GENREC_RT_EMBEDDING_CUDA_DISTINCT_LOOKUPS_H

#include "genrec_rt/device.h"
#include "genrec_rt/kernels/cuda/unique.h"

namespace genrec::rt::cuda {

/// Scratch of such calls, reused from call to call.
class DistinctLookupRows {
public:
  /// Throws Error where there may be more rows than numbers.
  void run(const DeviceLookups &lookups, cudaStream_t stream);

private:
  DeviceArray<int64_t> ids{"lookups.ids"};     ///< addresses of rows
  DeviceArray<int64_t> found{"lookups.found"}; ///< those of the distinct rows of all groups
  DeviceArray<int64_t> bounds{"lookups.bounds"};
  DeviceArray<uint32_t> total{"lookups.total"};
  Unique unique{"lookups"};
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_DISTINCT_LOOKUPS_H
