//===- StepDomains.h - domains that exist within a step ---------*- C++ -*-===//
//
// In passes, shared tensors and distinct table rows are rows of `step` domains. These functions
// declare such domains and create their values.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H
#define GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Declares a `step` domain in `model`, named `name`, or `name_2` and so on if that name is taken.
/// With `reuse`, an existing step domain of that name is returned.
mlir::FlatSymbolRefAttr declareStepDomain(ModelOp model, llvm::StringRef name,
                                          bool reuse = false);

/// Declares a `derived` domain below `parent`, named `name`, or `name_2` and so on if that name is
/// taken.
mlir::FlatSymbolRefAttr declareDerivedDomain(ModelOp model, llvm::StringRef name,
                                             mlir::FlatSymbolRefAttr parent);

/// The value in `program` of the step domain with `count` rows. It is created at the start of the
/// program if there is none.
mlir::Value getFixedRows(ProgramOp program, int64_t count);

/// The number of rows of a shared tensor seen as rows of a fixed step domain: n for [n, w],
/// otherwise 1.
int64_t getSharedRowCount(mlir::Type shared);

/// A view of the shared tensor `x` as rows of `domain`, a fixed step domain.
mlir::Value viewSharedAsRows(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value x, mlir::Value domain);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H
