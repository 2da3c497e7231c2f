//===- Interpreter.h - evaluates programs from op definitions ---*- C++ -*-===//
//
// The reference that everything else is compared with. Each op is evaluated as
// its definition reads, one after another, in double (or rounded to float after
// each op); no code is shared with passes, lowering or runtime kernels. It covers
// the ops of the model, of differentiated programs and of row kernels, so a
// program can be judged after every pass up to form-row-kernels.
//
//   State state(model, /*seed=*/1);
//   llvm::Expected<Results> results = runProgram(program, batch, state, Mode::train);
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_INTERPRETER_INTERPRETER_H
#define GENREC_INTERPRETER_INTERPRETER_H

#include "genrec/Interpreter/Batch.h"
#include "genrec/Interpreter/State.h"
#include "genrec/Interpreter/Tensor.h"

namespace genrec::interpreter {

/// What a program is run for. A program of mode `all` gives its losses in
/// `train`, losses and metrics in `evaluate`, outputs in `predict`, nothing in `items`;
/// a specialised program is run in its own mode.
enum class Mode { train, evaluate, predict, items };

/// Whether f32 values are kept as double, or rounded to float after every op, or kept as double and moved by chance
/// as rounding may move them: by up to 2^-24 of each after every op that computes, optimizers aside.
enum class Precision { exact, rounded, perturbed };

struct RunOptions {
  Precision precision = Precision::exact;
  /// Which of many errors `perturbed` makes: a run of the same number makes the same.
  uint64_t perturbation = 0;
  /// An op whose results come out wrong: floats by half of each, up or down; flags as their opposites; of other
  /// integers and of strings each row has those of the row behind it. Null: none.
  mlir::Operation *faulty = nullptr;
  /// What results of `detach` are held at, where they are in it.
  const llvm::DenseMap<mlir::Value, Tensor> *held = nullptr;
  /// Losses only: no update, no gradient, no row inserted.
  bool forwardOnly = false;
  /// Keep the value of every evaluated op in `Results::values`.
  bool keepValues = false;
};

/// Sum of weight * value and sum of weight over the rows of the batch. No weight, no mean.
struct LossResult {
  std::string name;
  double sum = 0.0;
  double weight = 0.0;
  double scale = 1.0;

  std::optional<double> mean() const {
    return weight == 0.0 ? std::nullopt : std::optional(sum / weight);
  }
};

/// A column that predict writes.
struct OutputResult {
  std::string name;
  Tensor value;
  std::vector<uint8_t> isNull; ///< per element; empty where none can be null
};

struct Results {
  std::vector<LossResult> losses;
  std::vector<OutputResult> outputs;
  /// As the runtime names them: "hr@10", "mrr", "<name>.hr@10", the name of an
  /// auc. NaN without rows ("no rows"), or with one class only.
  std::vector<std::pair<std::string, double>> metrics;
  /// What update_parameter and update_table received, by parameter name, and by
  /// table name and id (summed; ids that got exactly 0 are absent).
  std::map<std::string, std::vector<double>> parameterGradients;
  std::map<std::string, std::map<int64_t, std::vector<double>>> tableGradients;
  llvm::DenseMap<mlir::Value, Tensor> values;

  /// The model's loss: scale * mean, summed over the tasks that have rows; none where none has.
  std::optional<double> loss() const;
};

/// An op that cannot be evaluated on this data: an id out of range, an item that
/// the catalogue lacks, a column of another type.
class EvaluationError : public llvm::ErrorInfo<EvaluationError> {
public:
  static char ID;
  EvaluationError(mlir::Location location, std::string message)
      : location(location), message(std::move(message)) {}

  mlir::Location getLocation() const { return location; }
  llvm::StringRef getMessage() const { return message; }
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  mlir::Location location;
  std::string message;
};

/// Runs `program`, whose module must have passed the verifier, on `batch`. A run
/// of a train program updates `state` and counts a step; in training, lookups
/// insert rows. Errors are EvaluationErrors; `state` is then undefined.
llvm::Expected<Results> runProgram(ProgramOp program, const Batch &batch, State &state, Mode mode,
                                   const RunOptions &options = {});

/// The mode in which a program is run: its own, or `train` for mode `all`.
Mode modeOf(ProgramOp program);

/// Whether ops of this name can be evaluated (or are declarations).
bool canEvaluate(mlir::OperationName name);

/// Reports `error` as diagnostics at the ops' locations; errors of other kinds
/// at `location`.
void emitErrors(llvm::Error error, mlir::Location location);

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_INTERPRETER_H
