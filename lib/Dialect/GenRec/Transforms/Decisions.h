//===- Decisions.h - records decisions of passes ----------------*- C++ -*-===//
//
// Every graph pass records its decisions and their reasons as an attribute of the model, which
// `--explain` prints.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <string>
#include <vector>

namespace genrec {


/// Collects the decisions of one pass, and adds them to a model on request. Equal lines (from
/// several programs) are added once.
class Decisions {
public:
  explicit Decisions(llvm::StringRef pass) : pass(pass) {}

  void add(const llvm::Twine &line) { lines.push_back((pass + ": " + line).str()); }
  /// Removes lines of an earlier run of the pass that begin with `start`.
  void forget(ModelOp model, llvm::StringRef start) const;
  void attachTo(ModelOp model) const;

private:
  llvm::StringRef pass;
  std::vector<std::string> lines;
};

/// " (ranker.py:41)", or "" if the location is unknown.
std::string placeForUser(mlir::Operation *op);

/// The name of a value or op in a decision: the user's name, or else the column or the op.
std::string nameForUser(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H
