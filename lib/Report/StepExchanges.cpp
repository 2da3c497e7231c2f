//===- StepExchanges.cpp - what a step exchanges among ranks --------------===//

#include "StepExchanges.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace genrec;

static StepLookup::Kind getKind(ProgramOp program, FlatSymbolRefAttr domain) {
  DomainOp root = getDomainPath(program, domain).back();
  switch (root.getKind()) {
  case DomainKind::data:
    return StepLookup::Kind::data;
  case DomainKind::catalogue:
    return StepLookup::Kind::catalogue;
  case DomainKind::derived:
  case DomainKind::step:
    return StepLookup::Kind::drawn;
  }
  llvm_unreachable("every kind is handled");
}

/// The lookups that handles of table rows come from.
static llvm::SetVector<Operation *> findLookups(Value handles) {
  llvm::SetVector<Operation *> work, found;
  if (Operation *maker = handles.getDefiningOp())
    work.insert(maker);
  for (size_t i = 0; i < work.size(); ++i) {
    if (isa<TableRowsOp>(work[i])) {
      found.insert(work[i]);
      continue;
    }
    for (Value operand : work[i]->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
        if (isa<RowType>(type.getElementType()) && operand.getDefiningOp())
          work.insert(operand.getDefiningOp());
  }
  return found;
}

static int64_t countFloats(Value value, const DomainSizes &sizes) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t floats = 1;
  for (int64_t size : type.getShape())
    floats *= ShapedType::isDynamic(size) ? 1 : size;
  FlatSymbolRefAttr domain = getRowDomain(type);
  return domain ? floats * sizes.getRows(domain) : floats;
}

/// Whether rows belong to one rank each, however parameters are updated.
static bool isOfTable(Value rows) {
  Value domain = lookupDomainValue(rows.getDefiningOp()->getParentOfType<ProgramOp>(),
                                   getRowDomain(rows.getType()));
  return !domain.getDefiningOp<ParameterRowsOp>();
}

StepExchanges::StepExchanges(ProgramOp program, const DomainSizes &sizes) {
  llvm::SetVector<Operation *> updated;
  for (Operation &op : program.getBody().front()) {
    if (auto given = dyn_cast<ContributeRowsOp>(op)) {
      updatesRows = true;
      for (Operation *lookup : findLookups(given.getRows()))
        updated.insert(lookup);
    } else if (auto values = dyn_cast<ContributeOp>(op)) {
      sums.push_back(0);
      sumsWithKeys |= getStage(values) == Stage::dispatch;
      gradients.push_back(0);
      for (auto [value, given] : llvm::zip_equal(values.getValues(), values.getResults())) {
        int64_t floats = countFloats(value, sizes);
        sums.back() += floats;
        gradients.back() += getRowsUpdatedBy(given) ? floats : 0;
      }
    } else if (auto exact = dyn_cast<ExactSumOp>(op)) {
      ++norms;
      tableNorms += llvm::any_of(exact.getValues(), isOfTable);
    } else if (isa<ReportLossOp>(op)) {
      ++losses;
    }
  }
  SymbolTable symbols(program->getParentOfType<ModelOp>());
  for (auto lookup : program.getBody().front().getOps<TableRowsOp>()) {
    FlatSymbolRefAttr domain = getRowDomain(lookup.getIds().getType());
    lookups.push_back({symbols.lookup<TableOp>(lookup.getTable()), getKind(program, domain), domain,
                       sizes.getRows(domain), getStage(lookup) != Stage::dispatch,
                       updated.contains(lookup)});
  }
}

int64_t StepExchanges::countFetches() const {
  // That of the dispatch stages is made without lookups, too.
  return 1 + llvm::count_if(lookups, [](const StepLookup &lookup) { return lookup.isLate; });
}

int64_t StepExchanges::countSumFloats() const {
  int64_t floats = 0;
  for (int64_t each : sums)
    floats += each;
  return floats;
}
