//===- CatalogueGathers.cpp - what a program gathers from a catalogue -----===//

#include "CatalogueGathers.h"

#include "Decisions.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace genrec;

bool CatalogueGathers::needsRunningStep(Value value) {
  auto [entry, isNew] = running.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool needs =
      op->hasTrait<NeedsRunningStep>() || op->getNumRegions() != 0 ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return needsRunningStep(operand); });
  return running[value] = needs;
}

//===----------------------------------------------------------------------===//
// What computes a value
//===----------------------------------------------------------------------===//

/// Whether the rows below an item depend only on what the operands have below that item.
bool CatalogueGathers::isLocalToItems(Operation *op) const {
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (rowwise && rowwise.isGatherSource(operand.getOperandNumber()) &&
        isOfCatalogue(getRowDomain(operand.get().getType())))
      return false;
  return rowwise || op->hasTrait<RowLocal>() || op->hasTrait<ListLocal>() ||
         op->hasTrait<TreeLocal>();
}

static bool isString(Value value) { return isa<StringType>(getElementTypeOrSelf(value.getType())); }

/// Adds the op that makes `domain`, a list of the catalogue, and what that op depends on.
void CatalogueGathers::findDomain(GatheredValue &gathered, Value domain) {
  Operation *maker = domain.getDefiningOp();
  if (maker->hasTrait<ReadsDomains>() || !gathered.ops.insert(maker))
    return;
  for (Value operand : maker->getOperands())
    findDomain(gathered, operand);
}

void CatalogueGathers::findOps(GatheredValue &gathered, Value value) {
  if (!isOfCatalogue(getRowDomain(value.getType())))
    return;
  Operation *op = value.getDefiningOp();
  if (op->hasTrait<ReadsColumn>() || llvm::any_of(op->getOperands(), isString)) {
    gathered.columns.insert(value);
    findDomain(gathered, tree.getValue(getRowDomain(value.getType())));
    return;
  }
  if (!gathered.ops.insert(op))
    return;
  for (Value operand : op->getOperands())
    if (auto domain = dyn_cast<DomainType>(operand.getType())) {
      if (isOfCatalogue(domain.getDomain()))
        findDomain(gathered, operand);
    } else {
      findOps(gathered, operand);
    }
  findDomain(gathered, tree.getValue(getRowDomain(value.getType())));
}

void CatalogueGathers::collect() {
  llvm::MapVector<Value, SmallVector<GathersRowsOpInterface>> gathers;
  for (auto gather : program.getBody().front().getOps<GathersRowsOpInterface>())
    if (getRowDomain(gather.getGatherSource().getType()) == catalogue &&
        needsRunningStep(gather.getGatherSource()))
      gathers[gather.getGatherSource()].push_back(gather);
  for (auto &[value, ops] : gathers) {
    GatheredValue &gathered = found.emplace_back();
    gathered.value = value;
    gathered.gathers = ops;
    findOps(gathered, value);
  }
}

//===----------------------------------------------------------------------===//
// Obstacles
//===----------------------------------------------------------------------===//

static std::string describeOp(Operation *op) { return nameForUser(op) + placeForUser(op); }

std::string CatalogueGathers::findObstacle(GatheredValue &gathered) {
  bool insertsRows =
      program.getMode() == ProgramMode::train || program.getMode() == ProgramMode::all;
  for (Operation *op : gathered.ops) {
    if (!isLocalToItems(op))
      return describeOp(op) + " may combine several items";
    auto read = dyn_cast<TableReadOpInterface>(op);
    if (insertsRows && read && lookupTable(op, read.getReadTable()).hasRowRules())
      return "table '" + read.getReadTable().getValue().str() +
             "' has rules about rows, and sees every item in every step";
  }
  for (Value column : gathered.columns)
    if (needsRunningStep(column))
      return describeOp(column.getDefiningOp()) + " is computed from strings and from weights";
  for (GathersRowsOpInterface gather : gathered.gathers) {
    if (isOfCatalogue(getRowDomain(gather->getResult(0).getType())))
      return describeOp(gather) + " reads rows for all items";
    OpBuilder builder(gather);
    SmallVector<Value> numbers;
    gather.buildRowNumbers(builder, numbers);
    bool isKnown = llvm::none_of(numbers, [&](Value value) { return needsRunningStep(value); });
    for (Value drawn : numbers)
      if (drawn.use_empty() && drawn.getDefiningOp()->hasTrait<ReadsStepNumber>()) {
        running.erase(drawn);
        drawn.getDefiningOp()->erase();
      }
    if (!isKnown)
      return describeOp(gather) + " reads rows whose numbers depend on weights";
  }
  return "";
}

/// A reader of all rows of what `gathered` is computed from; empty if there is none.
std::string CatalogueGathers::findWholeReader(const GatheredValue &gathered) {
  auto isPicked = [&](Value value, Operation *user) {
    return llvm::any_of(found, [&](const GatheredValue &other) {
      return other.obstacle.empty() &&
             (other.ops.contains(user) ||
              (value == other.value && llvm::is_contained(other.gathers, user)));
    });
  };
  for (Operation *op : gathered.ops)
    for (Value value : op->getResults()) {
      if (isa<DomainType>(value.getType()) || !needsRunningStep(value))
        continue;
      for (Operation *user : value.getUsers())
        if (!isPicked(value, user))
          return describeOp(user) + " reads " +
                 (value == gathered.value ? std::string("it") : describeOp(op)) + " for all items";
    }
  return "";
}

/// Why it costs no less to compute the rows that a step reads than all rows.
std::string CatalogueGathers::findExpense(const AssumedRows &assumed) const {
  DomainOp domain = lookupDomain(program, catalogue);
  if (!domain.getExpectedRows())
    return "";
  int64_t rows = static_cast<int64_t>(*domain.getExpectedRows());
  double numbers = 0;
  for (const GatheredValue &gathered : found)
    for (GathersRowsOpInterface gather : gathered.gathers) {
      if (!gathered.obstacle.empty())
        continue;
      GatheredRows count = gather.countGatheredRows();
      double times = static_cast<double>(assumed.batch);
      for (unsigned depth = tree.getDepth(getRowDomain(gather->getResult(0).getType())); depth;
           --depth)
        times *= static_cast<double>(assumed.list);
      numbers += static_cast<double>(count.perRow) * times + static_cast<double>(count.shared);
    }
  if (numbers < static_cast<double>(rows))
    return "";
  return "a step reads some " + std::to_string(static_cast<int64_t>(numbers)) +
         " rows, with repetitions, of the " + std::to_string(rows) + " of the catalogue";
}

void CatalogueGathers::find(const AssumedRows &assumed) {
  collect();
  for (GatheredValue &gathered : found)
    gathered.obstacle = findObstacle(gathered);
  // What one value needs whole may be what another one is computed from.
  for (bool changed = true; changed;) {
    changed = false;
    for (GatheredValue &gathered : found)
      if (gathered.obstacle.empty()) {
        gathered.obstacle = findWholeReader(gathered);
        changed |= !gathered.obstacle.empty();
      }
  }
  std::string expense = findExpense(assumed);
  for (GatheredValue &gathered : found)
    if (gathered.obstacle.empty())
      gathered.obstacle = expense;
}
