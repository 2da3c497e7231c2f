//===- Names.h - user names and source lines --------------------*- C++ -*-===//

#ifndef GENREC_ANALYSIS_NAMES_H
#define GENREC_ANALYSIS_NAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace genrec {

/// The user's name for an op: the outermost NameLoc in `loc`. Empty if there is none.
llvm::StringRef getUserName(mlir::Location loc);
/// The file location in `loc`; null if there is none.
mlir::FileLineColLoc getUserLocation(mlir::Location loc);
/// "model.py:31", or "" where the location is unknown.
std::string describeLocation(mlir::Location loc);
/// A C identifier made from `name`, never empty.
std::string makeIdentifier(llvm::StringRef name);
/// `name`, with a number where `taken` has it already; adds what it returns there. Names of symbols
/// that differ may be one identifier: "user.weight" and "user_weight".
std::string makeUnique(const std::string &name, llvm::StringSet<> &taken);
/// `text` as a C string literal with quotes.
std::string quoteText(llvm::StringRef text);

} // namespace genrec

#endif // GENREC_ANALYSIS_NAMES_H
