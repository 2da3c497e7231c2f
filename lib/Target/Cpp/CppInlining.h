//===- CppInlining.h - which values become part of expressions --*- C++ -*-===//

#ifndef GENREC_LIB_TARGET_CPP_CPPINLINING_H
#define GENREC_LIB_TARGET_CPP_CPPINLINING_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"

namespace genrec {

/// Decides, for the ops of one function, whether the result is printed where it
/// is used or as a variable. A read moves to its use only where nothing writes
/// in between.
class CppInlining {
public:
  explicit CppInlining(mlir::Operation *function);

  bool isInlined(mlir::Operation *op) const { return inlined.contains(op); }

private:
  void decideBlock(mlir::Block &block);
  bool decide(mlir::Operation *op);
  /// The statement that prints `op`, if it lies in the same block.
  mlir::Operation *getStatement(mlir::Operation *op) const;

  llvm::DenseSet<mlir::Operation *> inlined;
  /// Number of writes before an op in its block.
  llvm::DenseMap<mlir::Operation *, unsigned> writes;
  /// Operations in the expression of an inlined op.
  llvm::DenseMap<mlir::Operation *, unsigned> sizes;
};

/// Ops whose result is a place or a constant: always part of an expression.
bool isPlaceOrConstant(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_TARGET_CPP_CPPINLINING_H
