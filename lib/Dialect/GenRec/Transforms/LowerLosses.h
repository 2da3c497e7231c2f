//===- LowerLosses.h - losses as sums and gradients -------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_LOWERLOSSES_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_LOWERLOSSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The values that a loss consists of.
struct LoweredLoss {
  mlir::Value x;      ///< rows []: the loss of each row
  mlir::Value weight; ///< rows [] or null: the declared weight
  mlir::Value valid;  ///< rows [] of i1 or null
  mlir::Value sum;    ///< shared []: Σ w·x
  mlir::Value total;  ///< shared []: Σ w
  double scale;
  mlir::Location loc;
};

/// Replaces `loss` by its sums and a `genrec.report_loss`.
LoweredLoss lowerLoss(LossOp loss);

/// The gradients of scale * Σ w·x / Σ w with respect to x and, with `wantsWeight`, to the declared
/// weight. Both are 0 if Σ w is 0.
struct LossSeeds {
  mlir::Value x;
  mlir::Value weight;
};
LossSeeds buildLossSeeds(mlir::OpBuilder &builder, const LoweredLoss &loss,
                         bool wantsWeight);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_LOWERLOSSES_H
