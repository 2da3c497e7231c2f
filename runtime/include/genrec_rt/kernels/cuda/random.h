//===- random.h - Random words of a row, by a warp --------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_RANDOM_H
#define GENREC_RT_KERNELS_CUDA_RANDOM_H

#include "genrec_rt/kernels/cuda/warp.h"
#include "genrec_rt/kernels/shared/random.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// The words of the elements [0, N) of a row, as philoxWord.
template <int64_t N>
__device__ inline void fillBits(const RandomStream &stream, uint64_t row, uint32_t *out) {
  for (int64_t i = lane(); i < N; i += kWarpLanes)
    out[i] = philoxWord(stream, row, static_cast<uint64_t>(i));
  __syncwarp();
}

/// Uniform numbers in [0, 1) of the elements [0, N) of a row, from their words.
template <int64_t N>
__device__ inline void fillUniform(const RandomStream &stream, uint64_t row, float *out) {
  for (int64_t i = lane(); i < N; i += kWarpLanes)
    out[i] = uniformFromBits(philoxWord(stream, row, static_cast<uint64_t>(i)));
  __syncwarp();
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_RANDOM_H
