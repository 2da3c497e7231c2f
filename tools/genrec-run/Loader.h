//===- Loader.h - models and batches from files -----------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_RUN_LOADER_H
#define GENREC_TOOLS_GENREC_RUN_LOADER_H

#include "genrec/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace genrec::run {

/// The module in `buffer`, MLIR or a model file; null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> loadModule(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                             mlir::MLIRContext *context);

/// Runs a textual pass pipeline, or, where it is empty, nothing.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, llvm::StringRef pipeline);

/// Brings an imported model to where gradients are checked: programs by mode,
/// blocks decomposed, losses differentiated.
mlir::LogicalResult differentiateModel(mlir::ModuleOp module);

/// The program of `mode` in the module's model, or the imported one; null after
/// a diagnostic.
ProgramOp findProgram(mlir::ModuleOp module, ProgramMode mode);

/// The batch in a JSON file.
llvm::Expected<interpreter::Batch> loadBatch(ProgramOp program, llvm::StringRef file);

} // namespace genrec::run

#endif // GENREC_TOOLS_GENREC_RUN_LOADER_H
