//===- DomainSizes.h - rows of every domain of a batch ----------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_DOMAINSIZES_H
#define GENREC_LIB_CONVERSION_DOMAINSIZES_H

#include "genrec/Conversion/Explain.h"

namespace genrec {

/// How many rows each domain of a program has in the batch that `options` tell of, and how
/// long its longest list is. What is not told is taken to be as large as it can be: all
/// lists as long as the longest. Rows of a catalogue that are not told are 0.
class DomainSizes {
public:
  DomainSizes(ProgramOp program, const ExplainOptions &options)
      : program(program), options(options) {}

  int64_t getRows(mlir::FlatSymbolRefAttr domain) { return get(domain).rows; }
  /// What the runtime makes room for: it rounds rows up to buckets.
  int64_t getCapacity(mlir::FlatSymbolRefAttr domain) { return get(domain).capacity; }
  int64_t getLongest(mlir::FlatSymbolRefAttr domain) { return get(domain).longest; }

private:
  struct Size {
    int64_t rows = 0, capacity = 0, longest = 1;
  };

  Size get(mlir::FlatSymbolRefAttr domain);
  Size compute(mlir::FlatSymbolRefAttr domain);
  /// Of a domain that a batch or a catalogue holds.
  Size computeRead(DomainOp domain);
  Size computeTruncated(TruncateOp truncate);
  Size computePadded(PadOp pad);
  Size addUp(llvm::ArrayRef<mlir::FlatSymbolRefAttr> sources);

  ProgramOp program;
  const ExplainOptions &options;
  llvm::DenseMap<mlir::Attribute, Size> known;
};

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_DOMAINSIZES_H
