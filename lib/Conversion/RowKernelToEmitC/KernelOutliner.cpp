//===- KernelOutliner.cpp - one row kernel as a function ------------------===//

#include "KernelOutliner.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// The nest of loops over rows
//===----------------------------------------------------------------------===//

KernelOutliner::KernelOutliner(RowKernelOp kernel, const ModelIndex &index, KernelTarget &target,
                               OpBuilder &builder)
    : kernel(kernel), index(index), target(target), builder(builder), b(builder, kernel.getLoc()) {
  path = getDomainPath(kernel, kernel.getDomain().getType().getDomain());
  collectPooled();
}

ResultRole KernelOutliner::getRole(unsigned result) const {
  return RowKernelOp(kernel).getKernelResultRole(result);
}

FlatSymbolRefAttr KernelOutliner::getLaunchDomain() const {
  return FlatSymbolRefAttr::get(DomainOp(nest.front().domain).getSymNameAttr());
}

// A chunk should take some tens of microseconds; assumes that lists hold a few rows.
int64_t KernelOutliner::getGrain() const {
  constexpr int64_t kChunkCost = 1 << 18, kMostRows = 4096, kRowsPerList = 16;
  BodySchedule schedule(kernel);
  int64_t cost = schedule.estimateCost();
  for (size_t level = 1; level < nest.size(); ++level)
    cost *= kRowsPerList;
  return std::clamp<int64_t>(kChunkCost / cost, 1, kMostRows);
}

FlatSymbolRefAttr KernelOutliner::getLeafDomain() const {
  return FlatSymbolRefAttr::get(DomainOp(nest.back().domain).getSymNameAttr());
}

Value KernelOutliner::getDomain(const EmitCBuilder &at, FlatSymbolRefAttr domain) {
  const int64_t number = index.getDomain(domain);
  if (!target.takesDomains())
    return getDomainPointer(at, step, number);
  auto *passed = llvm::find(passedDomains, number);
  if (passed == passedDomains.end())
    passed = passedDomains.insert(passed, number);
  const auto others = static_cast<int64_t>(function.arguments.size()) - 1; // but for the step
  return target.getDomain(at, function, others + (passed - passedDomains.begin()));
}

Value KernelOutliner::getRowCount() {
  return b.named("rows").load(b.memberOf(getDomain(b, getLaunchDomain()), "count", b.i64()));
}

Value KernelOutliner::getOffset(Value row, int64_t stride) const {
  return stride == 1 ? row : b.mul(row, b.integer(stride));
}

/// Where the current row of a result begins.
Value KernelOutliner::getResultOffset(unsigned result) {
  return getOffset(nest.back().row, getRowAddress(kernel.getResult(result)).stride);
}

Value KernelOutliner::getSourceRows(RankedTensorType type) {
  if (FlatSymbolRefAttr domain = getRowDomain(type))
    return b.load(b.memberOf(getDomain(b, domain), "count", b.i64()));
  return b.integer(type.getDimSize(0));
}

bool KernelOutliner::isElementwise() {
  auto isScalar = [](Value value) {
    return getRowShape(cast<RankedTensorType>(value.getType())).empty();
  };
  for (auto [input, role] :
       llvm::zip(kernel.getInputs(), kernel.getOperandRoles().getAsRange<OperandRoleAttr>())) {
    Type element = cast<RankedTensorType>(input.getType()).getElementType();
    if (!element.isIntOrFloat() || !isScalar(input) ||
        (role.getValue() != OperandRole::aligned && role.getValue() != OperandRole::shared))
      return false;
  }
  for (unsigned result = 0; result < kernel.getNumResults(); ++result)
    if (getRole(result) != ResultRole::aligned || !isScalar(kernel.getResult(result)))
      return false;
  return nest.size() == 1;
}

void KernelOutliner::enterNest() {
  if (isSplit)
    return enterUnits();
  for (auto [level, loop] : llvm::enumerate(nest)) {
    std::string name = getRowName(loop);
    if (level == 0) {
      loop.row = target.enterRows(b, function, [&] { return getRowCount(); }, name);
      loop.loop = function.rows;
      continue;
    }
    Value above = nest[level - 1].row, list = offsets[loop.domain];
    loop.begin = b.named(loop.domain.getSymName() + "_begin").loadElement(list, above);
    loop.end =
        b.named(loop.domain.getSymName() + "_end").loadElement(list, b.add(above, b.integer(1)));
    loop.first = loop.begin;
    enterLists(level - 1);
    emitc::ForOp op = b.enterFor(loop.begin, loop.end, b.integer(1), name);
    loop.row = op.getInductionVar();
    loop.loop = op;
  }
  cutLists();
}

void KernelOutliner::leaveNest() {
  for (size_t level = nest.size() - 1; level > 0; --level) {
    b.leave(nest[level].loop);
    leaveLists(level - 1);
  }
}

std::string KernelOutliner::getRowName(const NestLoop &loop) const {
  return nest.size() == 1 ? "row" : (DomainOp(loop.domain).getSymName() + "_row").str();
}

//===----------------------------------------------------------------------===//
// Yields
//===----------------------------------------------------------------------===//

class KernelOutliner::Writer : public YieldWriter {
public:
  explicit Writer(KernelOutliner &outer) : outer(outer) {}

  Value getRow(unsigned result) override {
    Value &pointer = rows[result];
    if (!pointer) {
      Value offset = outer.getResultOffset(result);
      pointer = EmitCBuilder::kept(outer.b.named("to").add(outer.resultPointers[result], offset));
    }
    return pointer;
  }

  void writeElement(const EmitCBuilder &b, unsigned result, ElementLoops &at,
                    Value value) override {
    if (const Pooled *pool = find(result))
      combine(b, *pool, b.element(pool->place, at.slot), value);
    else
      outer.target.storeElement(b, rows.lookup(result), 0, at, value);
  }

  void writeScalar(const EmitCBuilder &b, unsigned result, Value value) override {
    if (const Pooled *pool = find(result))
      combine(b, *pool, pool->place, value);
    else
      b.storeElement(outer.resultPointers[result], outer.getResultOffset(result), value);
  }

private:
  const Pooled *find(unsigned result) const {
    auto *it = llvm::find_if(outer.pooled, [&](const Pooled &p) { return p.result == result; });
    return it == outer.pooled.end() ? nullptr : it;
  }

  void combine(const EmitCBuilder &b, const Pooled &pool, Value place, Value value) const {
    const NestLoop &rows = outer.nest.back();
    Value old = b.load(place), result;
    auto choose = [&](Value condition, Value ifTrue, Value ifFalse) -> Value {
      return emitc::ConditionalOp::create(b.builder, b.loc, value.getType(), condition, ifTrue,
                                          ifFalse);
    };
    Value isFirst =
        b.compare(emitc::CmpPredicate::eq, rows.row, rows.first ? rows.first : rows.row);
    switch (pool.kind) {
    case PoolKind::sum:
    case PoolKind::mean:
      result = b.add(old, value);
      break;
    case PoolKind::max: {
      Value isMore = b.compare(emitc::CmpPredicate::gt, value, old);
      Value takes = emitc::LogicalOrOp::create(b.builder, b.loc, b.i1(), isFirst, isMore);
      result = choose(takes, value, old);
      break;
    }
    case PoolKind::first:
      result = choose(isFirst, value, old);
      break;
    case PoolKind::last:
      result = value;
      break;
    }
    b.assign(place, result);
  }

  KernelOutliner &outer;
  llvm::DenseMap<unsigned, Value> rows;
};

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

bool KernelOutliner::hasTableRows(unsigned input) {
  auto role = cast<OperandRoleAttr>(kernel.getOperandRoles()[input]).getValue();
  auto type = cast<RankedTensorType>(kernel.getInputs()[input].getType());
  return role == OperandRole::aligned && isa<RowType>(type.getElementType()) &&
         !statePointers[input] && !kernel.getBody().getArgument(input).use_empty();
}

bool KernelOutliner::isSegmentSum(unsigned input) {
  return isAddedByReader(kernel.getInputs()[input]) &&
         !kernel.getBody().getArgument(input).use_empty();
}

/// Table rows are scattered over more memory than the caches hold, so they are prefetched.
void KernelOutliner::prefetchTableRow(unsigned input, Value row) {
  BlockArgument argument = kernel.getBody().getArgument(input);
  auto type = cast<RowType>(argument.getType());
  int64_t floats = 0, others = 0;
  auto addSlot = [&](int64_t slot, Type accessed, bool isWhole = false) {
    int64_t end = slot > 0 || isWhole ? type.getStateOffset() : type.getValueFloats();
    if (slot > 0)
      end += (slot - 1) * type.getWidth() + cast<VectorType>(accessed).getNumElements();
    floats = std::max(floats, end);
  };
  for (Operation *user : argument.getUsers()) {
    if (auto load = dyn_cast<RowLoadOp>(user))
      addSlot(load.getSlot(), load.getType(), load.getWhole());
    else if (auto store = dyn_cast<RowStoreOp>(user))
      addSlot(store.getSlot(), store.getValue().getType());
  }
  for (unsigned other = 0; other < kernel.getInputs().size(); ++other)
    others += hasTableRows(other);
  target.prefetchRow(b, inputPointers[input], row, tableRowCount, floats, others);
}

/// Whether a body looks at the lower halves of a row that may be hot: lookups do not.
static bool readsLower(Value row) {
  return cast<RowType>(row.getType()).getHot() && llvm::any_of(row.getUsers(), [](Operation *user) {
           auto load = dyn_cast<RowLoadOp>(user);
           return !load || load.getWhole();
         });
}

/// An input of rows of a parameter or, by their handles, of a table.
void KernelOutliner::bindRow(unsigned input, Value row) {
  Value argument = kernel.getBody().getArgument(input);
  Value value = kernel.getInputs()[input], pointer = inputPointers[input];
  auto type = cast<RowType>(cast<RankedTensorType>(value.getType()).getElementType());
  EmitCBuilder named = b.named(getValueName(value) + "_row");
  int64_t width = type.getWidth();
  if (Value states = statePointers[input]) {
    int64_t count = getRowsParameter(value).getOptimizer().getStateCount();
    bindings.rows[argument] = {named.add(pointer, getOffset(row, width)),
                               named.add(states, getOffset(row, width * count)), width};
    return;
  }
  if (hasTableRows(input))
    prefetchTableRow(input, row);
  Value handle = named.loadElement(pointer, row);
  Value values = handle;
  if (type.getElement() == RowElement::bf16)
    values = named.call("kernels::bf16Values", b.pointer(b.opaque("kernels::Bf16")), {handle});
  Value lower, isHot;
  if (readsLower(argument)) {
    lower = named.call("kernels::lowerHalves", b.pointer(b.u16()),
                       {handle, b.integer(type.getLowerOffset())});
    isHot = named.call("kernels::isHot", b.i1(), {handle, lower});
  }
  bindings.rows[argument] = {values, b.add(handle, b.integer(type.getStateOffset())), width, lower,
                             isHot};
}

void KernelOutliner::bindInput(unsigned input) {
  Value argument = kernel.getBody().getArgument(input);
  auto role = cast<OperandRoleAttr>(kernel.getOperandRoles()[input]).getValue();
  Value value = kernel.getInputs()[input], pointer = inputPointers[input];
  auto type = cast<RankedTensorType>(value.getType());
  if (role == OperandRole::source) {
    int64_t stride = type.getRank() == 2 ? getRowAddress(value).stride : 1;
    bindings.sources[argument] = {pointer, stride, getSourceRows(type), std::nullopt, {}};
    return;
  }
  Value row;
  if (role == OperandRole::aligned)
    row = nest.back().row;
  else if (role == OperandRole::ancestor)
    row = getRowIndex(lookupDomain(kernel, getRowDomain(type)));
  else if (role == OperandRole::untruncated)
    row = getUntruncatedRow();
  int64_t stride = row ? getRowAddress(value).stride : 0;
  EmitCBuilder named = b.named(getValueName(value) + "_row");
  Value offset = row ? getOffset(row, stride) : Value();
  if (isa<RowType>(type.getElementType()))
    return bindRow(input, row);
  if (isSegmentSum(input)) {
    assert(role == OperandRole::aligned && "a sum per row of the kernel");
    Value array = sums[input], operands[] = {pointer, row, b.decay(array)};
    // On the CPU the sum of one gradient is that gradient; lanes have theirs in the array.
    if (target.keepsSums()) {
      target.callOnRow(b, "kernels::segmentSum", {}, operands, getRowSize(type));
      bindings.pointers[argument] = array;
    } else {
      bindings.pointers[argument] = EmitCBuilder::constant(target.callOnRow(
          named, "kernels::segmentSum", b.pointer(b.f32()), operands, getRowSize(type)));
    }
    return;
  }
  if (isa<VectorType>(argument.getType()))
    bindings.pointers[argument] =
        offset ? EmitCBuilder::constant(named.add(pointer, offset)) : pointer;
  else
    bindings.scalars[argument] = b.named(getValueName(value) + "_value")
                                     .loadElement(pointer, offset ? offset : b.integer(0));
}

void KernelOutliner::bindInputs(const BodySchedule &schedule,
                                llvm::function_ref<bool(Operation *)> isReader) {
  untruncatedRow = {};
  for (unsigned input = 0; input < kernel.getInputs().size(); ++input)
    if (!schedule.isThere(kernel.getBody().getArgument(input)) &&
        llvm::any_of(kernel.getBody().getArgument(input).getUsers(), isReader))
      bindInput(input);
  unsigned argument = kernel.getInputs().size();
  for (TensorAddress address : accumulators) {
    address.row = nest.back().row;
    bindings.accumulators[kernel.getBody().getArgument(argument++)] = address;
  }
  bindings.step = step;
  if (identities)
    bindings.identity = b.named("identity").loadElement(identities, nest.back().row);
}

void KernelOutliner::hintRowVectors() {
  OpBuilder::InsertionGuard guard(builder);
  // last, as nothing may come between the hint and its loop
  builder.setInsertionPoint(function.rows);
  target.hintVectors(b);
}

/// The rows of factors that products on a device read as they lie end in zeros. Those that are part
/// of joined rows (`plan-memory`) get them with these.
void KernelOutliner::clearBehindFactors() {
  for (auto [number, result] : llvm::enumerate(kernel.getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    int64_t stride = getRowAddress(result).stride;
    if (!type.getElementType().isBF16() || stride != getRowSize(type))
      continue;
    Value rows = getDomain(b, getRowDomain(type));
    b.callVoid("kernels::clearRowsBehind", {rows, resultPointers[number], b.integer(stride)});
  }
}

LogicalResult KernelOutliner::outlineColumns(const BodySchedule &schedule, const ColumnLoop &loop) {
  enterNest();
  bindInputs(schedule, [&](Operation *user) { return loop.ops.contains(user); });
  Writer writer(*this);
  RowBodyEmitter emitter(schedule, target, bindings, writer, function.rows, builder);
  if (failed(emitter.emitColumns(loop)))
    return failure();
  b.leave(function.rows);
  hintRowVectors();
  return success();
}

// Multiples of a vector that is left once are left as their scales, and the coefficients of rows
// that are gathered once are computed as these are read.
void KernelOutliner::leaveOutUnread(BodySchedule &schedule) {
  for (int64_t result : getAccumulatedResults())
    if (std::optional<RowTerms> terms = target.getTerms(result))
      for (AccumulateOp add : terms->adds)
        if (terms->getScale(add))
          schedule.leaveOut(add.getValueMutable());
  if (target.gathersOnce())
    for (GatheredSoftmax &softmax : findGatheredSoftmaxes(kernel))
      schedule.leaveOut(softmax.sum.getCoefficientMutable());
}

FailureOr<emitc::FuncOp> KernelOutliner::outline(StringRef name) {
  BodySchedule schedule(kernel);
  const bool isAllColumns = isElementwise();
  if (target.hasRowVectors() && !isAllColumns && nest.size() == 1)
    schedule.splitColumns();
  leaveOutUnread(schedule);
  if (failed(schedule.analyse()))
    return failure();
  schedule.splitLevels(target.getMostStored());
  schedule.splitLoops(target.getMostStreams());
  SmallVector<int64_t> accumulated = getAccumulatedResults();
  SmallVector<KernelArgument> arguments =
      getKernelArguments(b, kernel.getInputs(), kernel.getResults(), accumulated);
  if (isSplit)
    arguments.push_back({"parts", b.f32(), false});
  function = target.createFunction(b, name, arguments);
  size_t next = 0;
  step = function.arguments[next++];
  for (Value input : kernel.getInputs()) {
    inputPointers.push_back(function.arguments[next++]);
    statePointers.push_back(getRowsParameter(input) ? function.arguments[next++] : Value());
  }
  for (unsigned result = 0; result < kernel.getNumResults(); ++result)
    resultPointers.push_back(llvm::is_contained(accumulated, result) ? Value()
                                                                     : function.arguments[next++]);
  parts = isSplit ? function.arguments[next] : Value();
  clearBehindFactors();
  preparePlaces();
  prepareAccumulators();
  createPooled();
  for (const ColumnLoop &loop : schedule.getColumnLoops())
    if (failed(outlineColumns(schedule, loop)))
      return failure();
  if (!target.spreadsRows())
    clearKeptSums();
  enterNest();
  bindInputs(schedule, [&](Operation *user) { return !schedule.isColumn(user); });
  Writer writer(*this);
  for (unsigned result = 0; result < kernel.getNumResults(); ++result) {
    auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
    if (getRole(result) == ResultRole::aligned && !getRowShape(type).empty())
      writer.getRow(result);
  }
  RowBodyEmitter emitter(schedule, target, bindings, writer, function.rows, builder);
  if (failed(emitter.emit()))
    return failure();
  leaveNest();
  if (target.spreadsRows())
    addRowsSums();
  if (isAllColumns)
    hintRowVectors();
  b.leave(function.rows);
  if (!target.spreadsRows())
    writeKeptSums();
  if (failed(target.finish(b, function)))
    return failure();
  loopCount = emitter.loopCount;
  arrayCount = emitter.arrayCount;
  builder.setInsertionPointAfter(function.function);
  return function.function;
}
