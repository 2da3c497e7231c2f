//===- ExpandUpdates.cpp - lookups and updates into row kernels -----------===//

#include "ClipGradients.h"
#include "OptimizerBodies.h"
#include "RowKernelBuilder.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
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
/// One parameter or table to update: its rows and their gradients, both rows of
/// a step domain.
struct PendingUpdate {
  Operation *op;
  Value domain, rows;
  OptimizerAttr optimizer;
  bool onTable;
  std::string name;
};

/// The expansion of one program.
class Expansion {
public:
  explicit Expansion(ProgramOp program)
      : program(program), model(getModel(program)) {}

  void expandLookups();
  void expandUpdates();

  unsigned lookups = 0, parameterUpdates = 0, tableUpdates = 0,
           handlesShared = 0;

private:
  using IdsAndTable = std::pair<Value, Attribute>;

  Value buildHandles(OpBuilder &builder, Value ids, Value valid, TableOp table,
                     Location loc);
  void collectHandles();
  PendingUpdate prepare(UpdateParameterOp update, Value &gradient);
  PendingUpdate prepare(UpdateTableOp update, Value &gradient);
  void buildUpdateKernel(OpBuilder &builder, const PendingUpdate &update,
                         Value gradient);

  ProgramOp program;
  ModelOp model;
  /// The handles of the rows that lookups of the same ids found.
  llvm::MapVector<IdsAndTable, Value> handles;
};
} // namespace

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

Value Expansion::buildHandles(OpBuilder &builder, Value ids, Value valid,
                              TableOp table, Location loc) {
  FlatSymbolRefAttr domain = getRowDomain(ids.getType());
  auto row = RowType::get(builder.getContext(), table.getDim());
  return TableRowsOp::create(
      builder, loc, getRowsType(domain, {}, row), ids, valid,
      FlatSymbolRefAttr::get(table.getSymNameAttr()));
}

/// Builds one table_rows per ids and table, valid where any of its lookups is.
void Expansion::collectHandles() {
  llvm::MapVector<IdsAndTable, SmallVector<LookupOp>> groups;
  for (auto lookup : program.getBody().front().getOps<LookupOp>())
    groups[{lookup.getIds(), lookup.getTableAttr()}].push_back(lookup);
  for (auto &[key, group] : groups) {
    // Placed where the last of the validities is known.
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
    handles[key] = buildHandles(builder, first.getIds(), valid, table,
                                first.getLoc());
    handlesShared += group.size() - 1;
  }
}

void Expansion::expandLookups() {
  collectHandles();
  Block &body = program.getBody().front();
  for (auto lookup : llvm::make_early_inc_range(body.getOps<LookupOp>())) {
    Value rows = handles.lookup({lookup.getIds(), lookup.getTableAttr()});
    OpBuilder builder(lookup);
    Value domain = lookupDomainValue(program, getRowDomain(rows.getType()));
    SmallVector<KernelInput> inputs{{rows, OperandRole::aligned}};
    if (lookup.getValid())
      inputs.push_back({lookup.getValid(), OperandRole::aligned});
    Type type = lookup.getResult().getType();
    RowKernelOp kernel =
        createRowKernel(builder, lookup.getLoc(), domain, inputs,
                        {{type, ResultRole::aligned}}, "lookup");
    Block &kernelBody = kernel.getBody().front();
    OpBuilder inner = OpBuilder::atBlockEnd(&kernelBody);
    RowBodyBuilder b(inner, lookup.getLoc());
    Value loaded = b.make<RowLoadOp>(getBodyType(type),
                                     kernelBody.getArgument(0), 0);
    if (lookup.getValid())
      loaded = b.select(kernelBody.getArgument(1), loaded,
                        b.constant(loaded.getType(), 0.0));
    RowYieldOp::create(inner, lookup.getLoc(), loaded);
    lookup.getResult().replaceAllUsesWith(kernel.getResult(0));
    lookup.erase();
    ++lookups;
    RewriteCounter::count("expand-lookup");
  }
  // Handles valid for several lookups may come after the first of these.
  sortTopologically(&body);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

PendingUpdate Expansion::prepare(UpdateParameterOp update, Value &gradient) {
  ParameterOp parameter = lookupParameter(update, update.getParameterAttr());
  auto type = cast<RankedTensorType>(parameter.getType());
  int64_t width = type.getRank() == 0 ? 1 : type.getShape().back();
  FlatSymbolRefAttr domain = declareStepDomain(
      model, (parameter.getSymName() + "_rows").str(), /*reuse=*/false);
  OpBuilder builder(update);
  auto row = RowType::get(builder.getContext(), width);
  auto rows = ParameterRowsOp::create(
      builder, update.getLoc(),
      DomainType::get(builder.getContext(), domain),
      getRowsType(domain, {}, row), update.getParameterAttr());
  gradient = SharedRowsOp::create(
      builder, update.getLoc(),
      getRowsType(domain, {width}, type.getElementType()),
      update.getGradient(), rows.getDomain());
  ++parameterUpdates;
  RewriteCounter::count("expand-parameter-update");
  return {update, rows.getDomain(), rows.getResult(),
          parameter.getOptimizer(), /*onTable=*/false,
          ("update_" + parameter.getSymName()).str()};
}

PendingUpdate Expansion::prepare(UpdateTableOp update, Value &gradient) {
  TableOp table = lookupTable(update, update.getTableAttr());
  OpBuilder builder(update);
  SmallVector<Value> rows, gradients(update.getGradients());
  for (Value ids : update.getIds()) {
    Value &found = handles[{ids, update.getTableAttr()}];
    handlesShared += found ? 1 : 0;
    if (!found)
      found = buildHandles(builder, ids, Value(), table, update.getLoc());
    rows.push_back(found);
  }
  FlatSymbolRefAttr domain = declareStepDomain(
      model, ("touched_" + table.getSymName()).str(), /*reuse=*/false);
  auto row = RowType::get(builder.getContext(), table.getDim());
  auto unique = UniqueRowsOp::create(
      builder, update.getLoc(),
      DomainType::get(builder.getContext(), domain),
      getRowsType(domain, {}, row), rows, gradients);
  Type type = getRowsType(domain, {static_cast<int64_t>(table.getDim())},
                          builder.getF32Type());
  gradient = SegmentSumOp::create(builder, update.getLoc(), type,
                                  unique.getDomain(), gradients);
  ++tableUpdates;
  RewriteCounter::count("expand-table-update");
  return {update, unique.getDomain(), unique.getResult(),
          table.getOptimizer(), /*onTable=*/true,
          ("update_" + table.getSymName()).str()};
}

void Expansion::buildUpdateKernel(OpBuilder &builder,
                                  const PendingUpdate &update, Value gradient) {
  Location loc = update.op->getLoc();
  SmallVector<KernelInput> inputs{{update.rows, OperandRole::aligned},
                                  {gradient, OperandRole::aligned}};
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  for (const OptimizerStepValue &value : getStepValues(update.optimizer)) {
    Value stepValue = StepValueOp::create(
        builder, loc, scalar, builder.getStringAttr(value.name),
        builder.getF64FloatAttr(value.argument));
    inputs.push_back({stepValue, OperandRole::shared});
  }
  RowKernelOp kernel = createRowKernel(builder, loc, update.domain, inputs, {},
                                       update.name);
  Block &body = kernel.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  buildOptimizerBody(inner, loc, update.optimizer, update.onTable,
                     body.getArgument(0), body.getArgument(1),
                     body.getArguments().drop_front(2));
  RowYieldOp::create(inner, loc, ValueRange());
}

/// All rows are found first, then all gradients are clipped together, then every
/// parameter and table is updated: nothing reads them after that.
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
    SmallVector<ProgramOp> programs(
        getOperation().getBody().front().getOps<ProgramOp>());
    for (ProgramOp program : programs) {
      Expansion expansion(program);
      expansion.expandLookups();
      expansion.expandUpdates();
      countStatistic(*this, lookups, "lookups", expansion.lookups);
      countStatistic(*this, parameterUpdates, "parameter-updates",
                     expansion.parameterUpdates);
      countStatistic(*this, tableUpdates, "table-updates",
                     expansion.tableUpdates);
      countStatistic(*this, handlesShared, "handles-shared",
                     expansion.handlesShared);
    }
  }
};
} // namespace
