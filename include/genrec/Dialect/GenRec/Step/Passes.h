//===- Passes.h - planning of steps -----------------------------*- C++ -*-===//
//
// Creation and registration of the passes that Passes.td declares.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_PASSES_H
#define GENREC_DIALECT_GENREC_STEP_PASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Pass/Pass.h"

namespace genrec {

#define GEN_PASS_DECL
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_PASSES_H
