//===- CheckCompiled.h - the interpreter judges binaries --------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKCOMPILED_H
#define GENREC_FUZZ_CHECKCOMPILED_H

#include "genrec/Fuzz/CheckPasses.h"

namespace genrec::fuzz {

struct CompiledOptions {
  std::string toolchain; ///< description of the C++ toolchain
  std::string driver;    ///< model-driver, which runs a shared object on batches in JSON
  std::string folder;    ///< existing folder for what is made; emptied of it again
  int64_t batches = 2;
  int64_t threads = 2;   ///< of the compiled model
  /// Levels of `form-row-kernels` to compile.
  llvm::ArrayRef<unsigned> levels = CheckOptions::defaultLevels;
};

/// Rounding to float that a compiled model may show relative to max(1, |expected|): errors of 2^-24 of
/// `ops` ops and their gradients, which the random graph may magnify a hundredfold.
double getCompiledTolerance(ModelOp model);

/// Compiles a copy of `module` at every level, runs evaluation, prediction and `batches` training steps on random
/// batches, and compares losses, metrics, outputs, parameters and table rows with the interpreter in double.
/// What the interpreter itself shows differently when it rounds to float may differ by eight times as much more:
/// there the model, not the compiler, magnifies rounding.
/// Returns what is wrong, with the level at which it is; nothing when all agree.
std::optional<std::string> checkCompiled(mlir::ModuleOp module, uint64_t seed, const CompiledOptions &options);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKCOMPILED_H
