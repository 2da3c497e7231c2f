//===- scattered_sums.h - Sums into rows that an index picks -----*- C++ -*-===//
//
// What launchSums (launch.h) does with the terms that a row kernel left (row_mapping.h): it orders
// them by the row that they are for, terms of one row by the row that left them (order.h), and adds
// each row's, from zero up. A row with more than kMostSummed terms is added in pieces of that many,
// pieces of pieces likewise (segment_sums.h). So a sum is a function of its row's terms alone, with
// the bits of one chunk of the CPU where there are at most kMostSummed.
//
// Of n terms, for R rows of W floats, it reads and writes some 20 n p + 4 R W + 4 n W bytes,
// p = ceil(log2(R + 1) / 11) passes of the order. The 4 n W of vectors are of few rows, each read
// for many terms: they come from the second-level cache where that part of them fits which is read
// at a time, 32 columns of a wide result.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SCATTERED_SUMS_H
#define GENREC_RT_KERNELS_CUDA_SCATTERED_SUMS_H

#include "genrec_rt/kernels/cuda/row_mapping.h"

#include <cuda_runtime.h>

namespace genrec::rt::kernels {

/// A sum of the terms that up to `leaving` rows leave into `rows` rows at `to`, all floats of which
/// are written: zeros without terms and behind a row's width.
struct ScatteredSum {
  SumShape shape;
  ScatteredTerms terms;
  int64_t leaving;
  float *to;
  int64_t rows;

  int64_t count() const { return leaving * shape.terms; }
};

/// Before the kernel: rows that are not there leave no terms.
void clearTerms(cudaStream_t stream, const ScatteredSum &sum);
/// Behind it. `scratch` has scatteredScratchBytes and is aligned to 64 bytes.
void addTerms(cudaStream_t stream, const ScatteredSum &sum, void *scratch);
int64_t scatteredScratchBytes(const ScatteredSum &sum);

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SCATTERED_SUMS_H
