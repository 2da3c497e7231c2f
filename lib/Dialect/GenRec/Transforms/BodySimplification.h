//===- BodySimplification.h - cleans up row kernel bodies -------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Folds and canonicalises the bodies of the row kernels of `program`, merges
/// equal computations in them and drops inputs that they do not read. Values do
/// not change by a bit.
void simplifyBodies(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H
