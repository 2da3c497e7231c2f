//===- CppPrinter.h - prints EmitC as C++ -----------------------*- C++ -*-===//
//
// A plain walk over EmitC ops. Values used once become part of the expression
// that uses them; others become variables, named after the user's model where a
// name location says how. Anything but the EmitC ops that genrec makes is an
// error with its location.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_CPP_CPPPRINTER_H
#define GENREC_TARGET_CPP_CPPPRINTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace genrec {

/// Prints `module` as one translation unit. `banner` is a comment for its head.
mlir::LogicalResult printCpp(mlir::ModuleOp module, llvm::raw_ostream &os,
                             llvm::StringRef banner = "");

} // namespace genrec

#endif // GENREC_TARGET_CPP_CPPPRINTER_H
