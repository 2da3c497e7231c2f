//===- Coverage.h - what random models exercise -----------------*- C++ -*-===//

#ifndef GENREC_FUZZ_COVERAGE_H
#define GENREC_FUZZ_COVERAGE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace genrec::fuzz {

/// Counts the ops and options of random models and the row kernels that they are fused into.
class Coverage {
public:
  /// Counts the ops of an imported model and their options: "attention causal", "pool kind=max",
  /// "lookup valid".
  void addModel(mlir::ModuleOp module);
  /// Counts the ops of the model after a pass, and the ops fused in each row kernel.
  void addLevel(ModelOp model);
  void addRewrites(const std::map<std::string, uint64_t> &counts);

  /// What `genrec-fuzz` must exercise and did not; empty if nothing is missing. Required are every
  /// op of the dialect in some model or after some pass, every attribute of the ops of imported
  /// models, all names in CoverageList.inc (enum cases, optional operands), every rewrite of
  /// genrec's passes, and a row kernel of at least five fused ops.
  std::vector<std::string> getMissing(mlir::MLIRContext *context) const;
  /// One line per name with its count, sorted.
  std::string toString() const;

private:
  std::map<std::string, uint64_t> seen;
  std::set<std::string> attributes; ///< of imported models: "attention causal"
  std::set<std::string> ops;        ///< of models before and after passes
  std::map<std::string, uint64_t> rewrites;
  int64_t largestKernel = 0;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_COVERAGE_H
