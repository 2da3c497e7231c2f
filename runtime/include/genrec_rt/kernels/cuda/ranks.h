//===- ranks.h - Numbering what is marked -------------------------*- C++ -*-===//
//
// rank[i] = how many of flags[0 … i) are set, on the device and in a fixed order:
// what compaction and numbering by first appearance are made of.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_RANKS_H
#define GENREC_RT_KERNELS_CUDA_RANKS_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/memory.h"

namespace genrec::rt::cuda {

/// Ranks in one launch (prefix_sums.h says how), with scratch that is reused from call to call.
class FlagRanks {
public:
  explicit FlagRanks(const std::string &name) : states(name + ".rank_states") {}

  /// Fills ranks[count] from flags[count] (0 or 1) and sets *total, on the device, to
  /// the number of flags set. `count` is at most 2^31. Calls are in the order of one stream.
  void run(const uint8_t *flags, int64_t count, uint32_t *ranks, uint32_t *total,
           cudaStream_t stream);

private:
  DeviceArray<Word> states; ///< zeros between calls
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_RANKS_H
