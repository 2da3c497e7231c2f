//===- SourceDiagnostics.h - errors shown in the user's source --*- C++ -*-===//
//
// Prints diagnostics for the author of a model: file and line of the Python program, the line
// itself, carets under the expression, then help.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_MODEL_SOURCEDIAGNOSTICS_H
#define GENREC_MODEL_SOURCEDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace genrec {

/// During its lifetime, diagnostics of `context` are printed to `os` as
///
///     ranker.py:41: error: 'add' mixes rows of @request and @impression
///        41 |     score = user_vector + item_vector
///           |             ^^^^^^^^^^^
///       help: fan it out
///
/// Source lines appear if the file can be read. A note that begins with "help: " becomes a help
/// line; any other note is printed like an error, at its own location. The prefix "'genrec.add' op"
/// of verifier messages is shortened to "'add'". Locations are untrusted: only regular files below
/// 16 MiB are opened.
class SourceDiagnosticHandler : public mlir::ScopedDiagnosticHandler {
public:
  SourceDiagnosticHandler(mlir::MLIRContext *context, llvm::raw_ostream &os);
  ~SourceDiagnosticHandler();

  /// The number of errors printed so far.
  unsigned getErrorCount() const { return errorCount; }

private:
  void print(mlir::Diagnostic &diagnostic);
  void printOne(mlir::Location location, llvm::StringRef severity, llvm::StringRef message);
  void printSnippet(mlir::FileLineColRange range);
  /// Line `line` (1-based) of `file`; empty if it cannot be read.
  llvm::StringRef getLine(llvm::StringRef file, unsigned line);

  mlir::MLIRContext *context;
  llvm::raw_ostream &os;
  bool printedOps;
  unsigned errorCount = 0;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

} // namespace genrec

#endif // GENREC_MODEL_SOURCEDIAGNOSTICS_H
