//===- CudaKernelTarget.h - code of row kernels for CUDA --------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H

#include "KernelTarget.h"

namespace genrec {

std::unique_ptr<KernelTarget> createCudaKernelTarget(RowKernelOp kernel, KernelForm form);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
