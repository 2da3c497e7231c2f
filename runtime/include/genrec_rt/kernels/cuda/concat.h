//===- concat.h - Arrays of a device, one behind the other --------*- C++ -*-===//
//
// The parts of a weight whose gradients are computed apart (genrec.concat_shared) are many and
// small: hundreds of some kilobytes. A copy each would cost a launch each, so one kernel copies
// up to kConcatParts of them.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_CONCAT_H
#define GENREC_RT_KERNELS_CUDA_CONCAT_H

#include <cstdint>

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Parts that one launch copies: their addresses are arguments of the kernel.
constexpr int64_t kConcatParts = 200;

/// Writes the `count` arrays `parts`, of sizes[i] floats each, to `to`, one behind the other.
/// `parts` and `sizes` are arrays of the host, read in the call; ceil(count / kConcatParts)
/// launches.
void concat(float *to, int64_t count, const float *const *parts, const int64_t *sizes,
            cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_CONCAT_H
