//===- Optimizers.h - what each optimizer is --------------------*- C++ -*-===//
//
// The hyperparameters of an optimizer, with their ranges and defaults, and the step of one row. An
// optimizer is described in one place, lib/Dialect/GenRec/IR/Optimizers.cpp: verifiers, random
// models and `expand-updates` ask here.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_OPTIMIZERS_H
#define GENREC_DIALECT_GENREC_IR_OPTIMIZERS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The allowed values of a hyperparameter.
enum class OptionRange {
  notNegative, ///< at least 0
  positive,    ///< greater than 0
  rate,        ///< in [0, 1)
  flag         ///< 0 or 1
};

/// A hyperparameter of an optimizer.
struct OptimizerOption {
  llvm::StringRef name;
  OptionRange range;
  double value;             ///< the default
  bool addsState = false;   ///< a weight has one more state if the option is not 0
  bool isForTables = false; ///< not for parameters
  double onTable = value;   ///< the default for rows of a table
};

/// All optimizers.
llvm::SmallVector<OptimizerKind> getOptimizerKinds();

/// The options of `kind`, without `lr` and `frozen`, which all optimizers have.
llvm::ArrayRef<OptimizerOption> getOptimizerOptions(OptimizerKind kind);

/// Whether `kind` keeps one value of a state per row instead of one per weight. It is for tables
/// only.
bool hasRowStates(OptimizerKind kind);

/// A scalar that the trainer passes to an optimizer in each step. In the order of the arguments of
/// `buildOptimizerBody`: the scheduled learning rate, then Adam's bias corrections of the two
/// moments.
struct OptimizerStepValue {
  llvm::StringRef name;
  double argument;
};
llvm::SmallVector<OptimizerStepValue> getStepValues(OptimizerAttr optimizer);

/// Whether a step changes rows with gradient 0, or their states.
bool changesWithoutGradient(OptimizerAttr optimizer, bool onTable);

/// Appends one optimizer step of a row: loads the row and its states, applies the equations of
/// torch.optim and stores them. `gradient`: vector<wxf32>; `stepValues`: scalars, one per
/// `getStepValues`. `onTable` selects the defaults of table rows. `roundsStochastically`: the new
/// value is rounded so to bf16 before it is stored.
void buildOptimizerBody(mlir::OpBuilder &builder, mlir::Location loc, OptimizerAttr optimizer,
                        bool onTable, bool roundsStochastically, mlir::Value row,
                        mlir::Value gradient, mlir::ValueRange stepValues);

/// The stream of the random numbers that round rows of tables. Row identities tell tables apart;
/// other streams are below.
constexpr int64_t kRowRoundingStream = 0x7FFFFFFF;

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_OPTIMIZERS_H
