//===- Names.h - names and lines of the user's model -------------*- C++ -*-===//

#ifndef GENREC_ANALYSIS_NAMES_H
#define GENREC_ANALYSIS_NAMES_H

#include "mlir/IR/Location.h"

#include <string>

namespace genrec {

/// The user's name in `loc`: of the first name location found from the outside
/// in. Empty when there is none.
llvm::StringRef getUserName(mlir::Location loc);
/// Where in a file `loc` points to; null when nowhere.
mlir::FileLineColLoc getUserLocation(mlir::Location loc);
/// "model.py:31", or "" where the location is unknown.
std::string describeLocation(mlir::Location loc);
/// `name` made into a C identifier, never empty.
std::string makeIdentifier(llvm::StringRef name);
/// Text as a C string literal, quotes included.
std::string quoteText(llvm::StringRef text);

} // namespace genrec

#endif // GENREC_ANALYSIS_NAMES_H
