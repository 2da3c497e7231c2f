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
#include "mlir/Pass/PassManager.h"

namespace genrec {

#define GEN_PASS_DECL
#include "genrec/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "genrec/Conversion/Passes.h.inc"

/// Adds the passes that say where the values of row kernels lie: those of `target` (`cpu`, `cuda`).
/// `pm` is anchored on `builtin.module`.
void buildMemoryPipeline(mlir::OpPassManager &pm, llvm::StringRef target);

/// Adds the passes from row kernels to EmitC. `pm` is anchored on `builtin.module`; `target` is
/// `cpu`, `compiler` goes into the description of the model.
void buildLoweringPipeline(mlir::OpPassManager &pm, llvm::StringRef target,
                           llvm::StringRef compiler);

/// Registers `--genrec-lowering-pipeline`, the above for the CPU.
void registerLoweringPipeline();

} // namespace genrec

#endif // GENREC_CONVERSION_PASSES_H
