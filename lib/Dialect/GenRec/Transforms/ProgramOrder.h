//===- ProgramOrder.h - puts a program's ops in order -----------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Reorders the ops of `program` so that each comes after what it reads; among
/// those that could come next, the one with the lowest entry in `positions`
/// does.
void orderProgram(ProgramOp program,
                  const llvm::DenseMap<mlir::Operation *, unsigned> &positions);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H
