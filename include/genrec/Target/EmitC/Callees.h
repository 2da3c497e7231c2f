//===- Callees.h - the closed list of what emitted code calls ---*- C++ -*-===//
//
// Emitted code calls functions of the runtime and nothing else. Each is listed
// once, with the header that declares it; a call of anything else is an error of
// the compiler, and a test holds the headers against the list.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_EMITC_CALLEES_H
#define GENREC_TARGET_EMITC_CALLEES_H

#include "mlir/IR/BuiltinOps.h"

namespace genrec {

struct Callee {
  llvm::StringLiteral name;
  /// The header below runtime/include that declares it; empty for what the
  /// language has.
  llvm::StringLiteral header;
};

/// Every function that emitted code may call.
llvm::ArrayRef<Callee> getCallees();
/// The entry of `name`; null when it is not on the list.
const Callee *lookupCallee(llvm::StringRef name);

/// Fails with an error at a call of what is not on the list; adds includes of the
/// headers of what is called at the start of `module`.
mlir::LogicalResult checkCallees(mlir::ModuleOp module);

} // namespace genrec

#endif // GENREC_TARGET_EMITC_CALLEES_H
