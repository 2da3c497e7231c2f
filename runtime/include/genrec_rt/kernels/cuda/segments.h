//===- segments.h - Gradients of distinct rows, for row kernels --*- C++ -*-===//
//
// The names by which generated row kernels call segments_warp.h: those of cpu/segments.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENTS_H
#define GENREC_RT_KERNELS_CUDA_SEGMENTS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

namespace genrec::rt::kernels {
using cuda::segmentSum;
using cuda::SegmentSums;

/// What genrec_rt_unique_rows has put there, on the device.
inline SegmentSums *segmentSums(void *segments) { return static_cast<SegmentSums *>(segments); }

/// The rows that the rank updates, and their sums: `own`, as one portion of one rank has all of
/// them.
inline float **ownedRows(const genrec_collected_rows *, float **own) { return own; }
inline float *ownedSums(const genrec_collected_rows *, float *own) { return own; }
inline SegmentSums *ownedSums(const genrec_collected_rows *, SegmentSums *own) { return own; }
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_H
