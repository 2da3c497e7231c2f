//===- BodySimplification.h - cleans up row kernel bodies -------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Canonicalizes the bodies of the row kernels of `program`, merges equal computations in them, and
/// removes unused inputs. Results are bitwise equal.
void simplifyBodies(ProgramOp program);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_BODYSIMPLIFICATION_H
