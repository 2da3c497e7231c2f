//===- Target.h - differences between targets -------------------*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_STEP_TARGET_H
#define GENREC_DIALECT_GENREC_STEP_TARGET_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The differences between targets that passes ask for. `KernelTarget` has those in the code of
/// kernels.
struct Target {
  TargetKind kind;
  /// Whether calls over lists can run for a block of lists at a time (kernels/cpu/row_blocks.h).
  bool hasRowBlocks;
  /// Whether every step op has a kernel for the target, so that whole models can be compiled.
  bool runsModels;
  /// Whether constant tables of kernels are in device memory.
  bool hasDevice;

  llvm::StringRef getName() const { return stringifyTargetKind(kind); }

  static const Target &get(TargetKind kind);
  /// The target of the module that holds `op` (see `attach-target`); the CPU if it has none.
  static const Target &of(mlir::Operation *op);
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_TARGET_H
