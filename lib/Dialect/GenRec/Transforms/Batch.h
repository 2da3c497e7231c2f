//===- Batch.h - the domains that a program's batch yields ------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// How many results `completeBatch` added to and dropped from a batch op.
struct BatchChange {
  unsigned added = 0;
  unsigned dropped = 0;
};

/// Makes the batch op of `program` yield exactly the data domains that are used
/// and the data domains above any domain of the program, parents first.
BatchChange completeBatch(ProgramOp program);

/// Erases, from the end, the ops of `program` whose results nothing uses and
/// that have no effect. Returns how many.
unsigned eraseDeadOps(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BATCH_H
