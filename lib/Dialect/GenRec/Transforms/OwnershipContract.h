//===- OwnershipContract.h - what a program reads and trains ----*- C++ -*-===//
//
// After differentiation, the columns and tables that a program reads and the tables that it trains
// must no longer change. `differentiate` records them, and `verify-ownership` compares later
// programs with the record.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SetVector.h"

namespace genrec {


using Names = llvm::SetVector<mlir::Attribute>;

Names collectReadColumns(ProgramOp program);

/// The logical tables whose rows `program` looks up; for merged tables they follow from the keys.
Names collectReadTables(ProgramOp program);

/// Records what `program` reads and trains. It must be differentiated and have no dead ops.
void writeOwnershipContract(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H
