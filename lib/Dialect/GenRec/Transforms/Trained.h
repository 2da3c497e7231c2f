//===- Trained.h - values that training changes -----------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_TRAINED_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_TRAINED_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Whether `op` reads a parameter or table rows that training changes, that is, that are not frozen
/// (an option of the optimizer).
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
