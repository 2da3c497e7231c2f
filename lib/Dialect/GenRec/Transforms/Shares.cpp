//===- Shares.cpp - what the portions of a batch have of a value ----------===//

#include "Shares.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;
using llvm::SmallBitVector;

static bool isF32(Value value) {
  return isa<RankedTensorType>(value.getType()) && getElementTypeOrSelf(value.getType()).isF32();
}

static bool isZero(Value operand) { return matchPattern(operand, m_AnyZeroFloat()); }

/// That of the rows of `type`; replicated for a shared tensor.
Share Shares::ofRows(Type type) const {
  FlatSymbolRefAttr domain = getRowDomain(type);
  return domain ? domains.lookup_or(domain, Share::replicated) : Share::replicated;
}

Share Shares::of(Value value) const {
  if (auto type = dyn_cast<DomainType>(value.getType()))
    return domains.lookup_or(type.getDomain(), Share::replicated);
  return shares.lookup_or(value, Share::replicated);
}

/// Whether `op` is linear in its partial operands, `partial`. Operands that are zero may count as
/// partial, and so may replicated ones of which one portion reads 0 instead: those are added.
bool Shares::passesPartial(Operation *op, SmallBitVector &partial) const {
  auto linear = dyn_cast<LinearOpInterface>(op);
  if (!linear)
    return false;
  auto tryWith = [&](function_ref<bool(Value)> joins) {
    SmallBitVector varying = partial;
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (isF32(operand) && joins(operand))
        varying.set(index);
    if (!linear.isLinearIn(varying))
      return false;
    partial = varying;
    return true;
  };
  auto isReplicated = [&](Value operand) { return of(operand) == Share::replicated; };
  return tryWith([](Value) { return false; }) || tryWith(isZero) || tryWith(isReplicated);
}

/// Rows that a portion touches are its own, also if all portions look up the same.
void Shares::setDomains(Operation *op, bool anyLocal) {
  bool isLocal = anyLocal || op->hasTrait<ReadsDomains>();
  for (Value result : op->getResults())
    if (auto type = dyn_cast<DomainType>(result.getType()))
      domains[type.getDomain()] = op->hasTrait<MakesOwnedRows>() ? Share::owned
                                  : isLocal && !isOfCatalogue(program, type.getDomain())
                                      ? Share::local
                                      : Share::replicated;
}

/// Each result has the share of its rows, or else `ofRest`.
void Shares::setResults(Operation *op, Share ofRest, ShareNeeds &needs) {
  for (Value result : op->getResults()) {
    if (isa<DomainType>(result.getType()))
      continue;
    Share rows = ofRows(result.getType());
    shares[result] = rows == Share::replicated ? ofRest : rows;
    if (shares[result] == Share::partial && !isF32(result))
      needs.obstacle = "adds up rows of a batch in a type other than f32";
  }
}

/// The runtime adds up the sums of losses and their weights: both are partial, or neither.
ShareNeeds Shares::visitReport(ReportLossOp op) {
  ShareNeeds needs;
  bool isPartial = llvm::any_of(op->getOperands(),
                                [&](Value value) { return of(value) == Share::partial; });
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (isPartial && of(operand) == Share::replicated && !isZero(operand))
      needs.once.push_back(index);
  return needs;
}

/// Every portion gives its gradients of table rows, which are added up: one that all have counts
/// once.
ShareNeeds Shares::visitRows(Operation *op) {
  ShareNeeds needs;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (isF32(operand) && of(operand) == Share::replicated && !isZero(operand))
      needs.once.push_back(index);
  setDomains(op, /*anyLocal=*/true);
  setResults(op, Share::local, needs);
  return needs;
}

ShareNeeds Shares::visit(Operation *op) {
  if (auto report = dyn_cast<ReportLossOp>(op))
    return visitReport(report);
  if (op->hasTrait<OfTouchedRows>())
    return visitRows(op);
  ShareNeeds needs;
  SmallBitVector partial(op->getNumOperands());
  bool anyLocal = false, anyOwned = false;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Share share = of(operand);
    if (summed.contains(operand)) { // an op before reads the sum, and so does this one
      needs.sums.push_back(index);
      continue;
    }
    anyLocal |= share == Share::local;
    anyOwned |= share == Share::owned;
    auto linear = dyn_cast<LinearOpInterface>(op);
    partial[index] = share == Share::partial && !(linear && linear.takesPartial(index));
  }
  setDomains(op, anyLocal);
  auto finish = [&](Share ofRest) {
    setResults(op, ofRest, needs);
    return needs;
  };
  // What an op tells of a domain that it makes belongs to those rows, and is no sum of them.
  bool makesDomain = llvm::any_of(op->getResultTypes(), [](Type type) { return isa<DomainType>(type); });
  if (makesDomain && partial.none() && !anyOwned)
    return finish(anyLocal ? Share::local : Share::replicated);
  // The sum of `first_portion` over all portions is 1.
  auto stepValue = dyn_cast<StepValueOp>(op);
  if (isa<ContributeOp>(op) || (stepValue && stepValue.getName() == "first_portion"))
    return finish(Share::partial);
  if (op->hasTrait<SumsPortions>())
    return finish(Share::replicated);
  bool hasReplicatedRows = llvm::all_of(
      op->getResultTypes(), [&](Type type) { return ofRows(type) == Share::replicated; });
  bool hasResults = op->getNumResults() != 0;
  if (anyOwned && hasResults && hasReplicatedRows) {
    auto reduce = dyn_cast<ReduceRowsOp>(op);
    needs.sumsOwned = reduce && getRowShape(reduce.getX().getType()).empty();
    if (!needs.sumsOwned)
      needs.obstacle = "reduces rows that ranks own";
    return finish(Share::replicated);
  }
  SmallBitVector varying = partial;
  if (partial.any() && hasResults && hasReplicatedRows && passesPartial(op, varying)) {
    for (unsigned index : varying.set_bits())
      if (!partial[index] && !isZero(op->getOperand(index)))
        needs.once.push_back(index);
    return finish(Share::partial);
  }
  for (unsigned index : partial.set_bits()) {
    needs.sums.push_back(index);
    summed.insert(op->getOperand(index));
  }
  return finish(anyLocal ? Share::partial : Share::replicated);
}

Value genrec::getUpdatedRows(UniqueRowsOp unique) {
  for (Operation *user : unique.getDomain().getUsers())
    if (auto owned = dyn_cast<CollectRowsOp>(user))
      return owned.getOwnedRows();
  return unique.getResult();
}
