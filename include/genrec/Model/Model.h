//===- Model.h - model files to MLIR and back -------------------*- C++ -*-===//
//
// A model file (schema: model.fbs, prose: docs/model-file.md) is what a front end hands to the
// compiler. Importing it never trusts it: whatever the bytes, the result is a verified module or a
// diagnostic.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_MODEL_MODEL_H
#define GENREC_MODEL_MODEL_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace genrec {

/// The newest version of the model file that this build reads, and the one it writes.
inline constexpr uint32_t kModelFileVersion = 1;

/// Reads the model file in `data` into a module with one `genrec.model`, whose program is @main
/// (mode `all`), and verifies it. Returns null after a diagnostic when the bytes are not a model
/// file, are damaged, are of a newer version, or hold a model that breaks a rule of the dialect;
/// those last ones carry the user's own source location. `fileName` is for messages only.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const void *data, size_t size,
                                              llvm::StringRef fileName, mlir::MLIRContext *context);

/// Writes `model` as a model file. Fails with a diagnostic at the op that the file cannot express:
/// anything but declarations and one program of mode `all` with ops of the model level.
mlir::LogicalResult exportModel(ModelOp model, llvm::raw_ostream &os);

/// True when `data` starts like a model file (its FlatBuffers identifier).
bool isModelFile(llvm::StringRef data);

/// Registers --import-model and --export-model with mlir-translate's driver.
void registerModelTranslations();

} // namespace genrec

#endif // GENREC_MODEL_MODEL_H
