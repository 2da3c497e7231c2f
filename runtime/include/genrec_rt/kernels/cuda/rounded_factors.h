//===- rounded_factors.h - Factors that were rounded before -------*- C++ -*-===//
//
// What a row kernel makes for products that read bfloat16 as it lies (`round-factors`): rows of
// whole multiples of 16 bytes, with zeros behind the last one, up to the capacity. A contraction
// over rows and tiles of attention read these.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H
#define GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H

#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/part_copies.h"
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

/// Rows behind the last one, `width` elements each, become 0.
inline void clearRowsBehind(genrec_step *step, const genrec_domain *rows, Bf16 *values,
                            int64_t width) {
  cuda::clearRowsBehind(rows->device, rows->capacity, asFactors(values), width, streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROUNDED_FACTORS_H
