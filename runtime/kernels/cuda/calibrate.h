//===- calibrate.h - Measures a device's limits ------------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_CALIBRATE_H
#define GENREC_RT_KERNELS_CUDA_CALIBRATE_H

#include "genrec_rt/roofline.h"

#include <cuda_runtime.h>
#include <string>

namespace genrec::rt::cuda {

/// Measures the current device, for about two seconds: best of repeated launches of a captured
/// graph, less what it takes to start a kernel. `stream` can be captured. Working sets that do not
/// fit into a quarter of the memory that is free are left out.
Roofline calibrate(const std::string &name, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_CALIBRATE_H
