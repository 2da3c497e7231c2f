//===- RowKernelBuilder.h - creates row kernels -----------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWKERNELBUILDER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWKERNELBUILDER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// An input of a row kernel and how its body reads it.
struct KernelInput {
  mlir::Value value;
  OperandRole role;
};

/// A result of a row kernel and its role. `pool` is used by pooled results only.
struct KernelResult {
  mlir::Type type;
  ResultRole role;
  PoolKind pool = PoolKind::sum;
};

/// Creates a row kernel over `domain` whose body has its block arguments and no ops. The caller
/// adds the ops and the final `genrec.row_yield`.
RowKernelOp createRowKernel(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value domain,
                            llvm::ArrayRef<KernelInput> inputs,
                            llvm::ArrayRef<KernelResult> results,
                            llvm::StringRef name);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWKERNELBUILDER_H
