//===- ForeignFile.cpp - files that are given in place of a model ---------===//

#include "genrec/Model/Model.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace genrec;

static constexpr llvm::StringLiteral kDataHelp =
    "data is given to the binary: ./model train --data <file>; a model file (.genrec) is what "
    "Python writes: gr.compile(..., output=\"model\"), or gr.write_model";
static constexpr llvm::StringLiteral kModelHelp =
    "name a model file (.genrec), as Python writes it: gr.compile(..., output=\"model\"), or "
    "gr.write_model; or MLIR";

/// By the first bytes. Of safetensors these are the header's length.
static std::optional<ForeignFile> findByMagic(StringRef data) {
  if (data.starts_with("PAR1"))
    return ForeignFile{"a Parquet file", kDataHelp};
  if (data.starts_with("\x7f"
                       "ELF"))
    return ForeignFile{"a program or a library", "name the model file that a compiled model was "
                                                 "made of: it lies beside it, as <model>.genrec"};
  if (data.size() > 9 && data.substr(4, 4) == StringRef("\0\0\0\0", 4) && data[8] == '{')
    return ForeignFile{"a safetensors file, with weights", kModelHelp};
  if (data.starts_with("\x1f\x8b") || data.starts_with("\x28\xb5\x2f\xfd") ||
      data.starts_with("PK\x03\x04"))
    return ForeignFile{"a compressed file", kModelHelp};
  return std::nullopt;
}

/// Text that a user may take for a model. MLIR may begin with `{-#`.
static std::optional<ForeignFile> findByText(StringRef data, StringRef fileName) {
  StringRef extension = llvm::sys::path::extension(fileName);
  if (extension == ".py")
    return ForeignFile{"Python", "run it: gr.compile(model, schema, output=\"model\") compiles, "
                                 "gr.write_model(model, schema, \"model.genrec\") writes the file "
                                 "that is read here"};
  if (extension == ".csv" || extension == ".tsv")
    return ForeignFile{"a table of data", kDataHelp};
  data = data.ltrim();
  if (data.consume_front("{") && (data.ltrim().starts_with("\"") || data.ltrim().starts_with("}")))
    return ForeignFile{"JSON: a plan or a checkpoint's manifest, say", kModelHelp};
  return std::nullopt;
}

/// A zero byte, or bytes that are no UTF-8, near the begin; the last character there may be cut.
static bool isBinary(StringRef data) {
  StringRef start = data.take_front(4096);
  if (start.contains('\0'))
    return true;
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(start.bytes_begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(start.bytes_end());
  return !llvm::isLegalUTF8String(&at, end) && (start.size() == data.size() || end - at >= 4);
}

std::optional<ForeignFile> genrec::findForeignFile(StringRef data, StringRef fileName) {
  if (isModelFile(data) || data.starts_with("ML\xefR"))
    return std::nullopt;
  if (std::optional<ForeignFile> found = findByMagic(data))
    return found;
  if (isBinary(data))
    return ForeignFile{"binary data", kModelHelp};
  return findByText(data, fileName);
}

LogicalResult genrec::requireNoForeignFile(StringRef data, StringRef fileName,
                                           MLIRContext *context) {
  std::optional<ForeignFile> foreign = findForeignFile(data, fileName);
  if (!foreign)
    return success();
  InFlightDiagnostic error = emitError(FileLineColLoc::get(context, fileName, 0, 0))
                             << "not a model, but " << foreign->kind;
  error.attachNote() << "help: " << foreign->help;
  return failure();
}
