//===- DomainSizes.h - rows of every domain of a batch ----------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_DOMAINSIZES_H
#define GENREC_LIB_REPORT_DOMAINSIZES_H

#include "genrec/Report/Explain.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

namespace genrec {

/// How many rows each domain of a program has in the batch that `options` tell of, and how
/// long its longest list is. What is not told is taken to be as large as it can be: all
/// lists as long as the longest. Rows of a catalogue that are not told are 0.
class DomainSizes : public StepSizes {
public:
  DomainSizes(ProgramOp program, const ExplainOptions &options)
      : program(program), options(options) {}

  int64_t getRows(mlir::FlatSymbolRefAttr domain) const override { return get(domain).rows; }
  int64_t getLongest(mlir::FlatSymbolRefAttr domain) const override { return get(domain).longest; }
  int64_t getThreads() const override { return options.threads; }
  /// What the runtime makes room for: it rounds rows up to buckets.
  int64_t getCapacity(mlir::FlatSymbolRefAttr domain) const { return get(domain).capacity; }

private:
  struct Size {
    int64_t rows = 0, capacity = 0, longest = 1;
  };

  Size get(mlir::FlatSymbolRefAttr domain) const;
  /// Of a domain that a batch or a catalogue holds.
  Size computeRead(DomainOp domain) const;
  /// Of a domain that an op makes, by the op's own formula.
  Size computeMade(StepOpInterface maker) const;
  Size compute(mlir::FlatSymbolRefAttr domain) const;

  ProgramOp program;
  const ExplainOptions &options;
  mutable llvm::DenseMap<mlir::Attribute, Size> known;
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_DOMAINSIZES_H
