//===- OptimizerBodies.h - one row of an optimizer step ---------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OPTIMIZERBODIES_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OPTIMIZERBODIES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A scalar that the trainer passes to an optimizer in each step. In the order of the arguments of
/// `buildOptimizerBody`: the scheduled learning rate, then Adam's bias corrections of the two
/// moments.
struct OptimizerStepValue {
  llvm::StringRef name;
  double argument;
};
llvm::SmallVector<OptimizerStepValue> getStepValues(OptimizerAttr optimizer);

/// Whether a step changes rows with gradient 0: through moments, weight decay, or 0 / 0.
bool changesWithoutGradient(OptimizerAttr optimizer, bool onTable);

/// Appends one optimizer step of a row: loads the row and its states, applies
/// PyTorch's equations (torch.optim.SGD, Adagrad, Adam, AdamW) and stores them.
/// `gradient`: vector<wxf32>; `stepValues`: scalars, one per `getStepValues`.
/// `onTable` selects the defaults of table rows.
void buildOptimizerBody(mlir::OpBuilder &builder, mlir::Location loc,
                        OptimizerAttr optimizer, bool onTable, mlir::Value row,
                        mlir::Value gradient, mlir::ValueRange stepValues);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OPTIMIZERBODIES_H
