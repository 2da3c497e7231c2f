//===- Coverage.h - what a range of seeds has exercised ---------*- C++ -*-===//

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

/// Counts the ops and options of generated models, and the row kernels that
/// fusion makes of them.
class Coverage {
public:
  /// Counts every op of a model and every option it has: "attention causal",
  /// "pool kind=max", "lookup valid".
  void addModel(mlir::ModuleOp module);
  /// Counts the ops of a level that the pipeline makes, and the ops fused in each row kernel.
  void addLevel(ModelOp model);
  void addRewrites(const std::map<std::string, uint64_t> &counts);

  /// What `genrec-fuzz` promises to exercise and did not: every op of the dialect at some level,
  /// every attribute of the ops of a model, what CoverageList.inc names (kinds, optional operands),
  /// every rewrite of our own, a row kernel of at least five fused ops. Empty when all was.
  std::vector<std::string> getMissing(mlir::MLIRContext *context) const;
  /// One line per name with its count, sorted.
  std::string toString() const;

private:
  std::map<std::string, uint64_t> seen;
  std::set<std::string> attributes; ///< "attention causal", of models
  std::set<std::string> ops;        ///< at any level
  std::map<std::string, uint64_t> rewrites;
  int64_t largestKernel = 0;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_COVERAGE_H
