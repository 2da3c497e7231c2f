//===- SinkFanout.cpp - moves fan-outs after their users ------------------===//
//
// One sweep over a program in order. An op whose operands are spread (by `fanout` or `pair_rows`,
// see Spreads.h) is replaced by the same op before the spread, followed by a spread of its result.
// Later ops then find the new spread.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "Decisions.h"
#include "SplitLinear.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/IRMapping.h"

namespace genrec {
#define GEN_PASS_DEF_SINKFANOUT
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Which ops can move
//===----------------------------------------------------------------------===//

/// True when `op` draws random numbers for each of its rows.
static bool drawsPerRow(Operation *op) {
  auto draw = dyn_cast<DrawOpInterface>(op);
  return draw && draw.drawsPerRow();
}

/// Whether each row of the results depends on the same row of the operands, and the op draws no
/// random numbers.
static bool isRowLocal(Operation *op) {
  if (drawsPerRow(op) || isa<BroadcastRowsOp>(op))
    return false;
  return isa<RowwiseOpInterface>(op) || op->hasTrait<RowLocal>();
}

/// Whether the rows of a list in the results depend on the rows of the same list in the operands,
/// and the op draws no random numbers. For pairs, all lists with the same parent row are copies of
/// the second list, so such an op can run on the second list.
static bool isListLocal(Operation *op) { return !drawsPerRow(op) && op->hasTrait<ListLocal>(); }

/// Whether the result has one row per list.
static bool reducesLists(Operation *op) { return op->hasTrait<ReducesLists>(); }

/// The number of targets per list, if `op` has that operand.
static Value getTargetCounts(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attention.getTarget();
  if (auto block = dyn_cast<HstuBlockOp>(op))
    return block.getTarget();
  return Value();
}

/// The operands that must have the op's own domain.
static SmallVector<Value> getRowOperands(Operation *op) {
  SmallVector<Value> operands;
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (getRowDomain(operand.get().getType()) && operand.get() != getTargetCounts(op) &&
        !(rowwise && rowwise.isGatherSource(operand.getOperandNumber())))
      operands.push_back(operand.get());
  return operands;
}

static SmallVector<Spread> getSpreads(ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](Value value) { return getSpread(value); });
}

namespace {
/// Rewrites one program.
class Sinker {
public:
  Sinker(ProgramOp program, unsigned leastWidth, Decisions &decisions)
      : program(program), spreads(program), tree(spreads.tree), builder(spreads.builder),
        leastWidth(leastWidth), decisions(decisions) {}

  void run();

  unsigned sunk = 0, split = 0, hoisted = 0, stopped = 0;

private:
  void visit(Operation *op);
  void compose(FanoutOp fanout);
  void compose(PairRowsOp beside);
  bool sink(Operation *op);
  bool sinkList(Operation *op);
  void sinkCross(CrossAttentionOp op);
  void sinkPosition(PositionOp position);
  void sinkLength(LengthOp length);
  bool poolWeightGradient(WeightGradientOp op);
  bool hoistSum(Operation *sum, Value x, Spread to);
  Value getExists(Spread ancestor, FlatSymbolRefAttr domain, Location loc);
  void limitLookup(LookupOp lookup, Spread common, FlatSymbolRefAttr domain);
  Operation *cloneOver(Operation *op, ArrayRef<Value> operands, FlatSymbolRefAttr domain);
  void replace(Operation *op, Operation *moved, FlatSymbolRefAttr rows, bool isBeside);
  void noteStopped();
  std::string describeStop(Operation *copy);

  ProgramOp program;
  SpreadBuilder spreads;
  const DomainTree &tree;
  OpBuilder &builder;
  unsigned leastWidth;
  Decisions &decisions;
};
} // namespace

//===----------------------------------------------------------------------===//
// Spreads of spreads
//===----------------------------------------------------------------------===//

/// A fanout of a fanout is one fanout.
void Sinker::compose(FanoutOp fanout) {
  if (auto above = fanout.getX().getDefiningOp<FanoutOp>())
    fanout.getXMutable().assign(above.getX());
}

/// pair_rows of a fanout is a fanout, as ancestors of the second list are ancestors of the pairs.
void Sinker::compose(PairRowsOp beside) {
  auto above = beside.getX().getDefiningOp<FanoutOp>();
  if (!above)
    return;
  builder.setInsertionPoint(beside);
  beside.getResult().replaceAllUsesWith(
      spreads.spread(above.getX(), getRowDomain(beside.getType()), beside.getLoc()));
  beside.erase();
}

//===----------------------------------------------------------------------===//
// Ops on spread operands only
//===----------------------------------------------------------------------===//

/// i1 per row of `ancestor`: whether the spread copies it to any row of `domain`.
Value Sinker::getExists(Spread ancestor, FlatSymbolRefAttr domain, Location loc) {
  Type i64 = builder.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return ConstantOp::create(builder, loc,
                              DenseElementsAttr::get(RankedTensorType::get({}, i64),
                                                     builder.getI64IntegerAttr(value).getValue()));
  };
  // The number of copies is the length of the first list below the same parent row.
  FlatSymbolRefAttr below = domain, above = ancestor.domain;
  if (ancestor.isBeside) {
    below = spreads.getPairs(domain).getFirst().getType().getDomain();
    above = tree.getParent(below);
  }
  Value count;
  if (tree.getParent(below) == above) {
    count =
        LengthOp::create(builder, loc, TypeRange(getRowsType(above, {}, i64)), tree.getValue(below))
            .getResult(0);
  } else {
    Value ones = BroadcastRowsOp::create(builder, loc, getRowsType(below, {}, i64), constant(1),
                                         tree.getValue(below));
    count = spreads.poolTo(ones, above, loc);
  }
  Value exists = CompareOp::create(builder, loc, getRowsType(above, {}, builder.getI1Type()),
                                   CompareKind::gt, count, constant(0));
  return spreads.spread(exists, ancestor.domain, loc);
}

/// Masks rows without copies, as the original lookup never looked them up.
void Sinker::limitLookup(LookupOp lookup, Spread common, FlatSymbolRefAttr domain) {
  if (program.getMode() == ProgramMode::evaluate || program.getMode() == ProgramMode::predict)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(lookup);
  Value exists = getExists(common, domain, lookup.getLoc());
  if (Value valid = lookup.getValid())
    exists = SelectOp::create(builder, lookup.getLoc(), exists.getType(), exists, valid, exists);
  lookup.getValidMutable().assign(exists);
}

/// A clone of `op` on the sources of `operands`, which are rows of `domain`.
Operation *Sinker::cloneOver(Operation *op, ArrayRef<Value> operands, FlatSymbolRefAttr domain) {
  IRMapping mapping;
  for (Value operand : operands)
    if (!mapping.contains(operand))
      mapping.map(operand, spreads.spread(getSpreadSource(operand), domain, op->getLoc()));
  return builder.clone(*op, mapping);
}

/// Gives the results of `moved` rows of `rows`, and spreads them for the users of `op`.
void Sinker::replace(Operation *op, Operation *moved, FlatSymbolRefAttr rows, bool isBeside) {
  for (auto [result, old] : llvm::zip_equal(moved->getResults(), op->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(getRowsType(rows, getRowShape(type), type.getElementType()));
    old.replaceAllUsesWith(spreads.spread(result, getRowDomain(type), op->getLoc(), isBeside));
  }
  op->erase();
  ++sunk;
  RewriteCounter::count("sink-fanout");
}

bool Sinker::sink(Operation *op) {
  if (!isRowLocal(op))
    return false;
  SmallVector<Value> operands = getRowOperands(op);
  Spread common = spreads.getCommonSpread(getSpreads(operands));
  if (!common)
    return false;
  builder.setInsertionPoint(op);
  Operation *moved = cloneOver(op, operands, common.domain);
  if (auto lookup = dyn_cast<LookupOp>(moved))
    limitLookup(lookup, common, getRowDomain(op->getResult(0).getType()));
  replace(op, moved, common.domain, common.isBeside);
  return true;
}

/// Moves an op over the lists of pairs to the second list, if all its operands come from there.
bool Sinker::sinkList(Operation *op) {
  if (!isListLocal(op))
    return false;
  SmallVector<Value> operands = getRowOperands(op);
  Spread common = spreads.getCommonSpread(getSpreads(operands));
  if (!common.isBeside)
    return false;
  FlatSymbolRefAttr first = tree.getParent(getRowDomain(operands.front().getType()));
  FlatSymbolRefAttr parent = tree.getParent(common.domain);
  Value counts = getTargetCounts(op);
  if (counts && spreads.getCommonSpread({getSpread(counts)}).domain != parent)
    return false;
  if (reducesLists(op) && getRowDomain(op->getResult(0).getType()) != first)
    return false;
  builder.setInsertionPoint(op);
  Operation *moved = cloneOver(op, operands, common.domain);
  if (counts)
    moved->replaceUsesOfWith(counts, getSpreadSource(counts));
  if (!reducesLists(op)) {
    replace(op, moved, common.domain, /*isBeside=*/true);
    return true;
  }
  moved->replaceUsesOfWith(tree.getValue(first), tree.getValue(parent));
  replace(op, moved, parent, /*isBeside=*/false);
  return true;
}

/// The keys of each query are a copy of the second list: attends to that list instead.
void Sinker::sinkCross(CrossAttentionOp op) {
  Spread common = spreads.getCommonSpread(getSpreads(SmallVector<Value>{op.getK(), op.getV()}));
  FlatSymbolRefAttr queries = getRowDomain(op.getQ().getType());
  if (!common.isBeside || tree.getParent(getRowDomain(op.getK().getType())) != queries)
    return;
  builder.setInsertionPoint(op);
  op.getKMutable().assign(spreads.spread(getSpreadSource(op.getK()), common.domain, op.getLoc()));
  op.getVMutable().assign(spreads.spread(getSpreadSource(op.getV()), common.domain, op.getLoc()));
  ++sunk;
  RewriteCounter::count("sink-fanout");
}

/// The position of a pair in its list is that of its row in the second list.
void Sinker::sinkPosition(PositionOp position) {
  PairDomainsOp pairs = spreads.getPairs(getRowDomain(position.getType()));
  if (!pairs)
    return;
  builder.setInsertionPoint(position);
  auto moved = cast<PositionOp>(builder.clone(*position));
  moved.getDomainMutable().assign(pairs.getSecond());
  replace(position, moved, pairs.getSecond().getType().getDomain(), /*isBeside=*/true);
}

/// A list of pairs is as long as the second list.
void Sinker::sinkLength(LengthOp length) {
  PairDomainsOp pairs =
      spreads.getPairs(domainOf(length.getChildren().front()));
  if (!pairs)
    return;
  builder.setInsertionPoint(length);
  auto moved = cast<LengthOp>(builder.clone(*length));
  moved.getChildrenMutable().assign(pairs.getSecond());
  replace(length, moved, tree.getParent(pairs.getSecond().getType().getDomain()),
          /*isBeside=*/false);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

bool Sinker::poolWeightGradient(WeightGradientOp op) {
  bool isLeft = !!getSpread(op.getX());
  Value copied = isLeft ? op.getX() : op.getY(), other = isLeft ? op.getY() : op.getX();
  Spread from = getSpread(copied);
  if (!from || (from.isBeside && !getElementTypeOrSelf(other.getType()).isF32()) || op.getBf16())
    return false;
  builder.setInsertionPoint(op);
  Value collected = spreads.collect(other, from, op.getLoc()), source = getSpreadSource(copied);
  op.getXMutable().assign(isLeft ? source : collected);
  op.getYMutable().assign(isLeft ? collected : source);
  ++hoisted;
  RewriteCounter::count("pool-weight-gradient");
  return true;
}

/// A sum of products is the product of the sum of `x`.
bool Sinker::hoistSum(Operation *sum, Value x, Spread to) {
  auto linear = x.getDefiningOp<LinearOp>();
  // With bf16, the sum would be rounded instead of its terms.
  if (!linear || linear.getBias() || !linear->hasOneUse() || linear.getBf16())
    return false;
  builder.setInsertionPoint(sum);
  Value collected = spreads.collect(linear.getX(), to, sum->getLoc());
  auto product = LinearOp::create(builder, linear.getLoc(), sum->getResult(0).getType(), collected,
                                  linear.getWeight(), Value(), linear.getTransposed());
  sum->getResult(0).replaceAllUsesWith(product.getResult());
  sum->erase();
  ++hoisted;
  RewriteCounter::count("hoist-pool");
  return true;
}

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

void Sinker::visit(Operation *op) {
  if (auto fanout = dyn_cast<FanoutOp>(op))
    return compose(fanout);
  if (auto beside = dyn_cast<PairRowsOp>(op))
    return compose(beside);
  if (auto position = dyn_cast<PositionOp>(op))
    return sinkPosition(position);
  if (auto length = dyn_cast<LengthOp>(op))
    return sinkLength(length);
  if (auto attention = dyn_cast<CrossAttentionOp>(op))
    return sinkCross(attention);
  if (auto gradient = dyn_cast<WeightGradientOp>(op)) {
    poolWeightGradient(gradient);
    return;
  }
  if (auto sum = dyn_cast<PairSumOp>(op)) {
    hoistSum(sum, sum.getX(), {getRowDomain(sum.getType()), true});
    return;
  }
  if (sink(op) || sinkList(op))
    return;
  if (auto pool = dyn_cast<PoolOp>(op)) {
    if (pool.getKind() == PoolKind::sum)
      hoistSum(pool, pool.getX(), {getRowDomain(pool.getType()), false});
    return;
  }
  if (auto linear = dyn_cast<LinearOp>(op))
    if (splitLinear(linear, spreads, leastWidth)) {
      ++split;
      RewriteCounter::count("split-linear");
    }
}

/// Why `user` runs over rows of `domain`: the operand that is not spread, or the two that differ.
static std::string describeRows(Operation *user, StringRef domain) {
  SmallVector<Spread> froms = getSpreads(getRowOperands(user));
  for (const Spread &from : froms)
    if (!from)
      return ", which reads rows of @" + domain.str() + " too";
  for (const Spread &from : froms)
    if (from.isBeside != froms.front().isBeside)
      return ", where rows of @" + froms.front().domain.getValue().str() + " and @" +
             from.domain.getValue().str() + " meet";
  return {};
}

/// Why `copy`, a spread, could not be moved further; empty if that costs nothing.
std::string Sinker::describeStop(Operation *copy) {
  StringRef domain = getRowDomain(copy->getResult(0).getType()).getValue();
  for (Operation *user : copy->getUsers()) {
    std::string name = nameForUser(user) + placeForUser(user);
    if (isa<UpdateTableOp>(user))
      continue; // its gradients are per row that was looked up
    if (auto lookup = dyn_cast<LookupOp>(user); lookup && lookup.getValid() == copy->getResult(0))
      continue; // the mask of a lookup that was moved
    if (drawsPerRow(user))
      return name + ", which draws for each row of @" + domain.str();
    if (isa<SinkOpInterface>(user))
      return name + ", which is about rows of @" + domain.str();
    if (!isRowLocal(user))
      return name + ", which works on whole lists of @" + domain.str();
    if (isa<ConcatColumnsOp>(user) && !user->use_empty()) {
      Operation *reader = *user->user_begin();
      std::string text = name + " for " + nameForUser(reader) + placeForUser(reader);
      if (reader->hasTrait<IsColumnProduct>())
        return text + ", whose fanned out columns are fewer than " + std::to_string(leastWidth);
      return text + ", which reads rows of @" + domain.str() + " too";
    }
    if (std::string rows = describeRows(user, domain); !rows.empty())
      return name + rows;
  }
  return {};
}

void Sinker::noteStopped() {
  for (Operation &op : program.getBody().front()) {
    if (!op.hasTrait<FansOut>())
      continue;
    std::string stop = describeStop(&op);
    if (stop.empty())
      continue;
    ++stopped;
    decisions.add((isa<FanoutOp>(op) ? "fanout of " : "copy of ") +
                  nameForUser(op.getOperand(0).getDefiningOp()) +
                  (isa<FanoutOp>(op) ? " to @" : " into pairs @") +
                  getRowDomain(op.getResult(0).getType()).getValue() + " stops at " + stop);
  }
}

void Sinker::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : program.getBody().front())
    ops.push_back(&op);
  for (Operation *op : ops)
    visit(op);
  eraseDeadOps(program);
  noteStopped();
}

namespace {
struct SinkFanout : genrec::impl::SinkFanoutBase<SinkFanout> {
  using SinkFanoutBase::SinkFanoutBase;

  void runOnOperation() override {
    Decisions decisions("sink-fanout");
    decisions.forget(getOperation(), "fanout of");
    decisions.forget(getOperation(), "copy of");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      Sinker sinker(program, leastWidth, decisions);
      sinker.run();
      countStatistic(*this, sunk, "sunk", sinker.sunk);
      countStatistic(*this, split, "split", sinker.split);
      countStatistic(*this, hoisted, "hoisted", sinker.hoisted);
      countStatistic(*this, stopped, "stopped", sinker.stopped);
    }
    decisions.attachTo(getOperation());
  }
};
} // namespace
