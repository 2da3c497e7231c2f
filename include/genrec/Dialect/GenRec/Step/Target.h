//===- Target.h - differences between targets -------------------*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_STEP_TARGET_H
#define GENREC_DIALECT_GENREC_STEP_TARGET_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <string>

namespace genrec {

/// What makes a program of the emitted translation unit.
enum class UnitCompiler {
  host,     ///< the C++ compiler
  nvcc,     ///< CUDA's compiler
  emulator, ///< the C++ compiler, which runs CUDA code on the host and checks it
};

/// The differences between targets that passes and tools ask for. `KernelTarget` has those in the
/// code of kernels. Targets of one kind have the same emitted code.
struct Target {
  llvm::StringLiteral name; ///< as in --target
  TargetKind kind;
  UnitCompiler compiler;
  /// Whether calls over lists can run for a block of lists at a time (kernels/cpu/row_blocks.h).
  bool hasRowBlocks;
  /// Whether values are in memory of a device: then stages only queue work, counts of rows that the
  /// step makes are on the device alone, and constant tables are there too.
  bool hasDevice;

  static llvm::ArrayRef<Target> getAll();
  /// The first target of a kind.
  static const Target &get(TargetKind kind);
  /// The target of this name; null if there is none.
  static const Target *find(llvm::StringRef name);
  /// The names of all targets, as a sentence has them: "cpu, cuda or cuda-emulated".
  static std::string getNames();
  /// The target of the module that holds `op` (see `attach-target`); the CPU if it has none.
  static const Target &of(mlir::Operation *op);
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_TARGET_H
