//===- DomainTree.h - the domain tree of a program --------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DOMAINTREE_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DOMAINTREE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Parents and values of the domains of a program, looked up once: a symbol lookup takes time in
/// proportion to the model's declarations.
class DomainTree {
public:
  explicit DomainTree(ProgramOp program) {
    for (auto domain : getModel(program).getBody().front().getOps<DomainOp>())
      parents[mlir::FlatSymbolRefAttr::get(domain.getSymNameAttr())] = domain.getParentAttr();
    for (mlir::Operation &op : program.getBody().front())
      for (mlir::Value value : op.getResults())
        if (auto type = mlir::dyn_cast<DomainType>(value.getType()))
          values[type.getDomain()] = value;
  }

  /// Null for a root.
  mlir::FlatSymbolRefAttr getParent(mlir::FlatSymbolRefAttr domain) const {
    return parents.lookup(domain);
  }
  /// The program's value of `domain`.
  mlir::Value getValue(mlir::FlatSymbolRefAttr domain) const { return values.lookup(domain); }
  /// Whether `above` is a proper ancestor of `domain`.
  bool isAbove(mlir::FlatSymbolRefAttr above, mlir::FlatSymbolRefAttr domain) const {
    for (mlir::FlatSymbolRefAttr next = getParent(domain); next; next = getParent(next))
      if (next == above)
        return true;
    return false;
  }
  /// The number of ancestors of `domain`.
  unsigned getDepth(mlir::FlatSymbolRefAttr domain) const {
    unsigned depth = 0;
    for (mlir::FlatSymbolRefAttr next = getParent(domain); next; next = getParent(next))
      ++depth;
    return depth;
  }

private:
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> parents;
  llvm::DenseMap<mlir::Attribute, mlir::Value> values;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_DOMAINTREE_H
