//===- Model.h - model files to MLIR and back -------------------*- C++ -*-===//
//
// A model file (schema: model.fbs, description: docs/model-file.md) is the input of the compiler,
// written by a front end. Importing treats it as untrusted: for any bytes, the result is a verified
// module or a diagnostic.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_MODEL_MODEL_H
#define GENREC_MODEL_MODEL_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <optional>

namespace genrec {

/// The version that this build writes, and the newest that it reads.
inline constexpr uint32_t kModelFileVersion = 1;

/// Reads the model file in `data` into a module with one `genrec.model` and its program @main (mode
/// `all`), and verifies it. Returns null after a diagnostic if the bytes are not a model file, are
/// damaged, are of a newer version, or hold a model that the dialect rejects; in the last case the
/// diagnostic carries the user's source location. `fileName` is used in messages only.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const void *data, size_t size,
                                              llvm::StringRef fileName, mlir::MLIRContext *context);

/// Writes `model` as a model file. It may hold declarations and one program of mode `all` with ops
/// of the model level; any other op is an error at that op.
mlir::LogicalResult exportModel(ModelOp model, llvm::raw_ostream &os);

/// Whether `data` starts with the FlatBuffers identifier of model files.
bool isModelFile(llvm::StringRef data);

/// What a file is that no tool reads as a model, and what to do with it.
struct ForeignFile {
  llvm::StringRef kind; ///< "a Parquet file"
  llvm::StringRef help;
};

/// Finds out whether `data` is something else than a model: binary data, of which an error must not
/// show a line, or text that has nothing to do with MLIR. Empty for model files, MLIR as text or
/// bytecode, and other text, which parsers judge. `fileName` tells kinds of text apart.
std::optional<ForeignFile> findForeignFile(llvm::StringRef data, llvm::StringRef fileName);

/// Whether `data` may be a model; else an error at `fileName` says what it is.
mlir::LogicalResult requireNoForeignFile(llvm::StringRef data, llvm::StringRef fileName,
                                         mlir::MLIRContext *context);

/// Registers --import-model and --export-model with mlir-translate's driver. `registerDialects` adds
/// the dialects that models may have.
void registerModelTranslations(std::function<void(mlir::DialectRegistry &)> registerDialects);

} // namespace genrec

#endif // GENREC_MODEL_MODEL_H
