//===- Callees.h - the functions that emitted code may call -----*- C++ -*-===//
//
// Emitted code calls only the functions of this list, most of them of the runtime. Each entry names
// the header that declares the function. A call of any other function is an error of the compiler;
// a test compares the list with the headers.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_EMITC_CALLEES_H
#define GENREC_TARGET_EMITC_CALLEES_H

#include "mlir/IR/BuiltinOps.h"

namespace genrec {

struct Callee {
  llvm::StringLiteral name;
  /// The declaring header below runtime/include; empty for a function of the language.
  llvm::StringLiteral header;
};

/// Every function that emitted code may call.
llvm::ArrayRef<Callee> getCallees();
/// The entry of `name`, or null.
const Callee *lookupCallee(llvm::StringRef name);

/// Fails if emitted code calls a function that is not in the list. Adds the includes of the called
/// functions' headers at the start of `module`.
mlir::LogicalResult checkCallees(mlir::ModuleOp module);

} // namespace genrec

#endif // GENREC_TARGET_EMITC_CALLEES_H
