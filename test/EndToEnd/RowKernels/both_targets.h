//===- both_targets.h - Running kernels of both targets -----------*- C++ -*-===//
//
// What programs built by test_cuda_kernels.py share. The CPU's kernels are included, those for CUDA
// are linked, compiled for the host (test/Cuda/Simt).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_ENDTOEND_ROWKERNELS_BOTH_TARGETS_H
#define GENREC_TEST_ENDTOEND_ROWKERNELS_BOTH_TARGETS_H

#include GENREC_CPU_UNIT

#include "genrec_rt/kernels/cuda/launch.h"

#include <cstdint>
#include <random>

/// Where kernels run, one after the other, and copies of the host between them: its name says that
/// the default stream is meant.
inline const cudaStream_t kStream = cudaStreamLegacy;

/// Memory that host and device read.
template <class T> T *shared(int64_t count) {
  T *memory = nullptr;
  GENREC_CUDA_CHECK(cudaMallocHost(&memory, static_cast<size_t>(count) * sizeof(T)));
  return memory;
}

/// A step over `domains`, which the device reads, too.
inline genrec_step *makeStep(genrec_domain *domains) {
  genrec_step *step = shared<genrec_step>(1);
  *step = {};
  step->domains = domains;
  step->device = step;
  step->stream = kStream;
  return step;
}

inline std::mt19937 generator;

/// Fills `values` with numbers in [-1, 1).
inline void randomize(float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(generator() % 2000) / 1000 - 1;
}

/// What the program returns: whether a result differs between the targets.
inline bool anyDiffers = false;

#endif // GENREC_TEST_ENDTOEND_ROWKERNELS_BOTH_TARGETS_H
