//===- ProgramOrder.h - topological order by position -----------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Sorts the ops of `program` topologically. Among the ops whose operands are available, the one
/// with the lowest entry in `positions` comes next.
void orderProgram(ProgramOp program,
                  const llvm::DenseMap<mlir::Operation *, unsigned> &positions);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_PROGRAMORDER_H
