//===- Batch.cpp - the results of a program's batch op --------------------===//

#include "Batch.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace genrec;

/// Inserts `domain` after all of its ancestors in the dataset.
static void insertWithAncestors(ModelOp model, FlatSymbolRefAttr domain,
                                llvm::SetVector<Attribute> &wanted) {
  DomainOp declaration = lookupDomain(model, domain);
  if (!declaration || wanted.contains(domain))
    return;
  if (FlatSymbolRefAttr parent = declaration.getParentAttr())
    insertWithAncestors(model, parent, wanted);
  if (declaration.getKind() == DomainKind::data && !isOfCatalogue(model, domain))
    wanted.insert(domain);
}

/// The data domains that `program` needs, parents before children.
static llvm::SetVector<Attribute> collectDataDomains(ProgramOp program) {
  llvm::SetVector<Attribute> wanted;
  ModelOp model = getModel(program);
  for (Operation &op : program.getBody().front())
    for (Value result : op.getResults())
      if (auto type = dyn_cast<DomainType>(result.getType()))
        if (!isa<BatchOp>(op) || !result.use_empty())
          insertWithAncestors(model, type.getDomain(), wanted);
  return wanted;
}

/// Whether a feature has no users and is kept for its padding id.
static bool isPaddingOnly(Operation *op) {
  auto feature = dyn_cast<FeatureOp>(op);
  return feature && feature.getPaddingIdAttr() && feature->use_empty();
}

/// Erases features with a padding id if no other op in `program` uses their domain.
static void eraseUnneededPadding(ProgramOp program) {
  ModelOp model = getModel(program);
  llvm::SetVector<Attribute> needed;
  auto need = [&](TypeRange types) {
    for (Type type : types) {
      auto domain = dyn_cast<DomainType>(type);
      if (FlatSymbolRefAttr name = domain ? domain.getDomain() : getRowDomain(type))
        insertWithAncestors(model, name, needed);
    }
  };
  Block &body = program.getBody().front();
  for (Operation &op : body) {
    if (isa<BatchOp>(op) || isPaddingOnly(&op))
      continue;
    need(op.getOperandTypes());
    need(op.getResultTypes());
  }
  for (Operation &op : llvm::make_early_inc_range(body))
    if (isPaddingOnly(&op) &&
        !needed.contains(cast<FeatureOp>(op).getDomain().getType().getDomain()))
      op.erase();
}

BatchChange genrec::completeBatch(ProgramOp program) {
  eraseUnneededPadding(program);
  BatchChange change;
  Block &body = program.getBody().front();
  llvm::SetVector<Attribute> wanted = collectDataDomains(program);
  auto batches = body.getOps<BatchOp>();
  BatchOp old = batches.empty() ? BatchOp() : *batches.begin();
  SmallVector<Type> types;
  for (Attribute domain : wanted)
    types.push_back(DomainType::get(program.getContext(), cast<FlatSymbolRefAttr>(domain)));
  if (old ? TypeRange(types) == TypeRange(old.getDomains()) : types.empty())
    return change;

  llvm::SmallDenseMap<Type, Value> oldResults;
  if (old)
    for (Value result : old.getDomains())
      oldResults[result.getType()] = result;
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Location loc = old ? old.getLoc() : program.getLoc();
  if (!types.empty()) {
    auto batch = BatchOp::create(builder, loc, types);
    for (Value result : batch.getDomains()) {
      auto it = oldResults.find(result.getType());
      if (it == oldResults.end()) {
        ++change.added;
        continue;
      }
      it->second.replaceAllUsesWith(result);
      oldResults.erase(it);
    }
  }
  change.dropped = oldResults.size();
  if (old)
    old.erase();
  return change;
}

unsigned genrec::eraseDeadOps(ProgramOp program) {
  unsigned erased = 0;
  Block &body = program.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (!isOpTriviallyDead(&op))
      continue;
    op.erase();
    ++erased;
  }
  return erased;
}
