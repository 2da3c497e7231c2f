//===- Differentiate.cpp - turns losses into gradients and updates --------===//
//
// Reverse-mode differentiation of a list of ops without control flow. A value that depends on a
// parameter or a table is *active*. The forward ops are visited in reverse; each op whose result
// has a gradient, and which has active operands, builds the gradients of its operands. The
// gradients of parameters and tables become updates.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "LowerLosses.h"
#include "OwnershipContract.h"
#include "Trained.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Sums of gradients
//===----------------------------------------------------------------------===//

/// Removes from `gradients` padded columns that together cover a row without gap or overlap, and
/// returns them in column order. Returns none if there are no such columns.
static SmallVector<PadColumnsOp> takeTiledPads(SmallVector<Value> &gradients) {
  SmallVector<PadColumnsOp> pads;
  for (Value gradient : gradients)
    if (auto pad = gradient.getDefiningOp<PadColumnsOp>())
      pads.push_back(pad);
  llvm::sort(pads, [](PadColumnsOp lhs, PadColumnsOp rhs) {
    return lhs.getOffset() != rhs.getOffset()
               ? lhs.getOffset() < rhs.getOffset()
               : lhs->isBeforeInBlock(rhs);
  });
  int64_t next = 0;
  llvm::erase_if(pads, [&](PadColumnsOp pad) {
    if (static_cast<int64_t>(pad.getOffset()) != next)
      return true;
    next += getRowSize(pad.getX().getType());
    return false;
  });
  if (pads.size() < 2 || next != getRowSize(gradients.front().getType()))
    return {};
  // A gradient may occur twice in the list: removes one occurrence per pad.
  for (PadColumnsOp pad : pads)
    gradients.erase(llvm::find(gradients, pad.getResult()));
  return pads;
}

namespace {
/// Differentiates one training program.
class ReverseMode {
public:
  ReverseMode(ProgramOp program) : program(program) {
    findActive();
    builder = OpBuilder::atBlockEnd(&program.getBody().front());
  }

  bool isActive(Value value) const { return active.contains(value); }

  void addGradient(Value value, Value gradient) {
    if (gradient && isActive(value))
      gradients[value].push_back(gradient);
  }

  /// Builds the gradients of `forward`, the ops before differentiation.
  LogicalResult run(ArrayRef<Operation *> forward);
  void buildUpdates();

  OpBuilder builder{static_cast<MLIRContext *>(nullptr)};
  unsigned differentiated = 0, joined = 0;
  llvm::MapVector<Attribute, SmallVector<Value>> parameters;
  llvm::MapVector<Attribute, SmallVector<std::pair<Value, Value>>> tables;

private:
  void findActive();
  Value sumGradients(ArrayRef<Value> parts);
  Value takeGradient(Value value);
  LogicalResult differentiate(Operation *op);
  void collectLookup(LookupOp lookup, Value gradient);
  void collectLookup(GroupedLookupOp lookup, ArrayRef<Value> gradients);

  ProgramOp program;
  DenseSet<Value> active;
  DenseMap<Value, SmallVector<Value, 2>> gradients;
};
} // namespace

/// Gradients exist for floats only; `detach` stops them.
void ReverseMode::findActive() {
  for (Operation &op : program.getBody().front()) {
    bool isActive = readsTrained(&op) ||
                    (!isa<DetachOp>(op) &&
                     llvm::any_of(op.getOperands(), [&](Value operand) {
                       return active.contains(operand);
                     }));
    if (!isActive)
      continue;
    for (Value result : op.getResults())
      if (isDifferentiable(result.getType()))
        active.insert(result);
  }
}

Value ReverseMode::sumGradients(ArrayRef<Value> parts) {
  // Uses were visited in reverse; the sum is in their order.
  SmallVector<Value> terms(llvm::reverse(parts));
  Type type = parts.front().getType();
  SmallVector<PadColumnsOp> pads = takeTiledPads(terms);
  if (!pads.empty()) {
    ++joined;
    RewriteCounter::count("join-padded-columns");
    SmallVector<Value> columns;
    for (PadColumnsOp pad : pads)
      columns.push_back(pad.getX());
    Value whole =
        ConcatColumnsOp::create(builder, pads.front().getLoc(), type, columns);
    terms.insert(terms.begin(), whole);
  }
  Value sum = terms.front();
  for (Value term : ArrayRef<Value>(terms).drop_front())
    sum = AddOp::create(builder, term.getLoc(), type, sum, term);
  return sum;
}

/// The sum of the gradients of `value`'s uses; null if there is none.
Value ReverseMode::takeGradient(Value value) {
  auto it = gradients.find(value);
  if (it == gradients.end())
    return Value();
  Value sum = sumGradients(it->second);
  gradients.erase(it);
  return sum;
}

void ReverseMode::collectLookup(LookupOp lookup, Value gradient) {
  GradientBuilder b(builder, lookup.getLoc());
  if (lookup.getValid())
    gradient = b.maskWith(lookup.getValid(), gradient);
  tables[lookup.getTableAttr()].emplace_back(lookup.getIds(), gradient);
}

/// One list of ids and gradients per part that has a gradient. No mask is needed, as key -1 has no
/// row.
void ReverseMode::collectLookup(GroupedLookupOp lookup, ArrayRef<Value> gradients) {
  auto &pairs = tables[lookup.getTableAttr()];
  FlatSymbolRefAttr stacked = getRowDomain(lookup.getKeys().getType());
  Value stack = lookupDomainValue(program, stacked);
  // Lists are collected in reverse.
  for (int64_t part = static_cast<int64_t>(gradients.size()) - 1; part >= 0; --part) {
    if (!gradients[part])
      continue;
    Value domain = lookup.getDomains()[part];
    Type type = getRowsType(cast<DomainType>(domain.getType()).getDomain(), {}, builder.getI64Type());
    Value keys = UnstackRowsOp::create(builder, lookup.getLoc(), type, lookup.getKeys(), stack, domain, part);
    pairs.emplace_back(keys, gradients[part]);
  }
}

LogicalResult ReverseMode::differentiate(Operation *op) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(takeGradient(result));
  if (llvm::none_of(resultGradients, [](Value value) { return !!value; }))
    return success();
  ++differentiated;
  if (auto lookup = dyn_cast<LookupOp>(op)) {
    collectLookup(lookup, resultGradients[0]);
    return success();
  }
  if (auto lookup = dyn_cast<GroupedLookupOp>(op)) {
    collectLookup(lookup, resultGradients);
    return success();
  }
  if (auto param = dyn_cast<ParamOp>(op)) {
    parameters[param.getParameterAttr()].push_back(resultGradients[0]);
    return success();
  }
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError(
        "has no gradient, but a loss depends through it on a parameter or a "
        "table; detach its operands or compute the loss from something else");
  SmallVector<Value> operandGradients;
  Operation *last = &builder.getBlock()->back();
  if (failed(differentiable.buildGradient(builder, resultGradients,
                                          operandGradients)))
    return failure();
  inheritPrecision(op, std::next(last->getIterator()), builder.getBlock()->end());
  assert(operandGradients.size() == op->getNumOperands() &&
         "buildGradient pushes one value per operand");
  for (auto [operand, gradient] :
       llvm::zip_equal(op->getOperands(), operandGradients))
    addGradient(operand, gradient);
  return success();
}

LogicalResult ReverseMode::run(ArrayRef<Operation *> forward) {
  for (Operation *op : llvm::reverse(forward))
    if (failed(differentiate(op)))
      return failure();
  return success();
}

void ReverseMode::buildUpdates() {
  // Everything was collected in reverse. Updates are in the order of the declarations of parameters
  // and tables, and the lists of a table in the order of its lookups.
  ModelOp model = getModel(program);
  for (auto parameter : model.getBody().front().getOps<ParameterOp>()) {
    auto name = FlatSymbolRefAttr::get(parameter.getSymNameAttr());
    auto it = parameters.find(name);
    if (it != parameters.end())
      UpdateParameterOp::create(builder, parameter.getLoc(),
                                sumGradients(it->second), name);
  }
  for (auto table : model.getBody().front().getOps<TableOp>()) {
    auto name = FlatSymbolRefAttr::get(table.getSymNameAttr());
    auto it = tables.find(name);
    if (it == tables.end())
      continue;
    SmallVector<Value> ids, rows;
    for (auto [id, gradient] : llvm::reverse(it->second)) {
      ids.push_back(id);
      rows.push_back(gradient);
    }
    UpdateTableOp::create(builder, table.getLoc(), ids, rows, name);
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct Differentiate : genrec::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    SmallVector<ProgramOp> programs(
        getOperation().getBody().front().getOps<ProgramOp>());
    for (ProgramOp program : programs) {
      if (failed(verifyDecomposed(program)) || failed(runOnProgram(program)))
        return signalPassFailure();
      eraseDeadOps(program);
      writeOwnershipContract(program);
    }
  }

  static LogicalResult verifyDecomposed(ProgramOp program) {
    for (Operation &op : program.getBody().front())
      if (isa<CompositeOpInterface>(op))
        return op.emitOpError(
            "is a composite block; run genrec-decompose-blocks first");
    return success();
  }

  LogicalResult runOnProgram(ProgramOp program) {
    // The ops before differentiation, without the sums that reports add.
    SmallVector<Operation *> forward;
    SmallVector<LossOp> lossOps;
    for (Operation &op : program.getBody().front()) {
      if (auto loss = dyn_cast<LossOp>(op))
        lossOps.push_back(loss);
      else
        forward.push_back(&op);
    }
    SmallVector<LoweredLoss> lowered;
    for (LossOp loss : lossOps)
      lowered.push_back(lowerLoss(loss));
    countStatistic(*this, losses, "losses", lowered.size());
    if (program.getMode() != ProgramMode::train)
      return success();

    ReverseMode reverse(program);
    for (const LoweredLoss &loss : lowered) {
      bool wantsWeight = loss.weight && reverse.isActive(loss.weight);
      LossSeeds seeds = buildLossSeeds(reverse.builder, loss, wantsWeight);
      reverse.addGradient(loss.x, seeds.x);
      if (wantsWeight)
        reverse.addGradient(loss.weight, seeds.weight);
    }
    if (failed(reverse.run(forward)))
      return failure();
    reverse.buildUpdates();
    finish(program, reverse);
    return success();
  }

  void finish(ProgramOp program, const ReverseMode &reverse) {
    Block &body = program.getBody().front();
    for (auto detach : llvm::make_early_inc_range(body.getOps<DetachOp>())) {
      detach.getResult().replaceAllUsesWith(detach.getX());
      detach.erase();
    }
    countStatistic(*this, differentiated, "differentiated",
                   reverse.differentiated);
    countStatistic(*this, joined, "joined", reverse.joined);
    countStatistic(*this, parameters, "parameters", reverse.parameters.size());
    countStatistic(*this, tables, "tables", reverse.tables.size());
  }
};
} // namespace
