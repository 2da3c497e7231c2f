//===- CudaKernelTarget.h - code of row kernels for CUDA --------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H

#include "KernelTarget.h"

namespace genrec {

std::unique_ptr<KernelTarget> createCudaKernelTarget(RowKernelOp kernel, bool isColumn);

/// A column of a launch: ColumnShape of genrec_rt/kernels/cuda/row_mapping.h.
struct ColumnShape {
  int64_t program, rows, pointers, domain;
};

/// Emits the kernel of a launch of columns, whose bodies are the functions `bodies`, and the
/// description of the columns that the stage passes with it.
void emitColumnsKernel(const EmitCBuilder &b, llvm::StringRef name,
                       llvm::ArrayRef<mlir::Attribute> bodies, llvm::ArrayRef<ColumnShape> columns);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_CUDAKERNELTARGET_H
