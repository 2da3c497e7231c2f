//===- Passes.h - passes over the genrec dialect ----------------*- C++ -*-===//
//
// Creation and registration of the passes that Passes.td declares.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_TRANSFORMS_PASSES_H
#define GENREC_DIALECT_GENREC_TRANSFORMS_PASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace genrec {

#define GEN_PASS_DECL
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_TRANSFORMS_PASSES_H
