//===- Spreads.h - copies of rows below a list's parent ---------*- C++ -*-===//
//
// Two ops copy rows into a domain below: `fanout` gives every child its parent's
// row, `pair_rows` gives every pair the row of its second half. What is computed
// from copies alone can be computed once, from what was copied.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H

#include "DomainTree.h"

#include <optional>

namespace genrec {

/// Where copied rows come from: rows of `domain`, copied by `pair_rows` (`isBeside`) or
/// by `fanout`. Without `domain`: nowhere.
struct Spread {
  mlir::FlatSymbolRefAttr domain;
  bool isBeside = false;
  explicit operator bool() const { return !!domain; }
  bool operator==(const Spread &) const = default;
};

/// The rows that `value` copies, and how; null where it copies none.
mlir::Value getSpreadSource(mlir::Value value);
Spread getSpread(mlir::Value value);

/// Builds copies and their adjoints in one program.
class SpreadBuilder {
public:
  explicit SpreadBuilder(ProgramOp program) : tree(program), builder(program.getContext()) {}

  /// The op that made `domain` of pairs; null for others.
  PairDomainsOp getPairs(mlir::FlatSymbolRefAttr domain) const {
    mlir::Value value = tree.getValue(domain);
    return value ? value.getDefiningOp<PairDomainsOp>() : PairDomainsOp();
  }
  /// `x` as rows of `domain`, its own or one below it, by `fanout`, or by `pair_rows`.
  mlir::Value spread(mlir::Value x, mlir::FlatSymbolRefAttr domain, mlir::Location loc,
                     bool isBeside = false);
  /// The adjoint of `spread`: per row that was copied, the sum over its copies.
  mlir::Value collect(mlir::Value x, Spread to, mlir::Location loc);
  mlir::Value poolTo(mlir::Value x, mlir::FlatSymbolRefAttr domain, mlir::Location loc,
                     PoolKind kind = PoolKind::sum);
  /// Where an op over `spreads` in one domain can run instead: at the deepest of what
  /// was fanned out, or at the second halves of pairs, where everything else is from above
  /// those. Nowhere when two halves meet.
  Spread getMeetingPlace(llvm::ArrayRef<Spread> spreads) const;

  DomainTree tree;
  mlir::OpBuilder builder;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H
