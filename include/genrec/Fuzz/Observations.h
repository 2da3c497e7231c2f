//===- Observations.h - what a model shows to its user ----------*- C++ -*-===//

#ifndef GENREC_FUZZ_OBSERVATIONS_H
#define GENREC_FUZZ_OBSERVATIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Interpreter/Interpreter.h"

#include <optional>
#include <string>

namespace genrec::fuzz {

/// Lists of numbers by name.
using Values = std::map<std::string, std::vector<double>>;

/// Everything that a model shows to its user on some batches, by name, so that two levels of one
/// model can be compared.
struct Observations {
  /// What every level shows: losses of the first training step, losses and metrics of evaluation,
  /// outputs of prediction.
  Values forward;
  /// What differentiated levels show as well: gradients, losses of later steps, parameters, states
  /// and table rows after the last.
  Values trained;
  /// Of what outlives a step: the largest that each value has been in absolute value, before and
  /// after steps.
  Values sizes;
};

/// Sees values as they come: what one run shows, or what is there after the last. True: it has seen
/// enough.
using Watch = llvm::function_ref<bool(const Observations &shown)>;

/// Runs `model`, at any level the interpreter evaluates, on `batches`: evaluation and prediction of
/// each, then one training step per batch, then evaluation and prediction of the first again.
/// Stops, with what there is by then, where `watch` has seen enough.
llvm::Expected<Observations> observe(ModelOp model, llvm::ArrayRef<interpreter::Batch> batches,
                                     uint64_t seed, const interpreter::RunOptions &options = {},
                                     Watch watch = nullptr);

/// The op that a value of `observe` is of: a loss, metric or output, a parameter or a table; the
/// model where there is none of that name.
mlir::Operation *findObserved(ModelOp model, llvm::StringRef name);

/// Batches that one state sees one after another.
struct BatchSeries {
  std::string name;
  std::vector<interpreter::Batch> batches;
};

/// The `count` random batches on which the model of `seed` is tried. All have the catalogues of the
/// first. `positive`: no float is below 0.
BatchSeries makeBatches(ModelOp model, uint64_t seed, int64_t count, bool positive = false);

/// Random batches, and what breaks sums, offsets and duplicates: no rows, empty lists, one row, all
/// ids equal, every id distinct, nulls everywhere.
std::vector<BatchSeries> makeAdversarialBatches(ModelOp model, uint64_t seed,
                                                bool positive = false);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_OBSERVATIONS_H
