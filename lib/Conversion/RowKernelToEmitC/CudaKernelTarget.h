//===- CudaKernelTarget.h - code of row kernels for CUDA --------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H

#include "KernelTarget.h"

namespace genrec {

std::unique_ptr<KernelTarget> createCudaKernelTarget(RowKernelOp kernel, bool isColumn);

/// Emits the kernel of a launch of columns, whose bodies are the functions `bodies`, and the
/// description of the columns that the stage passes with it.
void emitColumnsKernel(const EmitCBuilder &b, llvm::StringRef name,
                       llvm::ArrayRef<std::string> bodies,
                       llvm::ArrayRef<llvm::SmallVector<int64_t>> columns, int64_t pointers);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
