//===- Interpreter.h - evaluates programs from op definitions ---*- C++ -*-===//
//
// The reference for passes and compiled code. Each op is evaluated directly by its definition, one
// after another, in double (or rounded to float after each op); no code is shared with passes,
// lowering or runtime kernels. It evaluates the ops of imported models, of differentiated programs
// and of row kernels, so a program can be checked after every pass up to form-row-kernels.
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

#include <set>
#include <string>

namespace genrec::interpreter {

/// What a program is run for. A program of mode `all` gives its losses in `train`, losses and
/// metrics in `evaluate`, outputs in `predict`, nothing in `items`. A specialised program runs only
/// in its own mode.
enum class Mode { train, evaluate, predict, items };

/// How f32 values are computed: `exact` keeps them as double; `rounded` rounds to float after every
/// op; `perturbed` keeps them as double and changes each result by a random fraction of at most
/// 2^-24, except for ops that are exact and for optimizer steps.
enum class Precision { exact, rounded, perturbed };

/// What ranks may do wrong when they exchange rows, for tests of comparisons.
enum class RankFault {
  none,
  wrongOwner,   ///< the rank behind the owner is asked for a row
  lostTouch,    ///< an owner does not hear that a portion has touched the first of its rows
  doubledTouch, ///< an owner adds the sum of a portion's first row twice
  lostReplica   ///< the last rank does not hear of the first row of a replicated table
};

struct RunOptions {
  Precision precision = Precision::exact;
  /// Seed of the errors of precision `perturbed` and of `coarseFactors`.
  uint64_t perturbation = 0;
  /// Changes factors of products with `bf16` by a random fraction of at most 2^-8, the largest
  /// error of rounding to bfloat16, instead of rounding them; values that rows of bf16 store, by at
  /// most 2^-7.
  bool coarseFactors = false;
  /// An op whose results are made wrong, or null: floats are multiplied by 0.5 or 1.5, flags are
  /// inverted, and rows of other integers and of strings get the values of the next row.
  mlir::Operation *faulty = nullptr;
  /// With `faulty`: values of a run without the fault (`keepValues`), on the same batch and state.
  /// Ops that the fault does not reach are not evaluated and report nothing.
  const llvm::DenseMap<mlir::Value, Tensor> *sound = nullptr;
  /// Values of `detach` results to use instead of computing them; others are computed.
  const llvm::DenseMap<mlir::Value, Tensor> *held = nullptr;
  /// Evaluates losses only: no gradients, no updates, no new table rows.
  bool forwardOnly = false;
  /// Keep the value of every evaluated op in `Results::values`.
  bool keepValues = false;
  /// Training steps of programs that `distribute` has seen run on so many ranks, each with some of
  /// the portions that the batch is cut into. At least as many portions as ranks.
  int64_t ranks = 1, portions = 1;
  /// Portions that the batch is cut into and that are evaluated as one: what compares the rows of a
  /// portion with each other (in_batch_softmax) does so within each of them.
  int64_t portionsInOne = 1;
  RankFault rankFault = RankFault::none;
  /// Tables, none with rules, of which every rank has all rows; those of others have one owner
  /// each.
  std::set<std::string, std::less<>> replicated;
  /// The number of the portion that a run is of.
  int64_t portion = 0;
};

/// Sums over the rows of the batch: weight * value, and weight. The mean is undefined if the
/// weights add up to 0.
struct LossResult {
  std::string name;
  double sum = 0.0;
  double weight = 0.0;
  double scale = 1.0;

  std::optional<double> mean() const {
    return weight == 0.0 ? std::nullopt : std::optional(sum / weight);
  }
};

/// An output column of predict.
struct OutputResult {
  std::string name;
  Tensor value;
  std::vector<uint8_t> isNull; ///< one flag per element; empty where none can be null
};

struct Results {
  std::vector<LossResult> losses;
  std::vector<OutputResult> outputs;
  /// By the runtime's names: "hr@10", "mrr", "<name>.hr@10", the name of an auc. NaN if no row
  /// counts, and for an auc if all rows are of one class.
  std::vector<std::pair<std::string, double>> metrics;
  /// The gradients passed to update_parameter and update_table: by parameter name, and by table
  /// name and id (summed; ids whose gradient is exactly 0 are absent).
  std::map<std::string, std::vector<double>> parameterGradients;
  std::map<std::string, std::map<int64_t, std::vector<double>>> tableGradients;
  llvm::DenseMap<mlir::Value, Tensor> values;

  /// The model's loss: the sum of scale * mean over the tasks that have rows; nullopt if none has.
  std::optional<double> loss() const;
};

/// The op cannot be evaluated on this data: an id out of range, an item that the catalogue lacks, a
/// column of another type.
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

/// Runs `program` on `batch`. The module must have been verified. A run of a train program updates
/// `state`, counts a step, and inserts table rows for new ids. Errors are EvaluationErrors; `state`
/// is undefined after one.
llvm::Expected<Results> runProgram(ProgramOp program, const Batch &batch, State &state, Mode mode,
                                   const RunOptions &options = {});

/// A training step of `program` on `options.ranks` ranks, which own rows of the tables by their ids
/// and have copies of all parameters, of which each updates some rows. The root rows of `batch` are
/// cut into `options.portions` consecutive portions. All ranks run in lockstep, op by op. Fails
/// where a rank changes rows that are not its own, or copies of a row of a replicated table come to
/// differ. Gives losses and gradients, no metrics.
llvm::Expected<Results> runOnRanks(ProgramOp program, const Batch &batch, State &state,
                                   const RunOptions &options);

/// The mode that a program is run in: its own, or `train` for mode `all`.
Mode modeOf(ProgramOp program);

/// Whether the interpreter can evaluate ops of this name, or skips them as declarations.
bool canEvaluate(mlir::OperationName name);

/// Reports an EvaluationError as a diagnostic at its op's location, any other error at `location`.
void emitErrors(llvm::Error error, mlir::Location location);

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_INTERPRETER_H
