//===- KernelEmitter.h - a group of row ops as one row kernel ---*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SetVector.h"

namespace genrec {

/// What one row kernel computes.
struct KernelPlan {
  /// The domain over whose rows it runs; null for shared tensors, which then
  /// are `sharedRows` rows of a fixed step domain.
  mlir::FlatSymbolRefAttr domain;
  int64_t sharedRows = 1;
  /// The row ops of the body, in the order of the program.
  llvm::SmallSetVector<mlir::Operation *, 8> ops;
  /// The results of `ops` that something outside reads. Results of other roles
  /// than aligned always leave the kernel.
  llvm::SmallSetVector<mlir::Value, 4> outputs;
  std::string name;
  /// The stage (`genrec.stage`) of the kernel and of its views; may be null.
  mlir::Attribute stage;
};

/// Creates the row kernel of `plan` at the builder's insertion point. Inputs are
/// values as they are now; `replacements` receives what to replace each output
/// by. Fails, with a diagnostic, when an op cannot be put into a body.
llvm::LogicalResult
emitKernel(mlir::OpBuilder &builder, const KernelPlan &plan,
           llvm::DenseMap<mlir::Value, mlir::Value> &replacements);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H
