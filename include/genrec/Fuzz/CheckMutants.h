//===- CheckMutants.h - does the interpreter catch damage? ------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKMUTANTS_H
#define GENREC_FUZZ_CHECKMUTANTS_H

#include "genrec/Fuzz/Mutation.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace genrec::fuzz {

/// What became of a damaged level.
enum class Fate {
  caught,     ///< rejected by the verifier or the interpreter, or its values differ by more than
              ///< rounding
  missed,     ///< told apart by batches that the check does not have, or by a closer look
  equivalent, ///< its values are the same floats on all batches tried
};

struct Mutant {
  std::string name; ///< "after cse, op 14 genrec.mul: operand 0 replaced by genrec.param"
  Fate fate = Fate::caught;
  std::string difference; ///< what tells a missed one apart, with the batches that do
};

struct MutantOptions {
  int64_t mostPerStep = 60; ///< of the mutants that a step offers, evenly spread
  unsigned level = 2;       ///< of form-row-kernels
  /// Kinds of batches that levels are judged on, the first so many of `makeAdversarialBatches`.
  int64_t batchKinds = 100;
  /// Mutants that survive are tried on so many times the batches of the check, drawn anew.
  int64_t moreBatches = 2;
};

/// Runs the pipeline on a copy of `module`; after every step damages each op that the step made, in
/// every way that `getMutations` knows, and judges the damaged level as `VerifyEach` judges
/// levels. An empty result with `problem` set: the pipeline itself failed.
std::vector<Mutant> checkMutants(mlir::ModuleOp module, uint64_t seed, const MutantOptions &options,
                                 std::string &problem);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKMUTANTS_H
