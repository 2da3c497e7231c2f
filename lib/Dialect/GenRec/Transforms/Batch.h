//===- Batch.h - the results of a program's batch op ------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The numbers of results that `completeBatch` added and removed.
struct BatchChange {
  unsigned added = 0;
  unsigned dropped = 0;
};

/// Makes the batch op of `program` have exactly these results, parents first: the data domains that
/// are used, and the data domains that are ancestors of any domain of the program.
BatchChange completeBatch(ProgramOp program);

/// Erases the ops of `program` without effects whose results are unused, last ones first. Returns
/// their number.
unsigned eraseDeadOps(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H
