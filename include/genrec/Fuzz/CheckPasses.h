//===- CheckPasses.h - the interpreter judges every pass --------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKPASSES_H
#define GENREC_FUZZ_CHECKPASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Fuzz/RoundingBound.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace genrec::fuzz {

/// Columns of a softmax computed at a time: random models have few classes.
inline constexpr unsigned kClassBlock = 2;

struct CheckOptions {
  int64_t batches = 2;
  /// Compare the gradients that `differentiate` built with central differences.
  bool gradients = false;
  /// Counts the bounds of a model that agrees.
  BoundWidths *widths = nullptr;
  /// Levels of `form-row-kernels` to try.
  llvm::ArrayRef<unsigned> levels = defaultLevels;
  static constexpr unsigned defaultLevels[] = {0, 2};
};

/// Runs the pipeline on a copy of `module` and compares with the interpreter's
/// view of the model after every step. Returns what is wrong, with the step
/// after which it is; nothing when all agree.
std::optional<std::string> checkPasses(mlir::ModuleOp module, uint64_t seed,
                                       const CheckOptions &options);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKPASSES_H
