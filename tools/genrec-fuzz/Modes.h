//===- Modes.h - what genrec-fuzz does with random models -------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_FUZZ_MODES_H
#define GENREC_TOOLS_GENREC_FUZZ_MODES_H

#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Fuzz/BlindSpots.h"
#include "genrec/Fuzz/RoundingBound.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace genrec::fuzz {

/// Says what is wrong with a model; nothing where all agree, and then counts the bounds.
using Check =
    std::function<std::optional<std::string>(mlir::ModuleOp, uint64_t seed, BoundWidths *)>;

/// Models whose levels, or binaries, are compared.
struct Comparison {
  uint64_t first, last; ///< seeds
  const mlir::DialectRegistry *dialects = nullptr;
  bool print = false, shrink = true, requireCoverage = false, printCoverage = false;
  int64_t shrinkAttempts = 2000;
  ModelChoice choice;
};

/// Counts the ops of random models whose faults show nowhere, and prints them. The exit status: 1
/// where they are 1 % of all or more.
int countBlindSpots(uint64_t first, uint64_t last, const mlir::DialectRegistry &dialects);

/// Tries every seed; prints models that disagree and what was never exercised. The exit status.
int compareLevels(const Comparison &comparison, const Check &find);

/// How compareBinaries makes and runs binaries.
struct BinaryRun {
  const Target *target = nullptr;
  std::string toolchain, driver;
  int64_t ranks = 0;     ///< 0: one process without portions
  bool isMpi = false;    ///< ranks are processes that mpirun starts, not threads
  int64_t level = -1;    ///< to compile at alone; -1: 0 and 2
  double gradient = 1.0; ///< other than 1 damages each binary by scaling one gradient
};

/// compareLevels with binaries.
int compareBinaries(Comparison comparison, const BinaryRun &run);

/// Models whose levels are damaged.
struct MutantRun {
  uint64_t first, last; ///< seeds
  int64_t mostPerStep, batchKinds, moreBatches;
  /// A file that lists mutants that may survive, with an explanation each.
  std::string survivors;
  /// The file must list all survivors, equivalent ones too, and no other mutant.
  bool explainAll = false;
};

/// Damages the levels of every seed and counts what the comparison catches; prints what it misses.
/// The exit status: 1 where a survivor that needs an explanation has none.
int countMutants(const MutantRun &run, const mlir::DialectRegistry &dialects);

} // namespace genrec::fuzz

#endif // GENREC_TOOLS_GENREC_FUZZ_MODES_H
