//===- Target.h - what compiled code runs on --------------------*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_STEP_TARGET_H
#define GENREC_DIALECT_GENREC_STEP_TARGET_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// What differs between targets, for passes to ask. How a kernel is printed is a `KernelTarget`.
struct Target {
  TargetKind kind;
  /// Whether a row kernel adds up the gradients of a table row itself (kernels/segments.h): then
  /// `plan-memory` gives such a sum no buffer.
  bool addsSegments;
  /// Whether calls over lists run for a block of lists at a time (kernels/row_blocks.h).
  bool hasRowBlocks;
  /// Whether every call of a step has a kernel there, so that whole models compile.
  bool runsModels;
  /// Whether constant tables of kernels live on a device.
  bool hasDevice;

  llvm::StringRef getName() const { return stringifyTargetKind(kind); }

  static const Target &get(TargetKind kind);
  /// That of the module around `op` (`attach-target`); the CPU where it has none.
  static const Target &of(mlir::Operation *op);
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_TARGET_H
