//===- Spreads.h - broadcasts to descendants and to pairs -------*- C++ -*-===//
//
// Two ops *spread* (broadcast) rows into a domain below: `fanout` gives every child the row of its
// ancestor, `pair_rows` gives every pair its row of the second list. What is computed from spread
// values alone can be computed once, before the spread.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H

#include "DomainTree.h"

#include <optional>

namespace genrec {

/// The source of a spread value: rows of `domain`, spread by `pair_rows` (`isBeside`) or by
/// `fanout`. Without `domain`, the value is not spread.
struct Spread {
  mlir::FlatSymbolRefAttr domain;
  bool isBeside = false;
  explicit operator bool() const { return !!domain; }
  bool operator==(const Spread &) const = default;
};

/// The operand of the spread that makes `value`, and its Spread; null if `value` is not spread.
mlir::Value getSpreadSource(mlir::Value value);
Spread getSpread(mlir::Value value);

/// Builds spreads and their adjoints in one program.
class SpreadBuilder {
public:
  explicit SpreadBuilder(ProgramOp program) : tree(program), builder(program.getContext()) {}

  /// The op that made `domain`, if it is a domain of pairs; otherwise null.
  PairDomainsOp getPairs(mlir::FlatSymbolRefAttr domain) const {
    mlir::Value value = tree.getValue(domain);
    return value ? value.getDefiningOp<PairDomainsOp>() : PairDomainsOp();
  }
  /// Spreads `x` to `domain` (its own or a lower one) by `fanout`, or by `pair_rows`.
  mlir::Value spread(mlir::Value x, mlir::FlatSymbolRefAttr domain, mlir::Location loc,
                     bool isBeside = false);
  /// The adjoint of `spread`: sums all copies of each row.
  mlir::Value collect(mlir::Value x, Spread to, mlir::Location loc);
  mlir::Value poolTo(mlir::Value x, mlir::FlatSymbolRefAttr domain, mlir::Location loc,
                     PoolKind kind = PoolKind::sum);
  /// Where an op on values with these `spreads` can run instead of below them: in the lowest domain
  /// that is fanned out; or in the second list of pairs, if all other operands come from its
  /// ancestors. Nowhere if values of both lists of pairs are combined.
  Spread getCommonSpread(llvm::ArrayRef<Spread> spreads) const;

  DomainTree tree;
  mlir::OpBuilder builder;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPREADS_H
