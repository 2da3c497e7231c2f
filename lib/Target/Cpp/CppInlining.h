//===- CppInlining.h - values printed in expressions ------------*- C++ -*-===//

#ifndef GENREC_LIB_TARGET_CPP_CPPINLINING_H
#define GENREC_LIB_TARGET_CPP_CPPINLINING_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"

namespace genrec {

/// Decides for each op of a function whether its result is printed inside of the expression that
/// uses it, or as a variable. A read is printed at its use only if there is no write in between.
class CppInlining {
public:
  explicit CppInlining(mlir::Operation *function);

  bool isInlined(mlir::Operation *op) const { return inlined.contains(op); }

private:
  void decideBlock(mlir::Block &block);
  bool decide(mlir::Operation *op);
  /// The statement that `op` is printed in, if it is in the same block.
  mlir::Operation *getStatement(mlir::Operation *op) const;

  llvm::DenseSet<mlir::Operation *> inlined;
  /// The number of writes before an op in its block.
  llvm::DenseMap<mlir::Operation *, unsigned> writes;
  /// The number of ops in the expression of an inlined op.
  llvm::DenseMap<mlir::Operation *, unsigned> sizes;
};

/// Whether the result of `op` is an lvalue or a constant, which are always inlined.
bool isPlaceOrConstant(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_TARGET_CPP_CPPINLINING_H
