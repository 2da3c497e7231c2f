//===- Coverage.h - what a range of seeds has exercised ---------*- C++ -*-===//

#ifndef GENREC_FUZZ_COVERAGE_H
#define GENREC_FUZZ_COVERAGE_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
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
  /// Counts the row kernels of a lowered model by the number of fused ops.
  void addKernels(mlir::ModuleOp module);
  void addRewrites(const std::map<std::string, uint64_t> &counts);

  /// What `genrec-fuzz` promises to exercise and did not: ops, options, rewrites,
  /// a row kernel of at least five fused ops. Empty when all was.
  std::vector<std::string> getMissing() const;
  /// One line per name with its count, sorted.
  std::string toString() const;

private:
  std::map<std::string, uint64_t> seen;
  std::map<std::string, uint64_t> rewrites;
  int64_t largestKernel = 0;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_COVERAGE_H
