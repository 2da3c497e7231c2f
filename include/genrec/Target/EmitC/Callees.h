//===- Callees.h - the functions that emitted code may call -----*- C++ -*-===//
//
// Emitted code calls only the functions of this list, most of them of the runtime, and those that
// plugins list. Each entry names the header that declares the function. A call of any other
// function is an error of the compiler; a test compares the list with the headers.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_EMITC_CALLEES_H
#define GENREC_TARGET_EMITC_CALLEES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"

#include <string>
#include <vector>

namespace genrec {

/// Stands for the header of a function of the language.
inline constexpr llvm::StringLiteral kLanguageHeader = "-";

struct Callee {
  llvm::StringLiteral name;
  /// The declaring header below runtime/include, or a plugin's folder, in code for the CPU; empty
  /// for a function that has no CPU form.
  llvm::StringLiteral header;
  /// The same in code for CUDA.
  llvm::StringLiteral cudaHeader = "";

  llvm::StringRef getHeader(TargetKind target) const {
    return target == TargetKind::cuda ? cudaHeader : header;
  }
};

/// The library kernels of a dialect other than genrec.
class KernelDialectInterface : public mlir::DialectInterface::Base<KernelDialectInterface> {
public:
  explicit KernelDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
  /// What lowered ops of the dialect call; `Callee::header` lies below the folder.
  virtual llvm::ArrayRef<Callee> getCallees() const = 0;
  /// The folder of headers that the C++ compiler is given.
  virtual std::string getIncludeFolder() const = 0;
};

/// The folders of headers of the plugins that `context` has loaded.
llvm::SmallVector<std::string> getKernelIncludeFolders(mlir::MLIRContext *context);

/// Every function of the runtime that emitted code may call.
llvm::ArrayRef<Callee> getCallees();
/// The entry of `name`, of the runtime or of a plugin; null when it is on no list.
const Callee *lookupCallee(llvm::StringRef name, mlir::MLIRContext *context);

/// What `module`, on its way to EmitC or there, has that there is no code for `target` of: names of
/// callees. Sorted.
std::vector<std::string> listMissingForms(mlir::ModuleOp module, TargetKind target);

/// Fails if emitted code calls a function that is not in the list. Adds the includes of the called
/// functions' headers for `target` at the start of `module`.
mlir::LogicalResult checkCallees(mlir::ModuleOp module, TargetKind target);

} // namespace genrec

#endif // GENREC_TARGET_EMITC_CALLEES_H
