//===- Decisions.h - what passes did, and why -------------------*- C++ -*-===//
//
// Every graph pass says what it decided and the reason. The lines are kept on
// the model, for `--explain`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <string>
#include <vector>

namespace genrec {


/// Collects the decisions of one pass and adds them to a model when told to.
/// Equal lines (of several programs) are kept once.
class Decisions {
public:
  explicit Decisions(llvm::StringRef pass) : pass(pass) {}

  void add(const llvm::Twine &line) { lines.push_back((pass + ": " + line).str()); }
  /// Drops what an earlier run of the pass said in lines that begin with `start`.
  void forget(ModelOp model, llvm::StringRef start) const;
  void attachTo(ModelOp model) const;

private:
  llvm::StringRef pass;
  std::vector<std::string> lines;
};

/// " (ranker.py:41)", or "" where nobody knows.
std::string placeForUser(mlir::Operation *op);

/// How a value or op is called in a decision: the user's name, else the column or the op.
std::string nameForUser(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DECISIONS_H
