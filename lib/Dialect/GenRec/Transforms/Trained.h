//===- Trained.h - what training changes ------------------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_TRAINED_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_TRAINED_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Whether `op` reads a parameter or rows of a table that training changes, as it does unless they
/// are frozen (an option of their optimizers).
inline bool readsTrained(mlir::Operation *op) {
  auto isTrained = [](OptimizerAttr optimizer) { return optimizer.getOption("frozen") == 0.0; };
  if (auto param = llvm::dyn_cast<ParamOp>(op))
    return isTrained(lookupParameter(op, param.getParameterAttr()).getOptimizer());
  if (auto lookup = llvm::dyn_cast<LookupOp>(op))
    return isTrained(lookupTable(op, lookup.getTableAttr()).getOptimizer());
  if (auto lookup = llvm::dyn_cast<GroupedLookupOp>(op))
    return isTrained(lookupTable(op, lookup.getTableAttr()).getOptimizer());
  return false;
}

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_TRAINED_H
