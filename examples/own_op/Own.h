//===- Own.h - the dialect and what it brings -------------------*- C++ -*-===//

#ifndef OWN_OWN_H
#define OWN_OWN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "OwnDialect.h.inc"

#define GET_OP_CLASSES
#include "OwnOps.h.inc"

namespace own {

/// Each tells one part of genrec about the dialect, from the file of that name.
void addEvaluation(OwnDialect &dialect);
void addGenerator(OwnDialect &dialect);
void addStep(OwnDialect &dialect);

} // namespace own

#endif // OWN_OWN_H
