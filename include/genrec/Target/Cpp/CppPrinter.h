//===- CppPrinter.h - prints EmitC as C++ -----------------------*- C++ -*-===//
//
// Walks over EmitC ops. A value with one use is printed inside of the expression that uses it;
// other values become variables, named by the user's model where a name location gives a name.
// EmitC ops that genrec never creates are errors with a location.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_CPP_CPPPRINTER_H
#define GENREC_TARGET_CPP_CPPPRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace genrec {

/// Prints `module` as one translation unit. `banner` becomes a comment at its top.
mlir::LogicalResult printCpp(mlir::ModuleOp module, llvm::raw_ostream &os,
                             llvm::StringRef banner = "");

} // namespace genrec

#endif // GENREC_TARGET_CPP_CPPPRINTER_H
