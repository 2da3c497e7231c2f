//===- rounded_factors.h - Factors that were rounded before -------*- C++ -*-===//
//
// What a row kernel makes for products that read bfloat16 as it lies (`round-factors`): rows of
// whole multiples of 16 bytes, with zeros behind the last one, up to the capacity. A contraction
// over rows and tiles of attention read these.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H
#define GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/step.h"
#include "genrec_rt/kernels/shared/row_values.h"

namespace genrec::rt::kernels {

/// `x` as a factor (factors.h).
__device__ inline Bf16 roundedFactor(float x) { return {cuda::bf16Factor(x).bits}; }

/// The same bytes as kernels of the runtime have them.
inline cuda::Bf16 *asFactors(Bf16 *values) { return reinterpret_cast<cuda::Bf16 *>(values); }
inline const cuda::Bf16 *asFactors(const Bf16 *values) {
  return reinterpret_cast<const cuda::Bf16 *>(values);
}

/// Rows behind the last one, of `width` elements of bfloat16 each, become 0, by all threads of the
/// kernel.
template <class E>
__device__ void clearRowsBehind(const genrec_domain *rows, E *values, int64_t width) {
  static_assert(sizeof(E) == 2);
  const int64_t words = width * static_cast<int64_t>(sizeof(E)) / 16;
  const int64_t first = rows->count * words, end = rows->capacity * words;
  for (int64_t i = first + cuda::threadInGrid(); i < end; i += cuda::threadsInGrid())
    reinterpret_cast<uint4 *>(values)[i] = uint4{0, 0, 0, 0};
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H
