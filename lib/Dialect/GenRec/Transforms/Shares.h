//===- Shares.h - what the portions of a batch have of a value --*- C++ -*-===//
//
// A data-flow analysis: `distribute` inserts sums by it, and `verify-ownership` checks them by it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SHARES_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SHARES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SmallBitVector.h"

namespace genrec {

/// What the portions of a batch have of a value. For a domain: of its rows.
enum class Share {
  replicated, ///< all portions have the same
  local,      ///< rows of the portion's own data
  partial,    ///< the step's value is the sum over all portions
  owned,      ///< rows of a table that the rank owns, or of a parameter that it updates
};

/// What an op needs before portions may run it. Numbers are those of operands.
struct ShareNeeds {
  llvm::SmallVector<unsigned> sums; ///< partial ones whose sum over all portions it reads
  llvm::SmallVector<unsigned> once; ///< replicated ones that must count in one portion only
  bool sumsOwned = false;           ///< it must be `exact_sum`: it adds up rows that ranks own
  std::string obstacle;             ///< why portions cannot run it; empty if they can
};

/// The shares of the values of one program, op by op.
class Shares {
public:
  explicit Shares(ProgramOp program) : program(program) {}

  /// What `op` needs, given the shares of its operands. Sets those of its results, as they are once
  /// the needs are met. Ops are visited in order.
  ShareNeeds visit(mlir::Operation *op);

  Share of(mlir::Value value) const;

private:
  Share ofRows(mlir::Type type) const;
  void setDomains(mlir::Operation *op, bool anyLocal);
  void setResults(mlir::Operation *op, Share ofRest, ShareNeeds &needs);
  ShareNeeds visitReport(ReportLossOp op);
  ShareNeeds visitRows(mlir::Operation *op);
  bool passesPartial(mlir::Operation *op, llvm::SmallBitVector &partial) const;

  ProgramOp program;
  llvm::DenseMap<mlir::Value, Share> shares;
  /// Partial values of which an op reads the sum.
  llvm::DenseSet<mlir::Value> summed;
  /// Of the rows of domains, by name: a program has one value of each domain.
  llvm::DenseMap<mlir::Attribute, Share> domains;
};

/// The handles through which the table rows of `unique` are updated: those of its `collect_rows`, or
/// its own if the program is not distributed.
mlir::Value getUpdatedRows(UniqueRowsOp unique);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SHARES_H
