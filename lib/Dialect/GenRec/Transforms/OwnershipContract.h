//===- OwnershipContract.h - what a program must own ------------*- C++ -*-===//
//
// Once a program is differentiated, it is settled which columns and tables it reads and
// which tables it trains. `differentiate` writes that down, for `verify-ownership` to
// compare plans with.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SetVector.h"

namespace genrec {


using Names = llvm::SetVector<mlir::Attribute>;

Names collectReadColumns(ProgramOp program);

/// The logical tables whose rows `program` looks up or finds, by the keys where tables are
/// merged.
Names collectReadTables(ProgramOp program);

/// Writes down what `program` reads and trains, which is differentiated and without dead ops.
void writeOwnershipContract(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_OWNERSHIPCONTRACT_H
