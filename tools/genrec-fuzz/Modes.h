//===- Modes.h - what genrec-fuzz does with random models -------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_FUZZ_MODES_H
#define GENREC_TOOLS_GENREC_FUZZ_MODES_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace genrec::fuzz {

/// Says what is wrong with a model; nothing where all agree.
using Check = std::function<std::optional<std::string>(mlir::ModuleOp, uint64_t seed)>;

/// Models whose levels, or binaries, are compared.
struct Comparison {
  uint64_t first, last; ///< seeds
  bool print = false, shrink = true, requireCoverage = false, printCoverage = false;
  int64_t shrinkAttempts = 2000;
};

/// Tries every seed; prints models that disagree and what was never exercised. The exit status.
int compareLevels(const Comparison &comparison, const Check &find);

/// compareLevels with binaries; `scale` other than 1 damages each by scaling one gradient.
int compareBinaries(Comparison comparison, llvm::StringRef toolchain, llvm::StringRef driver,
                    double scale);

/// Damages the levels of every seed and counts what the comparison catches. `survivors` names a
/// file that lists the mutants that may survive with an explanation each; with it, others that
/// survive, and lines that nothing matches, are errors. The exit status.
int countMutants(uint64_t first, uint64_t last, int64_t mostPerStep, llvm::StringRef survivors);

} // namespace genrec::fuzz

#endif // GENREC_TOOLS_GENREC_FUZZ_MODES_H
