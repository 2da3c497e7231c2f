//===- GenRecSymbols.cpp - lookup of declarations -------------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"

using namespace mlir;
using namespace genrec;

ModelOp genrec::getModel(Operation *op) {
  if (auto model = dyn_cast<ModelOp>(op))
    return model;
  return op->getParentOfType<ModelOp>();
}

/// Compares names as attributes, by pointer: a model has thousands of tables, and verifiers look
/// one up per lookup op. `SymbolTable::lookupSymbolIn` compares the characters.
template <typename OpT>
static OpT lookup(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection *symbols) {
  ModelOp model = getModel(op);
  if (!model || !name)
    return {};
  if (symbols)
    return symbols->lookupSymbolIn<OpT>(model, name.getAttr());
  for (OpT declaration : model.getBody().getOps<OpT>())
    if (declaration.getSymNameAttr() == name.getAttr())
      return declaration;
  return {};
}

DomainOp genrec::lookupDomain(Operation *op, FlatSymbolRefAttr domain,
                              SymbolTableCollection *symbols) {
  return lookup<DomainOp>(op, domain, symbols);
}

TableOp genrec::lookupTable(Operation *op, FlatSymbolRefAttr table,
                            SymbolTableCollection *symbols) {
  return lookup<TableOp>(op, table, symbols);
}

ParameterOp genrec::lookupParameter(Operation *op, FlatSymbolRefAttr name,
                                    SymbolTableCollection *symbols) {
  return lookup<ParameterOp>(op, name, symbols);
}

Value genrec::lookupDomainValue(ProgramOp program, FlatSymbolRefAttr domain) {
  for (Operation &op : program.getBody().front())
    for (Value result : op.getResults())
      if (auto type = dyn_cast<DomainType>(result.getType()))
        if (type.getDomain() == domain)
          return result;
  return {};
}

FlatSymbolRefAttr genrec::domainOf(Value domain) {
  return cast<DomainType>(domain.getType()).getDomain();
}

bool genrec::isOfCatalogue(Operation *scope, FlatSymbolRefAttr domain,
                           SymbolTableCollection *symbols) {
  DomainOp current = lookupDomain(scope, domain, symbols);
  for (int depth = 0; current && depth <= kMostDomainDepth; ++depth) {
    if (current.getKind() == DomainKind::catalogue)
      return true;
    current = lookupDomain(scope, current.getParentAttr(), symbols);
  }
  return false;
}

bool genrec::isAncestor(Operation *scope, FlatSymbolRefAttr ancestor, FlatSymbolRefAttr domain,
                        SymbolTableCollection *symbols) {
  DomainOp current = lookupDomain(scope, domain, symbols);
  // The model's verifier rejects cycles and deeper trees.
  for (int depth = 0; current && depth < kMostDomainDepth; ++depth) {
    FlatSymbolRefAttr parent = current.getParentAttr();
    if (!parent)
      return false;
    if (parent == ancestor)
      return true;
    current = lookupDomain(scope, parent, symbols);
  }
  return false;
}
