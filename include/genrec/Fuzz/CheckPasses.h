//===- CheckPasses.h - compares the model after every pass ------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKPASSES_H
#define GENREC_FUZZ_CHECKPASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Fuzz/RoundingBound.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace genrec::fuzz {

/// Classes per block in split-classes: small, as random models have few classes.
inline constexpr unsigned kClassBlock = 2;

struct CheckOptions {
  int64_t batches = 2;
  /// Ranks of levels after `distribute`; 0: by the seed (`PassJudge::setRanks`).
  int64_t ranks = 0;
  /// Compare the gradients of `differentiate` with central differences.
  bool gradients = false;
  /// If not null, counts the bounds of the compared values of a model that agrees.
  BoundWidths *widths = nullptr;
  /// Levels of the option `opt` to run the pipeline at.
  llvm::ArrayRef<unsigned> levels = defaultLevels;
  static constexpr unsigned defaultLevels[] = {0, 2};
};

/// Runs the pipeline on a copy of `module` and compares the interpreter's results after every step
/// with those of the imported model. Returns the first difference and its step, or nothing if all
/// agree.
std::optional<std::string> checkPasses(mlir::ModuleOp module, uint64_t seed,
                                       const CheckOptions &options);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKPASSES_H
