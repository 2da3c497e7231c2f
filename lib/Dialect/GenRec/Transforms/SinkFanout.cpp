//===- SinkFanout.cpp - once per request what impressions share -----------===//
//
// One sweep over a program in its order: an op whose operands are fanned out is
// replaced by the op on the ancestor's rows and a fanout behind it, which the
// ops after it find in turn.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "Decisions.h"
#include "DomainTree.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_SINKFANOUT
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

static FanoutOp getFanout(Value value) { return value.getDefiningOp<FanoutOp>(); }

/// True when a row of the results follows from the same row of the operands, and
/// nothing is drawn for it.
static bool isRowLocal(Operation *op) {
  if (op->hasAttr("stream") || isa<BroadcastRowsOp>(op))
    return false;
  return isa<RowwiseOpInterface, LinearOp, LookupOp, LayerNormOp, RmsNormOp, L2NormalizeOp,
             BceWithLogitsOp>(op);
}

/// The operands that must be rows of the op's own domain.
static SmallVector<OpOperand *> getRowOperands(Operation *op) {
  SmallVector<OpOperand *> operands;
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (getRowDomain(operand.get().getType()) &&
        !(rowwise && rowwise.isGatherSource(operand.getOperandNumber())))
      operands.push_back(&operand);
  return operands;
}

namespace {
/// The rewrites of one program.
class Sinker {
public:
  Sinker(ProgramOp program, unsigned leastWidth, Decisions &decisions)
      : program(program), tree(program), leastWidth(leastWidth), decisions(decisions),
        builder(program.getContext()) {}

  void run();

  unsigned sunk = 0, split = 0, hoisted = 0, stopped = 0;

private:
  void visit(Operation *op);
  bool compose(FanoutOp fanout);
  bool sink(Operation *op);
  bool splitLinear(LinearOp linear);
  bool poolWeightGradient(WeightGradientOp op);
  bool hoistPool(PoolOp pool);
  Value fanOut(Value x, Value domain, Location loc);
  Value poolTo(Value x, Value domain, Location loc);
  Value getExists(FlatSymbolRefAttr ancestor, FlatSymbolRefAttr domain, Location loc);
  void noteStopped();
  std::string describeStop(FanoutOp fanout);

  ProgramOp program;
  DomainTree tree;
  unsigned leastWidth;
  Decisions &decisions;
  OpBuilder builder;
};
} // namespace

/// `x` as rows of `domain`, its own or one below it.
Value Sinker::fanOut(Value x, Value domain, Location loc) {
  FlatSymbolRefAttr to = cast<DomainType>(domain.getType()).getDomain();
  auto type = cast<RankedTensorType>(x.getType());
  if (getRowDomain(type) == to)
    return x;
  return FanoutOp::create(builder, loc, getRowsType(to, getRowShape(type), type.getElementType()),
                          x, domain);
}

Value Sinker::poolTo(Value x, Value domain, Location loc) {
  FlatSymbolRefAttr to = cast<DomainType>(domain.getType()).getDomain();
  auto type = cast<RankedTensorType>(x.getType());
  return PoolOp::create(builder, loc, getRowsType(to, getRowShape(type), type.getElementType()), x,
                        domain, PoolKind::sum);
}

//===----------------------------------------------------------------------===//
// Ops on fanned out rows alone
//===----------------------------------------------------------------------===//

/// A fanout of a fanout is one.
bool Sinker::compose(FanoutOp fanout) {
  FanoutOp above = getFanout(fanout.getX());
  if (!above)
    return false;
  fanout.getXMutable().assign(above.getX());
  return true;
}

/// i1 per row of `ancestor`: whether any row of `domain` lies below it.
Value Sinker::getExists(FlatSymbolRefAttr ancestor, FlatSymbolRefAttr domain, Location loc) {
  Type i64 = builder.getI64Type();
  RankedTensorType counts = getRowsType(ancestor, {}, i64);
  Value count;
  if (tree.getParent(domain) == ancestor) {
    count = LengthOp::create(builder, loc, counts, tree.getValue(domain));
  } else {
    auto one = DenseElementsAttr::get(RankedTensorType::get({}, i64),
                                      builder.getI64IntegerAttr(1).getValue());
    Value ones =
        BroadcastRowsOp::create(builder, loc, getRowsType(domain, {}, i64),
                                ConstantOp::create(builder, loc, one), tree.getValue(domain));
    count = poolTo(ones, tree.getValue(ancestor), loc);
  }
  auto none = DenseElementsAttr::get(RankedTensorType::get({}, i64),
                                     builder.getI64IntegerAttr(0).getValue());
  return CompareOp::create(builder, loc, getRowsType(ancestor, {}, builder.getI1Type()),
                           CompareKind::gt, count, ConstantOp::create(builder, loc, none));
}

bool Sinker::sink(Operation *op) {
  if (!isRowLocal(op))
    return false;
  SmallVector<OpOperand *> operands = getRowOperands(op);
  if (operands.empty() || !llvm::all_of(operands, [](OpOperand *o) { return getFanout(o->get()); }))
    return false;
  FlatSymbolRefAttr domain = getRowDomain(op->getResult(0).getType()), ancestor;
  for (OpOperand *operand : operands) {
    FlatSymbolRefAttr from = getRowDomain(getFanout(operand->get()).getX().getType());
    if (!ancestor || tree.isAbove(ancestor, from))
      ancestor = from;
  }
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  Value target = tree.getValue(ancestor), below = tree.getValue(domain);
  IRMapping mapping;
  for (OpOperand *operand : operands)
    mapping.map(operand->get(), fanOut(getFanout(operand->get()).getX(), target, loc));
  Operation *moved = builder.clone(*op, mapping);
  for (OpResult result : moved->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(getRowsType(ancestor, getRowShape(type), type.getElementType()));
  }
  // A row without descendants was never looked up.
  auto lookup = dyn_cast<LookupOp>(moved);
  if (lookup && program.getMode() != ProgramMode::evaluate &&
      program.getMode() != ProgramMode::predict) {
    builder.setInsertionPoint(moved);
    Value exists = getExists(ancestor, domain, loc);
    if (Value valid = lookup.getValid())
      exists = SelectOp::create(builder, loc, exists.getType(), exists, valid, exists);
    lookup.getValidMutable().assign(exists);
    builder.setInsertionPointAfter(moved);
  }
  for (auto [result, old] : llvm::zip_equal(moved->getResults(), op->getResults()))
    old.replaceAllUsesWith(fanOut(result, below, loc));
  op->erase();
  ++sunk;
  RewriteCounter::count("sink-fanout");
  return true;
}

//===----------------------------------------------------------------------===//
// Linear layers over joined columns
//===----------------------------------------------------------------------===//

namespace {
/// Neighbouring columns of one domain, and their width together.
struct Run {
  FlatSymbolRefAttr domain;
  SmallVector<Value> parts;
  int64_t width = 0;
};
} // namespace

/// The columns of `value` in order: those of joined columns for themselves.
static void collectParts(Value value, SmallVectorImpl<Value> &parts) {
  if (auto concat = value.getDefiningOp<ConcatColumnsOp>())
    for (Value part : concat.getParts())
      collectParts(part, parts);
  else
    parts.push_back(value);
}

static SmallVector<Run> collectRuns(Value x) {
  SmallVector<Value> parts;
  collectParts(x, parts);
  SmallVector<Run> runs;
  for (Value part : parts) {
    int64_t width = getRowSize(part.getType());
    if (FanoutOp fanout = getFanout(part))
      part = fanout.getX();
    FlatSymbolRefAttr domain = getRowDomain(part.getType());
    if (runs.empty() || runs.back().domain != domain)
      runs.push_back({domain, {}, 0});
    runs.back().parts.push_back(part);
    runs.back().width += width;
  }
  return runs;
}

bool Sinker::splitLinear(LinearOp linear) {
  if (linear.getTransposed() || !linear.getX().getDefiningOp<ConcatColumnsOp>())
    return false;
  FlatSymbolRefAttr own = getRowDomain(linear.getX().getType());
  SmallVector<Run> runs = collectRuns(linear.getX());
  int64_t fanned = 0;
  for (const Run &run : runs)
    fanned += run.domain == own ? 0 : run.width;
  if (fanned < static_cast<int64_t>(leastWidth) || runs.size() < 2)
    return false;

  Location loc = linear.getLoc();
  builder.setInsertionPoint(linear);
  auto type = cast<RankedTensorType>(linear.getResult().getType());
  Type element = type.getElementType();
  int64_t columns = getRowSize(type);
  SmallVector<Type> types;
  for (const Run &run : runs)
    types.push_back(RankedTensorType::get({run.width, columns}, element));
  auto weights = SplitSharedOp::create(builder, loc, types, linear.getWeight());
  // Per domain the sum of its products, the uppermost first.
  llvm::MapVector<Attribute, Value> sums;
  Value bias = linear.getBias();
  for (auto [run, weight] : llvm::zip_equal(runs, weights.getParts())) {
    Value x = run.parts.front();
    if (run.parts.size() > 1 || getRowShape(x.getType()).empty())
      x = ConcatColumnsOp::create(builder, loc, getRowsType(run.domain, {run.width}, element),
                                  run.parts);
    RankedTensorType rows = getRowsType(run.domain, {columns}, element);
    bool takesBias = bias && run.domain != own;
    Value product =
        LinearOp::create(builder, loc, rows, x, weight, takesBias ? bias : Value(), false);
    if (takesBias)
      bias = Value();
    Value &sum = sums[run.domain];
    sum = sum ? AddOp::create(builder, loc, rows, sum, product).getResult() : product;
  }
  SmallVector<std::pair<Attribute, Value>> ordered = sums.takeVector();
  llvm::sort(ordered, [&](auto &a, auto &b) {
    return tree.isAbove(cast<FlatSymbolRefAttr>(a.first), cast<FlatSymbolRefAttr>(b.first));
  });
  Value total;
  for (auto &[domain, sum] : ordered) {
    if (total) {
      Value above = fanOut(total, tree.getValue(cast<FlatSymbolRefAttr>(domain)), loc);
      total = AddOp::create(builder, loc, sum.getType(), above, sum);
    } else {
      total = sum;
    }
  }
  linear.getResult().replaceAllUsesWith(fanOut(total, tree.getValue(own), loc));
  linear.erase();
  ++split;
  RewriteCounter::count("split-linear");
  return true;
}

//===----------------------------------------------------------------------===//
// Backwards
//===----------------------------------------------------------------------===//

bool Sinker::poolWeightGradient(WeightGradientOp op) {
  FanoutOp x = getFanout(op.getX()), y = getFanout(op.getY());
  if (!x && !y)
    return false;
  builder.setInsertionPoint(op);
  Value from = x ? x.getX() : y.getX(), other = x ? op.getY() : op.getX();
  Value pooled = poolTo(other, tree.getValue(getRowDomain(from.getType())), op.getLoc());
  op.getXMutable().assign(x ? from : pooled);
  op.getYMutable().assign(x ? pooled : from);
  ++hoisted;
  RewriteCounter::count("pool-weight-gradient");
  return true;
}

bool Sinker::hoistPool(PoolOp pool) {
  auto linear = pool.getX().getDefiningOp<LinearOp>();
  if (pool.getKind() != PoolKind::sum || !linear || linear.getBias() || !linear->hasOneUse())
    return false;
  builder.setInsertionPoint(pool);
  Value pooled = poolTo(linear.getX(), pool.getDomain(), pool.getLoc());
  auto product = LinearOp::create(builder, linear.getLoc(), pool.getType(), pooled,
                                  linear.getWeight(), Value(), linear.getTransposed());
  pool.getResult().replaceAllUsesWith(product.getResult());
  pool.erase();
  ++hoisted;
  RewriteCounter::count("hoist-pool");
  return true;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

void Sinker::visit(Operation *op) {
  if (auto fanout = dyn_cast<FanoutOp>(op)) {
    compose(fanout);
    return;
  }
  if (auto gradient = dyn_cast<WeightGradientOp>(op)) {
    poolWeightGradient(gradient);
    return;
  }
  if (auto pool = dyn_cast<PoolOp>(op)) {
    hoistPool(pool);
    return;
  }
  if (sink(op))
    return;
  if (auto linear = dyn_cast<LinearOp>(op))
    splitLinear(linear);
}

/// Why a fanout could not go on; empty where it costs nothing.
std::string Sinker::describeStop(FanoutOp fanout) {
  StringRef domain = getRowDomain(fanout.getType()).getValue();
  for (Operation *user : fanout->getUsers()) {
    std::string name = nameForUser(user);
    if (isa<UpdateTableOp>(user))
      continue; // a gradient per row that was looked up
    if (user->hasAttr("stream"))
      return name + ", which draws for each row of @" + domain.str();
    if (isa<LossOp, ReportLossOp, MetricOp, OutputOp>(user))
      return name + ", which is about rows of @" + domain.str();
    if (!isRowLocal(user))
      return name + ", which works on whole lists of @" + domain.str();
    if (isa<ConcatColumnsOp>(user) && !user->use_empty()) {
      Operation *reader = *user->user_begin();
      std::string text = name + " for " + nameForUser(reader);
      if (isa<LinearOp, WeightGradientOp>(reader))
        return text + ", whose fanned out columns are fewer than " + std::to_string(leastWidth);
      return text + ", which reads rows of @" + domain.str() + " too";
    }
    for (OpOperand *operand : getRowOperands(user))
      if (!getFanout(operand->get()))
        return name + ", which reads rows of @" + domain.str() + " too";
  }
  return {};
}

void Sinker::noteStopped() {
  for (auto fanout : program.getBody().front().getOps<FanoutOp>()) {
    std::string stop = describeStop(fanout);
    if (stop.empty())
      continue;
    ++stopped;
    Operation *from = fanout.getX().getDefiningOp();
    decisions.add("fanout of " + nameForUser(from) + " to @" +
                  getRowDomain(fanout.getType()).getValue() + " stops at " + stop);
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
