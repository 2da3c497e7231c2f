//===- StepDomains.h - domains that exist within a step ---------*- C++ -*-===//
//
// Passes compute with shared tensors and touched table rows as rows of `step`
// domains. These functions declare such domains and give their values.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H
#define GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Declares a `step` domain in `model`, called `name` or, if something else has
/// that name, `name` with underscores; an existing step domain of that name is
/// returned when `reuse` is set.
mlir::FlatSymbolRefAttr declareStepDomain(ModelOp model, llvm::StringRef name,
                                          bool reuse = false);

/// The value of the step domain of exactly `count` rows in `program`; made at
/// the program's start when there is none.
mlir::Value getFixedRows(ProgramOp program, int64_t count);

/// The number of rows that a shared tensor has as rows of a fixed step domain:
/// n for [n, w], else 1.
int64_t getSharedRowCount(mlir::Type shared);

/// The shared tensor `x` seen as rows of `domain`, a fixed step domain.
mlir::Value viewSharedAsRows(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value x, mlir::Value domain);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_STEPDOMAINS_H
