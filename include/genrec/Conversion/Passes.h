//===- Passes.h - from row kernels to EmitC ---------------------*- C++ -*-===//
//
// Creation and registration of the passes that Passes.td declares.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_CONVERSION_PASSES_H
#define GENREC_CONVERSION_PASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace genrec {

#define GEN_PASS_DECL
#include "genrec/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "genrec/Conversion/Passes.h.inc"

} // namespace genrec

#endif // GENREC_CONVERSION_PASSES_H
