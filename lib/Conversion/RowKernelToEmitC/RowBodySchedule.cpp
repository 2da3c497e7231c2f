//===- RowBodySchedule.cpp - schedule of a kernel's body ------------------===//

#include "RowBodySchedule.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

int64_t genrec::getExtent(Value value) { return cast<VectorType>(value.getType()).getDimSize(0); }

int64_t genrec::getYieldedResult(RowKernelOp kernel, unsigned number) {
  for (auto [index, role] : llvm::enumerate(kernel.getResultRoles().getAsRange<ResultRoleAttr>())) {
    bool isYielded =
        role.getValue() == ResultRole::aligned || role.getValue() == ResultRole::pooled;
    if (isYielded && number-- == 0)
      return index;
  }
  llvm_unreachable("the yield has as many operands as there are such results");
}

static bool isSplat(Operation *op) {
  auto dense = dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
  return dense && dense.isSplat();
}

static bool isSlice(Operation *op) { return isa<RowSliceOp, vector::ExtractStridedSliceOp>(op); }

/// Whether the op reads its operands as whole vectors in memory.
static bool readsWhole(Operation *op, BodyKind kind) {
  return kind == BodyKind::call || isSlice(op) || isa<vector::ExtractOp>(op);
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

/// Upstream ops that can be computed element by element in a loop.
static bool isElementwise(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         OpTrait::hasElementwiseMappableTraits(op);
}

FailureOr<BodyKind> BodySchedule::classify(Operation *op) const {
  if (auto body = dyn_cast<BodyOpInterface>(op))
    return body.getBodyKind();
  bool isVectorOp = op->getNumResults() == 1 && isVector(op->getResult(0));
  if (isa<arith::ConstantOp>(op))
    return !isVectorOp ? BodyKind::scalar : isSplat(op) ? BodyKind::element : BodyKind::address;
  if (!isElementwise(op))
    return op->emitOpError("has no form as a loop over the elements of a row");
  return isVectorOp ? BodyKind::element : BodyKind::scalar;
}

/// Whether `store` overwrites exactly the values that `load` loads.
static bool isStoreOf(RowStoreOp store, RowLoadOp load) {
  return store.getRow() == load.getRow() && store.getSlot() == load.getSlot();
}

/// Whether the body overwrites what `load` reads.
static bool isOverwritten(RowLoadOp load) {
  return llvm::any_of(load->getBlock()->getOps<RowStoreOp>(),
                      [&](RowStoreOp store) { return isStoreOf(store, load); });
}

/// Ops that are as fast to recompute as to load.
static bool isQuick(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::AddIOp,
             arith::SubIOp, arith::SelectOp, arith::CmpFOp, arith::CmpIOp, arith::ConstantOp,
             arith::MaximumFOp, arith::MinimumFOp, vector::BroadcastOp, RowIotaOp>(op);
}

int64_t BodySchedule::getCheapCost(Operation *op) const {
  constexpr int64_t kMostCost = 4;
  if (!isQuick(op))
    return -1;
  int64_t cost = isa<arith::ConstantOp, vector::BroadcastOp, RowIotaOp>(op) ? 0 : 1;
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || !isVector(operand))
      continue;
    if (auto load = dyn_cast<RowLoadOp>(maker); load && isOverwritten(load))
      return -1;
    const Node node = nodes.lookup(maker);
    if (node.kind != BodyKind::element || isa<RowConcatOp>(maker))
      continue;
    if (node.cheapCost < 0)
      return -1;
    cost += node.cheapCost;
  }
  return cost <= kMostCost ? cost : -1;
}

//===----------------------------------------------------------------------===//
// Column ops
//===----------------------------------------------------------------------===//

static bool isColumnMath(Operation *op) {
  bool isMath = op->hasTrait<ElementwiseBody>() || isElementwise(op);
  return isMath && op->getNumResults() == 1 && op->getResult(0).getType().isIntOrFloat();
}

/// Whether column ops can read the value: a scalar of the same row, a shared scalar, or the result
/// of a column op.
bool BodySchedule::isReadByColumns(Value value) const {
  if (Operation *maker = value.getDefiningOp())
    return isa<arith::ConstantOp>(maker) || columns.contains(maker);
  auto argument = cast<BlockArgument>(value);
  if (argument.getArgNumber() >= getKernel().getInputs().size() || !value.getType().isIntOrFloat())
    return false;
  auto role = cast<OperandRoleAttr>(getKernel().getOperandRoles()[argument.getArgNumber()]);
  return role.getValue() == OperandRole::aligned || role.getValue() == OperandRole::shared;
}

/// Whether the user is a column op, or writes the value to an element of a result.
bool BodySchedule::isColumnOrElement(OpOperand &use) const {
  if (auto concat = dyn_cast<RowConcatOp>(use.getOwner()))
    return getJoinTarget(concat).has_value();
  if (!isa<RowYieldOp>(use.getOwner()))
    return columns.contains(use.getOwner());
  unsigned result = getYieldedResult(kernel, use.getOperandNumber());
  return getKernel().getKernelResultRole(result) == ResultRole::aligned;
}

void BodySchedule::splitColumns() {
  constexpr unsigned kLeastOps = 16; // the loop costs more than fewer ops gain
  Block &body = kernel.getBody().front();
  for (Operation &op : body)
    if (!isa<arith::ConstantOp>(op) && isColumnMath(&op))
      columns.insert(&op);
  for (bool isDone = false; !isDone;) {
    isDone = true;
    for (Operation &op : body) {
      if (!columns.contains(&op) ||
          (llvm::all_of(op.getOperands(), [&](Value value) { return isReadByColumns(value); }) &&
           llvm::all_of(op.getUses(), [&](OpOperand &use) { return isColumnOrElement(use); })))
        continue;
      columns.erase(&op);
      isDone = false;
    }
  }
  if (columns.size() < kLeastOps)
    columns.clear();
}

std::vector<ColumnLoop> BodySchedule::getColumnLoops() const {
  constexpr size_t kMostOps = 64;
  std::vector<ColumnLoop> loops;
  llvm::DenseSet<Value> seen;
  for (Operation &op : getKernel().getBody().front()) {
    if (!isa<RowConcatOp>(op) && !op.hasTrait<OpTrait::IsTerminator>())
      continue;
    for (Value value : op.getOperands()) {
      if (!columns.contains(value.getDefiningOp()) || !seen.insert(value).second)
        continue;
      llvm::SetVector<Operation *> needed = getMakers(value);
      if (loops.empty() || loops.back().ops.size() + needed.size() > kMostOps)
        loops.emplace_back();
      loops.back().ops.insert(needed.begin(), needed.end());
      loops.back().written.insert(value);
    }
  }
  return loops;
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

int64_t BodySchedule::getReady(Value value, BodyKind kind) const {
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return 0;
  const Node node = nodes.lookup(maker);
  switch (node.kind) {
  case BodyKind::scalar:
  case BodyKind::address:
    return node.level;
  case BodyKind::element: {
    bool isLater =
        kind == BodyKind::call || (kind == BodyKind::element && !isa<RowConcatOp>(maker));
    return isLater ? node.level : node.level + 1;
  }
  case BodyKind::call:
    return kind == BodyKind::call ? node.level : node.level + 1;
  }
  llvm_unreachable("every kind is handled");
}

void BodySchedule::place(Operation *op, BodyKind kind) {
  int64_t level = 0;
  for (Value operand : op->getOperands())
    level = std::max(level, getReady(operand, kind));
  Node &node = nodes[op];
  node.kind = kind;
  node.level = level;
  if (kind == BodyKind::element && op->getNumResults() == 1 && !isa<RowConcatOp>(op))
    node.cheapCost = getCheapCost(op);
}

BodyLevel &BodySchedule::getLevel(int64_t level) {
  if (levels.size() <= static_cast<size_t>(level))
    levels.resize(level + 1);
  return levels[level];
}

ElementLoop &BodyLevel::getLoop(int64_t extent) {
  for (ElementLoop &loop : loops)
    if (loop.extent == extent)
      return loop;
  loops.push_back({extent, {}, {}});
  return loops.back();
}

void BodySchedule::addSink(Operation *owner, unsigned index, int64_t level) {
  Value value = owner->getOperand(index);
  getLevel(level).getLoop(getExtent(value)).sinks.push_back({owner, index, value});
}

// The first level at which the memory that `address` aliases may be written. Calls run after the
// loops of their level, and loops of one level run in any order.
int64_t BodySchedule::getWritable(Operation *address, bool isWhole) const {
  int64_t level = 0;
  for (Operation *user : address->getUsers()) {
    const Node node = nodes.lookup(user);
    bool isLater = isWhole ? node.kind == BodyKind::call : node.kind != BodyKind::scalar;
    level = std::max(level, isLater ? node.level + 1 : node.level);
    if (isSlice(user))
      level = std::max(level, getWritable(user, /*isWhole=*/false));
  }
  return level;
}

void BodySchedule::placeSinks() {
  Block &body = kernel.getBody().front();
  for (Operation &op : body) {
    if (auto store = dyn_cast<RowStoreOp>(op)) {
      int64_t level = nodes[&op].level;
      for (auto load : body.getOps<RowLoadOp>())
        if (isStoreOf(store, load))
          level = std::max(level, getWritable(load, /*isWhole=*/true));
      addSink(&op, 0, level);
    } else if (isa<AccumulateOp>(op)) {
      if (nodes[&op].kind == BodyKind::element)
        addSink(&op, 1, nodes[&op].level);
    } else if (isa<RowConcatOp>(op) || op.hasTrait<OpTrait::IsTerminator>()) {
      for (OpOperand &operand : op.getOpOperands())
        if (isVector(operand.get()) && !isJoinedInPlace(operand) && !isThere(operand.get()))
          addSink(&op, operand.getOperandNumber(), getReady(operand.get(), BodyKind::element));
    }
  }
}

std::optional<unsigned> BodySchedule::getJoinTarget(RowConcatOp concat) const {
  for (OpOperand &use : concat->getUses()) {
    if (!isa<RowYieldOp>(use.getOwner()))
      continue;
    unsigned result = getYieldedResult(kernel, use.getOperandNumber());
    if (getKernel().getKernelResultRole(result) == ResultRole::aligned)
      return use.getOperandNumber();
  }
  return std::nullopt;
}

bool BodySchedule::isJoinedInPlace(OpOperand &operand) const {
  auto concat = operand.get().getDefiningOp<RowConcatOp>();
  if (!concat || !isa<RowYieldOp>(operand.getOwner()))
    return false;
  std::optional<unsigned> target = getJoinTarget(concat);
  return target && *target == operand.getOperandNumber();
}

bool BodySchedule::isThere(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  RowKernelOp of = getKernel();
  return argument && argument.getArgNumber() < of.getInputs().size() &&
         genrec::isJoinedInPlace(of, of.getInputs()[argument.getArgNumber()]);
}

bool BodySchedule::isStored(Value value) const {
  Operation *maker = value.getDefiningOp();
  if (!maker)
    return true;
  const Node node = nodes.lookup(maker);
  return node.kind == BodyKind::address || node.kind == BodyKind::call || isa<RowConcatOp>(maker) ||
         storedValues.contains(value);
}

bool BodySchedule::isCheap(Value value) const {
  Operation *maker = value.getDefiningOp();
  return maker && nodes.lookup(maker).cheapCost >= 0;
}

// A loop's value is stored in a local array if a call reads all of it, or if another loop needs it
// and cannot recompute it cheaply.
void BodySchedule::storeWhereNeeded() {
  // The levels at which an element op is evaluated: its own, and those that recompute it. Walks
  // backwards, so that users come first.
  llvm::DenseMap<Value, llvm::SmallDenseSet<int64_t>> evaluated;
  auto use = [&](Value value, int64_t level) {
    Operation *maker = value.getDefiningOp();
    if (!maker || !isVector(value) || nodes[maker].kind != BodyKind::element ||
        isa<RowConcatOp>(maker))
      return;
    if (nodes[maker].cheapCost < 0 && nodes[maker].level != level)
      storedValues.insert(value);
    else
      evaluated[value].insert(level);
  };
  for (auto [level, entry] : llvm::enumerate(levels))
    for (ElementLoop &loop : entry.loops)
      for (ElementSink &sink : loop.sinks)
        use(sink.value, level);
  for (Operation &op : llvm::reverse(kernel.getBody().front())) {
    const Node node = nodes.lookup(&op);
    if (readsWhole(&op, node.kind)) {
      for (OpOperand &operand : op.getOpOperands())
        if (isVector(operand.get()) && !isStored(operand.get()) && !unread.contains(&operand))
          storedValues.insert(operand.get());
      continue;
    }
    if (node.kind != BodyKind::element || op.getNumResults() != 1 || isa<RowConcatOp>(op))
      continue;
    Value result = op.getResult(0);
    llvm::SmallDenseSet<int64_t> at = evaluated.lookup(result);
    if (storedValues.contains(result))
      at.insert(node.level);
    for (int64_t level : at)
      for (Value operand : op.getOperands())
        use(operand, level);
  }
  for (Operation &op : kernel.getBody().front())
    for (Value result : op.getResults())
      if (storedValues.contains(result))
        getLevel(nodes[&op].level).getLoop(getExtent(result)).stored.push_back(result);
}

LogicalResult BodySchedule::analyse() {
  Block &body = kernel.getBody().front();
  for (Operation &op : body.without_terminator()) {
    FailureOr<BodyKind> kind = classify(&op);
    if (failed(kind))
      return failure();
    place(&op, *kind);
    if (isColumn(&op))
      continue;
    BodyLevel &level = getLevel(nodes[&op].level);
    if (*kind == BodyKind::scalar || *kind == BodyKind::address)
      level.scalars.push_back(&op);
    else if (*kind == BodyKind::call)
      level.calls.push_back(&op);
    else if (auto concat = dyn_cast<RowConcatOp>(op))
      level.concats.push_back(concat);
  }
  getLevel(0);
  placeSinks();
  storeWhereNeeded();
  return success();
}

int64_t BodySchedule::estimateCost() const {
  int64_t cost = 4;
  for (Operation &op : getKernel().getBody().front()) {
    int64_t extent = 1;
    for (Value value : llvm::concat<Value>(op.getOperands(), op.getResults()))
      if (isVector(value))
        extent = std::max(extent, getExtent(value));
    int64_t each = isa<math::MathDialect>(op.getDialect()) ? 8 : 1;
    // Gathers rows by a vector of indices.
    auto body = dyn_cast<BodyOpInterface>(op);
    auto accumulate = dyn_cast<AccumulateOp>(op);
    const bool isOurs = op.getDialect() == getKernel()->getDialect();
    if (isOurs && body && body.getBodyKind() == BodyKind::call &&
        (!accumulate || accumulate.getCoefficient()))
      each = 64;
    cost += extent * each;
  }
  return cost;
}
