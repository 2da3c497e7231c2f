//===- Observations.h - the observable values of a model --------*- C++ -*-===//

#ifndef GENREC_FUZZ_OBSERVATIONS_H
#define GENREC_FUZZ_OBSERVATIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Interpreter/Interpreter.h"

#include <optional>
#include <string>

namespace genrec::fuzz {

/// Lists of numbers by name.
using Values = std::map<std::string, std::vector<double>>;

/// The observable values of a model on some batches, by name. A pass must not change them. In this
/// folder, a *level* of a model is its IR after one step of the pipeline; levels of one model are
/// compared by their observations.
struct Observations {
  /// Observed at every level: losses of the first training step, losses and metrics of evaluation,
  /// outputs of prediction.
  Values forward;
  /// Observed at differentiated levels only: gradients, losses of later steps, and the parameters,
  /// optimizer states and table rows after the last step.
  Values trained;
  /// For parameters, optimizer states and table rows: the largest absolute value of each element,
  /// over all steps.
  Values sizes;
};

/// Called with the values observed so far: after each run, and after the last one with the final
/// state. Returns true to stop.
using Watch = llvm::function_ref<bool(const Observations &shown)>;

/// The values of all ops, by run.
using RunValues = std::vector<llvm::DenseMap<mlir::Value, interpreter::Tensor>>;

/// Observations of untrained programs by the hash of the program: most passes change one of three
/// programs, and the others need not run again on the same batches and seed.
using ShownBefore = std::map<uint64_t, Values>;

struct ObserveOptions {
  interpreter::RunOptions run;
  Watch watch = nullptr;
  /// Receives the values of ops. If `run` has a faulty op: the values without the fault, which ops
  /// that the fault does not reach take from here.
  RunValues *values = nullptr;
  /// For exact runs: read and extended.
  ShownBefore *before = nullptr;
};

/// Runs `model`, at any level that the interpreter evaluates, on `batches`: evaluation and
/// prediction of each batch, one training step per batch, then evaluation and prediction of the
/// first batch again. Begins with state `initial`. Stops early if `options.watch` returns true.
llvm::Expected<Observations> observe(ModelOp model, const interpreter::State &initial,
                                     llvm::ArrayRef<interpreter::Batch> batches,
                                     const ObserveOptions &options = {});

/// The op whose value has `name` in the observations: a loss, metric, output, parameter or table;
/// the model if there is none of that name.
mlir::Operation *findObserved(ModelOp model, llvm::StringRef name);

/// Batches that one state is trained on, in order.
struct BatchSeries {
  std::string name;
  std::vector<interpreter::Batch> batches;
};

/// Some tables, by `seed`, of which every one of several ranks may have all rows.
std::set<std::string, std::less<>> chooseReplicated(ModelOp model, uint64_t seed);

/// The `count` random batches for the model of `seed`. All have the same catalogues. `positive`: no
/// float is below 0.
BatchSeries makeBatches(ModelOp model, uint64_t seed, int64_t count, bool positive = false);

/// `count` batches that ranks share unevenly, behind `before`, whose first one has the catalogues. In turn,
/// from a kind on that `seed` chooses: no rows; one row, so that most portions have none; no ids at all; one
/// id, which has one owner; one list that is longer than all others together.
void addUnevenBatches(ModelOp model, uint64_t seed, int64_t count,
                      std::vector<interpreter::Batch> &before);

/// Random batches, and edge cases of sums, offsets and duplicates: no rows, empty lists, one row,
/// equal ids only, distinct ids only, nulls everywhere.
std::vector<BatchSeries> makeAdversarialBatches(ModelOp model, uint64_t seed,
                                                bool positive = false);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_OBSERVATIONS_H
