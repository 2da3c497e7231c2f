//===- GenRecOps.cpp - generated definitions of the ops -------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;

#define GET_OP_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecOps.cpp.inc"
