//===- DomainSizes.h - rows of every domain in a batch ----------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_DOMAINSIZES_H
#define GENREC_LIB_REPORT_DOMAINSIZES_H

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"
#include "genrec/Report/Explain.h"

namespace genrec {

/// The number of rows of each domain of a program in a batch, and the length of its longest list.
/// Sizes that `options` do not give are assumed to be the largest possible: all lists are as long
/// as the longest. A catalogue without a given size has 0 rows.
class DomainSizes : public StepSizes {
public:
  DomainSizes(ProgramOp program, const ExplainOptions &options)
      : program(program), options(options) {}

  int64_t getRows(mlir::FlatSymbolRefAttr domain) const override { return get(domain).rows; }
  int64_t getLongest(mlir::FlatSymbolRefAttr domain) const override { return get(domain).longest; }
  int64_t getThreads() const override { return options.threads; }
  /// The rows that the runtime allocates for: it rounds them up to buckets.
  int64_t getCapacity(mlir::FlatSymbolRefAttr domain) const { return get(domain).capacity; }

private:
  struct Size {
    int64_t rows = 0, capacity = 0, longest = 1;
  };

  Size get(mlir::FlatSymbolRefAttr domain) const;
  /// The size of a `data` or `catalogue` domain.
  Size computeRead(DomainOp domain) const;
  /// The size of a derived domain, by the formula of the op that makes it.
  Size computeMade(StepOpInterface maker, mlir::FlatSymbolRefAttr domain) const;
  Size compute(mlir::FlatSymbolRefAttr domain) const;

  ProgramOp program;
  const ExplainOptions &options;
  mutable llvm::DenseMap<mlir::Attribute, Size> known;
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_DOMAINSIZES_H
