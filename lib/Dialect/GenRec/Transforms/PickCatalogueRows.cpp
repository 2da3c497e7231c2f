//===- PickCatalogueRows.cpp - computes the items that a step reads -------===//

#include "CatalogueGathers.h"
#include "Decisions.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace genrec {
#define GEN_PASS_DEF_PICKCATALOGUEROWS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// Computes the values of one catalogue that can be picked for picked rows.
class Picker {
public:
  Picker(ProgramOp program, Value catalogue, CatalogueGathers &gathers)
      : program(program), model(getModel(program)), catalogue(catalogue), gathers(gathers),
        builder(program.getContext()) {}

  void run();
  unsigned ops = 0;

private:
  void makeNumbers();
  void hoistNumbers();
  void pickRows();
  void pickColumn(Value column);
  FlatSymbolRefAttr pickDomain(FlatSymbolRefAttr domain);
  void cloneOp(Operation *op);
  Type movedType(Type type);
  void gatherFromPicked();
  bool isPicked(const GatheredValue &gathered) const { return gathered.obstacle.empty(); }

  ProgramOp program;
  ModelOp model;
  Value catalogue;
  CatalogueGathers &gathers;
  OpBuilder builder;
  /// Per gather in order, how many row numbers it has among `numbers`.
  SmallVector<std::pair<GathersRowsOpInterface, unsigned>> counts;
  SmallVector<Value> numbers;
  PickRowsOp pick;
  Operation *last = nullptr;                      ///< the last op of those that make picked domains
  DenseMap<Attribute, FlatSymbolRefAttr> domains; ///< of picked rows
  DenseMap<Attribute, Value> rows;                ///< row numbers in the domain that is picked from
  IRMapping mapping;
};
} // namespace

/// Builds the row numbers of all gathers.
void Picker::makeNumbers() {
  for (GatheredValue &gathered : gathers.get())
    for (GathersRowsOpInterface gather : gathered.gathers) {
      if (!isPicked(gathered))
        continue;
      builder.setInsertionPoint(gather);
      size_t before = numbers.size();
      gather.buildRowNumbers(builder, numbers);
      counts.emplace_back(gather, numbers.size() - before);
    }
}

/// Moves what the row numbers depend on, the data only, to the start of the program: the first
/// gather needs the numbers of the last.
void Picker::hoistNumbers() {
  DenseSet<Operation *> needed;
  SmallVector<Operation *> work;
  for (Value number : numbers)
    work.push_back(number.getDefiningOp());
  work.push_back(catalogue.getDefiningOp());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      work.push_back(operand.getDefiningOp());
  }
  Block &body = program.getBody().front();
  auto rest = llvm::find_if(body, [&](Operation &op) { return !needed.contains(&op); });
  Operation *anchor = &*rest; // a gather at least is no number
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(rest, body.end())))
    if (needed.contains(&op))
      op.moveBefore(anchor);
  builder.setInsertionPoint(anchor);
}

void Picker::pickRows() {
  FlatSymbolRefAttr source = cast<DomainType>(catalogue.getType()).getDomain();
  FlatSymbolRefAttr domain = declareStepDomain(model, "picked_" + source.getValue().str());
  SmallVector<Type> types(ValueRange(numbers).getTypes());
  pick = PickRowsOp::create(
      builder, counts.front().first.getLoc(), DomainType::get(program.getContext(), domain),
      getRowsType(domain, {}, builder.getI64Type()), types, catalogue, numbers);
  last = pick;
  domains[source] = domain;
  rows[domain] = pick.getRows();
  mapping.map(catalogue, pick.getDomain());
}

/// The domain of the picked rows of `domain`. A list that is read from the data is picked by the
/// rows of its parent; one that an op derives gets its rows when that op is cloned.
FlatSymbolRefAttr Picker::pickDomain(FlatSymbolRefAttr domain) {
  if (FlatSymbolRefAttr known = domains.lookup(domain))
    return known;
  DomainOp declared = lookupDomain(program, domain);
  FlatSymbolRefAttr parent = pickDomain(declared.getParentAttr());
  FlatSymbolRefAttr picked =
      declareDerivedDomain(model, "picked_" + domain.getValue().str(), parent);
  domains[domain] = picked;
  if (declared.getKind() != DomainKind::data)
    return picked;
  Value lists = lookupDomainValue(program, domain);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(last);
  auto made =
      PickListsOp::create(builder, pick.getLoc(), DomainType::get(program.getContext(), picked),
                          getRowsType(picked, {}, builder.getI64Type()), lists, rows[parent]);
  last = made;
  rows[picked] = made.getRows();
  mapping.map(lists, made.getDomain());
  return picked;
}

Type Picker::movedType(Type type) {
  if (auto domain = dyn_cast<DomainType>(type))
    return gathers.isOfCatalogue(domain.getDomain())
               ? DomainType::get(type.getContext(), pickDomain(domain.getDomain()))
               : type;
  FlatSymbolRefAttr domain = getRowDomain(type);
  if (!gathers.isOfCatalogue(domain))
    return type;
  return getRowsType(pickDomain(domain), getRowShape(type),
                     cast<RankedTensorType>(type).getElementType());
}

void Picker::pickColumn(Value column) {
  if (mapping.contains(column))
    return;
  Type type = movedType(column.getType());
  Operation *op = column.getDefiningOp();
  builder.setInsertionPointAfter(op->isBeforeInBlock(last) ? last : op);
  mapping.map(column,
              GatherRowsOp::create(builder, op->getLoc(), type, column, rows[getRowDomain(type)])
                  .getResult());
}

void Picker::cloneOp(Operation *op) {
  if (mapping.contains(op->getResult(0)))
    return;
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(movedType(type));
  builder.setInsertionPointAfter(op->isBeforeInBlock(last) ? last : op);
  Operation *clone = builder.clone(*op, mapping);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), types))
    result.setType(type);
  ++ops;
}

void Picker::gatherFromPicked() {
  ValueRange picked = pick.getPicked();
  for (auto [gather, count] : counts) {
    builder.setInsertionPoint(gather);
    Operation *made = gather.buildGatherFrom(builder, mapping.lookup(gather.getGatherSource()),
                                             picked.take_front(count));
    picked = picked.drop_front(count);
    gather->replaceAllUsesWith(made);
    gather->erase();
    RewriteCounter::count("pick-rows");
  }
}

void Picker::run() {
  makeNumbers();
  if (counts.empty())
    return;
  hoistNumbers();
  pickRows();
  llvm::SetVector<Operation *> needed;
  // All lists first, so that `last` stays where it is.
  auto pickDomains = [&](TypeRange types) {
    for (Type type : types)
      movedType(type);
  };
  for (GatheredValue &gathered : gathers.get())
    if (isPicked(gathered)) {
      pickDomains(ValueRange(gathered.columns.getArrayRef()).getTypes());
      for (Operation *op : gathered.ops)
        pickDomains(op->getOperandTypes());
      needed.insert(gathered.ops.begin(), gathered.ops.end());
    }
  for (GatheredValue &gathered : gathers.get())
    for (Value column : gathered.columns)
      if (isPicked(gathered))
        pickColumn(column);
  SmallVector<Operation *> inOrder = llvm::to_vector(needed);
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : inOrder)
    cloneOp(op);
  gatherFromPicked();
  for (Operation *op : llvm::reverse(inOrder))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {
struct PickCatalogueRows : genrec::impl::PickCatalogueRowsBase<PickCatalogueRows> {
  using PickCatalogueRowsBase::PickCatalogueRowsBase;

  void runOnOperation() override {
    Decisions decisions("pick-catalogue-rows");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      SmallVector<Value> catalogues;
      for (auto catalogue : program.getBody().front().getOps<CatalogueOp>())
        catalogues.push_back(catalogue.getDomains().front());
      for (Value catalogue : catalogues)
        pickFrom(program, catalogue, decisions);
    }
    decisions.attachTo(getOperation());
  }

  void pickFrom(ProgramOp program, Value catalogue, Decisions &decisions) {
    DomainTree tree(program);
    CatalogueGathers gathers(program, cast<DomainType>(catalogue.getType()).getDomain(), tree);
    gathers.find({batchRows, listRows});
    for (const GatheredValue &gathered : gathers.get())
      note(program, catalogue, gathered, decisions);
    Picker picker(program, catalogue, gathers);
    picker.run();
    countStatistic(*this, ops, "ops", picker.ops);
  }

  void note(ProgramOp program, Value catalogue, const GatheredValue &gathered,
            Decisions &decisions) {
    bool isPicked = gathered.obstacle.empty();
    Operation *op = gathered.value.getDefiningOp();
    std::string what = "@" + program.getSymName().str() + ": " + nameForUser(op) +
                       placeForUser(op) + " of catalogue '" +
                       cast<DomainType>(catalogue.getType()).getDomain().getValue().str() + "' ";
    if (isPicked)
      decisions.add(what + "is computed for the items that a step reads");
    else
      decisions.add(what + "is computed for all items: " + gathered.obstacle);
    if (isPicked)
      countStatistic(*this, values, "values", 1);
    else
      countStatistic(*this, whole, "whole", 1);
  }
};
} // namespace
