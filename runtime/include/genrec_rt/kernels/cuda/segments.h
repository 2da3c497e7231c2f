//===- segments.h - Gradients of distinct rows, for row kernels --*- C++ -*-===//
//
// The names by which generated row kernels call segments_warp.h: those of cpu/segments.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SEGMENTS_H
#define GENREC_RT_KERNELS_CUDA_SEGMENTS_H

#include "genrec_rt/kernels/cuda/segments_warp.h"

namespace genrec::rt::kernels {
using cuda::segmentSum;
using cuda::SegmentSums;
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SEGMENTS_H
