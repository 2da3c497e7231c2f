//===- KernelEmitter.h - emits planned row kernels --------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SetVector.h"

namespace genrec {

/// The content of one row kernel.
struct KernelPlan {
  /// The domain that the kernel iterates over. Null for shared tensors, which are then `sharedRows`
  /// rows of a fixed step domain.
  mlir::FlatSymbolRefAttr domain;
  int64_t sharedRows = 1;
  /// The row ops of the body, in program order.
  llvm::SmallSetVector<mlir::Operation *, 8> ops;
  /// The aligned results of `ops` that are read outside of the kernel. Results of other roles are
  /// always results of the kernel.
  llvm::SmallSetVector<mlir::Value, 4> outputs;
  std::string name;
  /// The stage (`genrec.stage`) of the kernel and of its views; may be null.
  mlir::Attribute stage;
};

/// Creates the row kernel of `plan` at the builder's insertion point, with the current values as
/// inputs. `replacements` receives the replacement of each output. Fails with a diagnostic if an op
/// cannot be part of a body.
llvm::LogicalResult
emitKernel(mlir::OpBuilder &builder, const KernelPlan &plan,
           llvm::DenseMap<mlir::Value, mlir::Value> &replacements);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELEMITTER_H
