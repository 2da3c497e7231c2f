//===- ExpandUpdates.cpp - expands lookups and updates into row kernels ---===//

#include "ClipGradients.h"
#include "RowKernelBuilder.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/IR/Optimizers.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_EXPANDUPDATES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// The update of one parameter or table: its row handles and their gradients, both rows of a step
/// domain.
struct PendingUpdate {
  Operation *op;
  Value domain, rows;
  OptimizerAttr optimizer;
  bool onTable;
  bool roundsStochastically;
  std::string name;
};

/// Expands one program.
class Expansion {
public:
  explicit Expansion(ProgramOp program) : program(program), model(getModel(program)) {}

  void expandLookups();
  void expandUpdates();

  unsigned lookups = 0, parameterUpdates = 0, tableUpdates = 0, gradientsOfParents = 0,
           handlesShared = 0;

private:
  using IdsAndTable = std::pair<Value, Attribute>;

  Value buildHandles(OpBuilder &builder, Value ids, Value valid, TableOp table, Location loc);
  void collectHandles();
  Value readThroughParent(Value gradient);
  void expandGroups();
  Value buildLoad(OpBuilder &builder, Value rows, Value valid, Type type, Location loc);
  PendingUpdate prepare(UpdateParameterOp update, Value &gradient);
  PendingUpdate prepare(UpdateTableOp update, Value &gradient);
  void buildUpdateKernel(OpBuilder &builder, const PendingUpdate &update, Value gradient);

  ProgramOp program;
  ModelOp model;
  /// The row handles for lookups of the same ids.
  llvm::MapVector<IdsAndTable, Value> handles;
  /// The row handles of the parts of stacked keys.
  DenseMap<std::pair<Value, int64_t>, Value> partHandles;
};
} // namespace

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

Value Expansion::buildHandles(OpBuilder &builder, Value ids, Value valid, TableOp table,
                              Location loc) {
  FlatSymbolRefAttr domain = getRowDomain(ids.getType());
  return TableRowsOp::create(builder, loc, getRowsType(domain, {}, table.getRowType()), ids, valid,
                             FlatSymbolRefAttr::get(table.getSymNameAttr()));
}

/// Builds one table_rows per list of ids and table. It is valid where any of the lookups is.
void Expansion::collectHandles() {
  llvm::MapVector<IdsAndTable, SmallVector<LookupOp>> groups;
  for (auto lookup : program.getBody().front().getOps<LookupOp>())
    groups[{lookup.getIds(), lookup.getTableAttr()}].push_back(lookup);
  for (auto &[key, group] : groups) {
    // Inserted after all valid masks have been computed.
    LookupOp first = group.front();
    Operation *place = first;
    llvm::SmallSetVector<Value, 2> validities;
    for (LookupOp lookup : group)
      validities.insert(lookup.getValid());
    OpBuilder builder(place);
    Value valid;
    if (!validities.contains(Value())) {
      for (Value next : validities) {
        if (Operation *op = next.getDefiningOp())
          if (place->isBeforeInBlock(op))
            place = op->getNextNode();
      }
      builder.setInsertionPoint(place);
      GradientBuilder b(builder, first.getLoc());
      for (Value next : validities)
        valid = valid ? b.select(valid, valid, next) : next;
    }
    TableOp table = lookupTable(first, first.getTableAttr());
    handles[key] = buildHandles(builder, first.getIds(), valid, table, first.getLoc());
    handlesShared += group.size() - 1;
  }
}

/// A kernel that loads the rows, with zeros for rows that are not valid.
Value Expansion::buildLoad(OpBuilder &builder, Value rows, Value valid, Type type, Location loc) {
  Value domain = lookupDomainValue(program, getRowDomain(rows.getType()));
  SmallVector<KernelInput> inputs{{rows, OperandRole::aligned}};
  if (valid)
    inputs.push_back({valid, OperandRole::aligned});
  RowKernelOp kernel =
      createRowKernel(builder, loc, domain, inputs, {{type, ResultRole::aligned}}, "lookup");
  Block &body = kernel.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  RowBodyBuilder b(inner, loc);
  Value loaded = b.make<RowLoadOp>(getBodyType(type), body.getArgument(0), 0, /*whole=*/false);
  if (valid)
    loaded = b.select(body.getArgument(1), loaded, b.constant(loaded.getType(), 0.0));
  RowYieldOp::create(inner, loc, loaded);
  return kernel.getResult(0);
}

/// All rows of a grouped lookup are found by one table_rows, whose parts are views.
void Expansion::expandGroups() {
  Block &body = program.getBody().front();
  for (auto lookup : llvm::make_early_inc_range(body.getOps<GroupedLookupOp>())) {
    OpBuilder builder(lookup);
    Location loc = lookup.getLoc();
    TableOp table = lookupTable(lookup, lookup.getTableAttr());
    Value keys = lookup.getKeys();
    Value rows = buildHandles(builder, keys, Value(), table, loc);
    Value stack = lookupDomainValue(program, getRowDomain(keys.getType()));
    Type element = cast<RankedTensorType>(rows.getType()).getElementType();
    for (auto [part, domain, result] : llvm::enumerate(lookup.getDomains(), lookup.getResults())) {
      Type type = getRowsType(cast<DomainType>(domain.getType()).getDomain(), {}, element);
      Value own = UnstackRowsOp::create(builder, loc, type, rows, stack, domain, part);
      partHandles[{keys, part}] = own;
      result.replaceAllUsesWith(
          buildLoad(builder, own, Value(), result.getType(), result.getLoc()));
      ++lookups;
    }
    RewriteCounter::count("expand-lookup", lookup.getNumResults());
    lookup.erase();
  }
}

void Expansion::expandLookups() {
  expandGroups();
  collectHandles();
  Block &body = program.getBody().front();
  for (auto lookup : llvm::make_early_inc_range(body.getOps<LookupOp>())) {
    Value rows = handles.lookup({lookup.getIds(), lookup.getTableAttr()});
    OpBuilder builder(lookup);
    lookup.getResult().replaceAllUsesWith(
        buildLoad(builder, rows, lookup.getValid(), lookup.getResult().getType(), lookup.getLoc()));
    lookup.erase();
    ++lookups;
    RewriteCounter::count("expand-lookup");
  }
  // The handles of several lookups may have been inserted after the first of them.
  sortTopologically(&body);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

PendingUpdate Expansion::prepare(UpdateParameterOp update, Value &gradient) {
  ParameterOp parameter = lookupParameter(update, update.getParameterAttr());
  auto type = cast<RankedTensorType>(parameter.getType());
  int64_t width = type.getRank() == 0 ? 1 : type.getShape().back();
  FlatSymbolRefAttr domain =
      declareStepDomain(model, (parameter.getSymName() + "_rows").str(), /*reuse=*/false);
  OpBuilder builder(update);
  auto row = RowType::get(builder.getContext(), width);
  auto rows = ParameterRowsOp::create(builder, update.getLoc(),
                                      DomainType::get(builder.getContext(), domain),
                                      getRowsType(domain, {}, row), update.getParameterAttr());
  gradient = SharedRowsOp::create(builder, update.getLoc(),
                                  getRowsType(domain, {width}, type.getElementType()),
                                  update.getGradient(), rows.getDomain());
  ++parameterUpdates;
  RewriteCounter::count("expand-parameter-update");
  return {update,
          rows.getDomain(),
          rows.getResult(),
          parameter.getOptimizer(),
          /*onTable=*/false,
          /*roundsStochastically=*/false,
          ("update_" + parameter.getSymName()).str()};
}

/// The gradient of a pooled lookup is that of its list, fanned out to the entries. It is read from
/// the parent's row instead of being stored per entry. If it is fanned out from a higher ancestor,
/// it is fanned out to the parent first.
Value Expansion::readThroughParent(Value gradient) {
  auto fanout = gradient.getDefiningOp<FanoutOp>();
  if (!fanout)
    return gradient;
  FlatSymbolRefAttr domain = getRowDomain(gradient.getType());
  FlatSymbolRefAttr parent = lookupDomain(program, domain).getParentAttr();
  ++gradientsOfParents;
  RewriteCounter::count("gradient-of-parent");
  if (getRowDomain(fanout.getX().getType()) == parent)
    return fanout.getX();
  OpBuilder builder(fanout);
  Type type = getRowsType(parent, getRowShape(gradient.getType()), builder.getF32Type());
  return FanoutOp::create(builder, fanout.getLoc(), type, fanout.getX(),
                          lookupDomainValue(program, parent));
}

PendingUpdate Expansion::prepare(UpdateTableOp update, Value &gradient) {
  TableOp table = lookupTable(update, update.getTableAttr());
  OpBuilder builder(update);
  SmallVector<Value> rows, gradients;
  for (Value gradient : update.getGradients())
    gradients.push_back(readThroughParent(gradient));
  for (Value ids : update.getIds()) {
    auto part = ids.getDefiningOp<UnstackRowsOp>();
    if (Value own = part ? partHandles.lookup({part.getX(), part.getPart()}) : Value()) {
      ++handlesShared;
      rows.push_back(own);
      continue;
    }
    Value &found = handles[{ids, update.getTableAttr()}];
    handlesShared += found ? 1 : 0;
    if (!found)
      found = buildHandles(builder, ids, Value(), table, update.getLoc());
    rows.push_back(found);
  }
  FlatSymbolRefAttr domain =
      declareStepDomain(model, ("touched_" + table.getSymName()).str(), /*reuse=*/false);
  auto unique =
      UniqueRowsOp::create(builder, update.getLoc(), DomainType::get(builder.getContext(), domain),
                           getRowsType(domain, {}, table.getRowType()), rows, gradients,
                           /*all=*/!changesWithoutGradient(table.getOptimizer(), /*onTable=*/true));
  Type type = getRowsType(domain, {static_cast<int64_t>(table.getDim())}, builder.getF32Type());
  gradient = SegmentSumOp::create(builder, update.getLoc(), type, unique.getDomain(), gradients);
  ++tableUpdates;
  RewriteCounter::count("expand-table-update");
  return {update,
          unique.getDomain(),
          unique.getResult(),
          table.getOptimizer(),
          /*onTable=*/true,
          table.roundsStochastically(),
          ("update_" + table.getSymName()).str()};
}

void Expansion::buildUpdateKernel(OpBuilder &builder, const PendingUpdate &update, Value gradient) {
  Location loc = update.op->getLoc();
  SmallVector<KernelInput> inputs{{update.rows, OperandRole::aligned},
                                  {gradient, OperandRole::aligned}};
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  for (const OptimizerStepValue &value : getStepValues(update.optimizer)) {
    Value stepValue = StepValueOp::create(builder, loc, scalar, builder.getStringAttr(value.name),
                                          builder.getF64FloatAttr(value.argument));
    inputs.push_back({stepValue, OperandRole::shared});
  }
  RowKernelOp kernel = createRowKernel(builder, loc, update.domain, inputs, {}, update.name);
  Block &body = kernel.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  buildOptimizerBody(inner, loc, update.optimizer, update.onTable, update.roundsStochastically,
                     body.getArgument(0), body.getArgument(1), body.getArguments().drop_front(2));
  RowYieldOp::create(inner, loc, ValueRange());
}

/// First all rows are found, then all gradients are clipped together, then parameters and tables
/// are updated: no later op reads them.
void Expansion::expandUpdates() {
  SmallVector<PendingUpdate> pending;
  SmallVector<Value> gradients;
  for (Operation &op : program.getBody().front()) {
    Value gradient;
    if (auto update = dyn_cast<UpdateParameterOp>(op))
      pending.push_back(prepare(update, gradient));
    else if (auto update = dyn_cast<UpdateTableOp>(op))
      pending.push_back(prepare(update, gradient));
    else
      continue;
    gradients.push_back(gradient);
  }
  OpBuilder builder = OpBuilder::atBlockEnd(&program.getBody().front());
  clipGradients(builder, model, gradients);
  for (auto [update, gradient] : llvm::zip_equal(pending, gradients)) {
    buildUpdateKernel(builder, update, gradient);
    update.op->erase();
  }
}

namespace {
struct ExpandUpdates : genrec::impl::ExpandUpdatesBase<ExpandUpdates> {
  void runOnOperation() override {
    SmallVector<ProgramOp> programs(getOperation().getBody().front().getOps<ProgramOp>());
    for (ProgramOp program : programs) {
      Expansion expansion(program);
      expansion.expandLookups();
      expansion.expandUpdates();
      countStatistic(*this, lookups, "lookups", expansion.lookups);
      countStatistic(*this, parameterUpdates, "parameter-updates", expansion.parameterUpdates);
      countStatistic(*this, tableUpdates, "table-updates", expansion.tableUpdates);
      countStatistic(*this, gradientsOfParents, "gradients-of-parents",
                     expansion.gradientsOfParents);
      countStatistic(*this, handlesShared, "handles-shared", expansion.handlesShared);
    }
  }
};
} // namespace
