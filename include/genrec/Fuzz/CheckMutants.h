//===- CheckMutants.h - does the comparison catch mutants? ------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKMUTANTS_H
#define GENREC_FUZZ_CHECKMUTANTS_H

#include "genrec/Fuzz/Mutation.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace genrec::fuzz {

/// The result for a mutant.
enum class Fate {
  caught,     ///< rejected by the verifier or the interpreter, or its values differ by more than
              ///< their bounds
  missed,     ///< only other batches, or a comparison without allowance for rounding, detect it
  equivalent, ///< its values are the same floats on all batches
};

struct Mutant {
  std::string name; ///< "after cse, op 14 genrec.mul: operand 0 replaced by genrec.param"
  Fate fate = Fate::caught;
  std::string difference; ///< for a missed mutant: the value that differs, and on which batches
};

struct MutantOptions {
  int64_t mostPerStep = 60; ///< the number of mutants to try per step, spread evenly over all
  unsigned level = 2;       ///< of the option `opt`
  /// How many kinds of batches to compare on: the first of `makeAdversarialBatches`.
  int64_t batchKinds = 100;
  /// A mutant that survives is run on this many times as many new batches.
  int64_t moreBatches = 2;
};

/// Runs the pipeline on a copy of `module`. After every step, each op that the step created is
/// changed in every way that `getMutations` lists, and the resulting mutant is compared with the
/// original as `VerifyEach` compares models. If the pipeline itself fails, the result is empty and
/// `problem` says why.
std::vector<Mutant> checkMutants(mlir::ModuleOp module, uint64_t seed, const MutantOptions &options,
                                 std::string &problem);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKMUTANTS_H
