//===- rows.h - Gathering, scattering and pooling rows ------------*- C++ -*-===//
//
// What a step does forward with table rows beside finding them, and how rows are filled. Rows have
// 1 to 512 elements, float or Bf16, at any stride. Sums are taken in the order of
// positions, in float: the same bits whatever runs when, and those of the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROWS_H
#define GENREC_RT_KERNELS_CUDA_ROWS_H

#include "genrec_rt/kernels/cuda/bf16.h"

#include <cstdint>

namespace genrec::rt::cuda {

/// out[i * ldOut …] = the `dim` elements of row i; zeros for null.
template <class T>
void gatherRows(const T *const *rows, int64_t count, int64_t dim, T *out, int64_t ldOut,
                cudaStream_t stream);

/// The `dim` elements of row i = values[i * ldValues …]; null rows are left out. Rows are distinct.
template <class T>
void scatterRows(T *const *rows, int64_t count, int64_t dim, const T *values, int64_t ldValues,
                 cudaStream_t stream);

enum class Pool { sum, mean };

/// Recover and pool in one: out[p * ldOut …] = the sum or mean over the children i in [offsets[p],
/// offsets[p + 1]) of rows[inverse[i]]; duplicates are read, never written out. Zeros for an empty
/// list.
template <class T>
void poolRows(const T *const *rows, const uint32_t *inverse, const int64_t *offsets,
              int64_t parents, int64_t dim, Pool pool, float *out, int64_t ldOut,
              cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ROWS_H
