//===- row_checks.h - Whether values are what they may be ---------*- C++ -*-===//
//
// What the CPU's genrec_rt_require_range and genrec_rt_check_finite look for, noted on the device
// (row_notes.h): no column goes to the host.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_CHECKS_H
#define GENREC_RT_KERNELS_CUDA_ROW_CHECKS_H

#include "genrec_rt/device.h"

#include <cfloat>
#include <cmath>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

__device__ inline bool isFinite(float x) { return fabsf(x) <= FLT_MAX; } // false for NaN

/// Notes the first row beyond, with its value. Types are GENREC_I32, I64, F32 and F64.
void checkRange(const DeviceRange &range, genrec_row_note *note, cudaStream_t stream);

/// Notes row * rowSize + element of the first NaN or infinity, with its value.
void checkFinite(const DeviceFloats &floats, genrec_row_note *note, cudaStream_t stream);

/// Notes the first row with a NaN or an infinity, with its key.
void checkRows(const DeviceRows &rows, genrec_row_note *note, cudaStream_t stream);

/// note->value = the bytes of values[the noted row], `bytes` each, if one is noted.
void keepNotedValue(genrec_row_note *note, const void *values, int64_t bytes, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ROW_CHECKS_H
