//===- RowBodyEmitter.cpp - emits loops from a body's schedule ------------===//

#include "RowBodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value RowBodyEmitter::makeArray(Value value, Type element) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(arrayAnchor);
  EmitCBuilder b(builder, value.getLoc());
  element = element ? element : getElementTypeOrSelf(value.getType());
  Value array = target.createArray(b, element, getExtent(value), target.isShared(value));
  bindings.pointers[value] = array;
  ++arrayCount;
  return array;
}

Value RowBodyEmitter::getPointer(Value value) {
  EmitCBuilder b(builder, value.getLoc());
  return b.decay(bindings.pointers.lookup(value));
}

Value RowBodyEmitter::getSlot(Value row, int64_t slot, Location loc) {
  const RowHandle &handle = getHandle(row);
  EmitCBuilder b(builder, loc);
  if (slot == 0)
    return handle.value;
  int64_t offset = (slot - 1) * handle.stateStride;
  return offset ? b.add(handle.states, b.integer(offset)) : handle.states;
}

/// Whether dropout keeps the element with random word `word`. The runtime has the rule, for this op
/// and for attention.
/// attention.
static Value emitKeeps(const EmitCBuilder &b, KeepMaskOp mask, Value word) {
  Value rate = b.floating(mask.getRate().convertToDouble(), b.f64());
  return b.call("kernels::keeps", b.i1(),
                {word, b.call("kernels::keepThreshold", b.u32(), {rate})});
}

void RowBodyEmitter::emitDraw(Operation *op) {
  EmitCBuilder b = at(op);
  Value result = op->getResult(0);
  if (auto mask = dyn_cast<KeepMaskOp>(op)) {
    makeArray(result, b.u32());
    target.callOnRow(b, "kernels::fillBits", {},
                     {getStream(b, mask.getStream()), bindings.identity, getPointer(result)},
                     getExtent(result));
    return;
  }
  if (auto uniform = dyn_cast<RowUniformOp>(op)) {
    makeArray(result);
    target.callOnRow(b, "kernels::fillUniform", {},
                     {getStream(b, uniform.getStream()), bindings.identity, getPointer(result)},
                     getExtent(result));
    return;
  }
  if (auto bits = dyn_cast<RowBitsOp>(op)) {
    makeArray(result, b.u16());
    target.callOnRow(b, "kernels::fillHalves", {},
                     {getStream(b, bits.getStream()), bindings.identity, getPointer(result)},
                     getExtent(result));
    return;
  }
  auto draw = cast<RandomIndexOp>(op);
  makeArray(result);
  Value identity = draw.getShared() ? b.integer(0, b.u64()) : bindings.identity;
  target.callOnRow(b, "kernels::drawRows", {},
                   {getStream(b, draw.getStream()), identity,
                    bindings.sources.lookup(draw.getSource()).rows, b.integer(getExtent(result)),
                    getPointer(result)});
}

void RowBodyEmitter::emitAddress(Operation *op) {
  EmitCBuilder b = at(op);
  Value result = op->getResult(0), pointer;
  if (isa<DrawOpInterface>(op)) {
    emitDraw(op);
    return;
  }
  if (auto load = dyn_cast<RowLoadOp>(op)) {
    pointer = getSlot(load.getRow(), load.getSlot(), op->getLoc());
  } else if (auto gather = dyn_cast<RowGatherOp>(op)) {
    TensorAddress source = bindings.sources.lookup(gather.getSource());
    Value index = getScalar(gather.getIndex());
    Type type = source.pointer.getType();
    if (gather.getClamp()) {
      Value row = b.call("kernels::clampIndex", b.i64(), {index, source.rows});
      pointer = EmitCBuilder::constant(b.add(source.pointer, b.mul(row, b.integer(source.stride))));
    } else {
      pointer = EmitCBuilder::constant(b.call("kernels::rowAt", type,
                                              {source.pointer, b.integer(source.stride), index},
                                              {b.templateInteger(getExtent(result))}));
    }
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    pointer = b.constantTable(cast<DenseElementsAttr>(constant.getValue()), "values");
  } else {
    int64_t offset = 0;
    if (auto slice = dyn_cast<RowSliceOp>(op))
      offset = slice.getOffset();
    else
      offset = cast<IntegerAttr>(cast<vector::ExtractStridedSliceOp>(op).getOffsets()[0]).getInt();
    Value base = getPointer(op->getOperand(0));
    // Slices are never written.
    pointer = offset ? EmitCBuilder::constant(b.add(base, b.integer(offset))) : base;
  }
  bindings.pointers[result] = pointer;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static StringRef getHashCallee(HashKind kind) {
  switch (kind) {
  case HashKind::xxh3:
    return "kernels::hashXxh3";
  case HashKind::murmur3:
    return "kernels::hashMurmur3";
  case HashKind::farmhash64:
    return "kernels::hashFarm64";
  }
  llvm_unreachable("every hash is handled");
}

FailureOr<Value> RowBodyEmitter::scalarize(Operation *op, ValueRange operands) {
  EmitCBuilder b = at(op);
  if (auto gather = dyn_cast<RowGatherOp>(op)) {
    TensorAddress source = bindings.sources.lookup(gather.getSource());
    Type element = getElementTypeOrSelf(gather.getType());
    Value index = operands[1];
    if (gather.getClamp())
      return b.loadElement(source.pointer,
                           b.call("kernels::clampIndex", b.i64(), {index, source.rows}));
    return b.call("kernels::elementAt", element, {source.pointer, index});
  }
  if (auto hash = dyn_cast<RowHashOp>(op)) {
    return b.call(getHashCallee(hash.getKind()), b.i64(),
                  {operands[0], b.integer(hash.getSeed()), b.integer(hash.getBits())});
  }
  if (auto bucketize = dyn_cast<RowBucketizeOp>(op)) {
    ArrayRef<double> edges = bucketize.getEdges();
    auto type = VectorType::get({static_cast<int64_t>(edges.size())}, builder.getF64Type());
    Value table = b.constantTable(DenseElementsAttr::get(type, edges), "edges");
    return b.call("kernels::bucketAmong", b.i64(), {operands[0], table},
                  {b.templateInteger(static_cast<int64_t>(edges.size()))});
  }
  if (auto search = dyn_cast<RowSearchOp>(op)) {
    TensorAddress edges = bindings.sources.lookup(search.getEdges());
    return b.call("kernels::bucketOf", b.i64(), {operands[0], edges.pointer, edges.rows});
  }
  // What a product reads as a factor.
  if (isa<arith::TruncFOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).isBF16())
    return b.call("kernels::roundedFactor", b.opaque("kernels::Bf16"), operands);
  if (isa<arith::ExtFOp>(op) && getElementTypeOrSelf(op->getOperand(0).getType()).isBF16())
    return b.call("kernels::widened", b.f32(), operands);
  if (isa<RowRoundOp>(op))
    return b.call("kernels::roundedBy", b.f32(), operands);
  if (isa<arith::RemSIOp>(op) && operands[0].getType().isInteger(64)) {
    APInt divisor;
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&divisor)))
      return b.call("kernels::remainderBy", b.i64(), operands);
    if (divisor.isStrictlyPositive())
      return b.call("kernels::remainder", b.i64(), {operands[0]},
                    {b.templateInteger(divisor.getSExtValue())});
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  for (Type type : op->getResultTypes())
    state.addTypes(getElementTypeOrSelf(type));
  state.addAttributes(op->getAttrDictionary().getValue());
  return builder.create(state)->getResult(0);
}

FailureOr<Value> RowBodyEmitter::compute(Operation *op, ElementLoops &at, Memo &memo) {
  EmitCBuilder b(builder, op->getLoc());
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    return arith::ConstantOp::create(builder, op->getLoc(), value).getResult();
  }
  if (isa<RowIotaOp>(op))
    return b.cast(at.index, element);
  if (auto load = dyn_cast<RowLoadOp>(op)) {
    Value slot = getSlot(load.getRow(), load.getSlot(), op->getLoc());
    Value stored = target.loadElement(b, slot, at);
    if (load.getWhole()) {
      const RowHandle &handle = getHandle(load.getRow());
      Value lower = target.loadElement(b, handle.lower, at);
      return b.call("kernels::joined", element, {stored, lower, handle.isHot});
    }
    return b.call("kernels::widened", element, {stored});
  }
  if (isa<KeepMaskOp>(op))
    llvm_unreachable("a mask is evaluated from its words");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    // Tensors to gather from are passed on unchanged.
    if (isa<RankedTensorType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    FailureOr<Value> value = evaluate(operand, at, memo);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  return isa<vector::BroadcastOp>(op) ? operands[0] : scalarize(op, operands);
}

FailureOr<Value> RowBodyEmitter::evaluate(Value value, ElementLoops &at, Memo &memo) {
  if (!isVector(value))
    return getScalar(value);
  if (Value known = memo.lookup(value))
    return known;
  EmitCBuilder b(builder, value.getLoc());
  Operation *maker = value.getDefiningOp();
  if (auto mask = dyn_cast_or_null<KeepMaskOp>(maker)) {
    Value word = target.loadElement(b, bindings.pointers.lookup(value), at);
    return memo[value] = emitKeeps(b, mask, word);
  }
  if (schedule.isStored(value))
    return memo[value] = target.loadElement(b, bindings.pointers.lookup(value), at);
  FailureOr<Value> result = compute(maker, at, memo);
  if (succeeded(result))
    memo[value] = *result;
  return result;
}

void RowBodyEmitter::writeSink(const ElementSink &sink, Value slot, ElementLoops &at, Value value) {
  EmitCBuilder b(builder, sink.owner->getLoc());
  if (auto store = dyn_cast<RowStoreOp>(sink.owner)) {
    Type stored = cast<emitc::PointerType>(slot.getType()).getPointee();
    if (const RowHandle &handle = getHandle(store.getRow()); handle.lower && store.getSlot() == 0) {
      Value lower = b.call("kernels::lowerHalf", b.u16(), {value, handle.isHot});
      target.storeElement(b, handle.lower, 0, at, lower);
      value = b.call("kernels::upperHalf", stored, {value, handle.isHot});
    } else if (stored != value.getType()) {
      bool isRounded = sink.value.getDefiningOp<RowRoundOp>() != nullptr;
      value = b.call(isRounded ? "kernels::narrowed" : "kernels::nearestBf16", stored, {value});
    }
    target.storeElement(b, slot, 0, at, value);
  } else if (auto accumulate = dyn_cast<AccumulateOp>(sink.owner)) {
    TensorAddress sums = bindings.accumulators.lookup(accumulate.getAccumulator());
    if (!sums.isOfRow)
      value = b.add(target.loadElement(b, sums.pointer, at), value);
    target.storeElement(b, sums.pointer, 0, at, value);
  } else if (auto concat = dyn_cast<RowConcatOp>(sink.owner)) {
    int64_t offset = 0;
    for (Value part : concat.getParts().take_front(sink.index))
      offset += isVector(part) ? getExtent(part) : 1;
    target.storeElement(b, bindings.pointers.lookup(concat.getResult()), offset, at, value);
  } else {
    writer.writeElement(b, getYieldedResult(schedule.getKernel(), sink.index), at, value);
  }
}

LogicalResult RowBodyEmitter::emitLoop(const ElementLoop &loop) {
  // Arrays are created and addresses computed outside of the loop.
  for (Value value : loop.stored)
    makeArray(value);
  SmallVector<Value> slots;
  for (const ElementSink &sink : loop.sinks) {
    auto store = dyn_cast<RowStoreOp>(sink.owner);
    slots.push_back(store ? getSlot(store.getRow(), store.getSlot(), store.getLoc()) : Value());
  }
  EmitCBuilder b(builder,
                 loop.stored.empty() ? loop.sinks[0].value.getLoc() : loop.stored[0].getLoc());
  ElementLoops at = target.enterElements(b, loop.extent);
  ++loopCount;
  Memo memo;
  for (Value value : loop.stored) {
    FailureOr<Value> result = compute(value.getDefiningOp(), at, memo);
    if (failed(result))
      return failure();
    memo[value] = *result;
    target.storeElement(EmitCBuilder(builder, value.getLoc()), bindings.pointers.lookup(value), 0,
                        at, *result);
  }
  // Reads everything before writing anything, as a row may be both read and written.
  SmallVector<Value> values;
  for (const ElementSink &sink : loop.sinks) {
    FailureOr<Value> value = evaluate(sink.value, at, memo);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  for (auto [sink, slot, value] : llvm::zip(loop.sinks, slots, values))
    writeSink(sink, slot, at, value);
  target.leaveElements(b, at);
  return success();
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value RowBodyEmitter::getStream(const EmitCBuilder &b, int64_t stream) {
  return b.call("kernels::randomStream", b.opaque("kernels::RandomStream"),
                {bindings.step, b.integer(stream, b.u32())});
}

LogicalResult RowBodyEmitter::emitScalar(Operation *op) {
  EmitCBuilder b = at(op);
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    TensorAddress sums = bindings.accumulators.lookup(accumulate.getAccumulator());
    // Each lane keeps an array of its own.
    const bool isOwn = target.keepsSums() && !sums.isOfRow;
    Operation *guard = isOwn ? nullptr : target.enterScalarWrite(b);
    Value place = b.element(sums.pointer, b.integer(0)), value = getScalar(accumulate.getValue());
    b.assign(place, sums.isOfRow ? value : b.add(b.load(place), value));
    if (guard)
      b.leave(guard);
    return success();
  }
  Value result = op->getResult(0);
  auto drawWord = [&](int64_t stream) {
    return b.call("kernels::philoxWord", b.u32(),
                  {getStream(b, stream), bindings.identity, b.integer(0, b.u64())});
  };
  if (auto mask = dyn_cast<KeepMaskOp>(op)) {
    bindings.scalars[result] = emitKeeps(b, mask, drawWord(mask.getStream()));
    return success();
  }
  if (auto uniform = dyn_cast<RowUniformOp>(op)) {
    bindings.scalars[result] =
        b.call("kernels::uniformFromBits", b.f32(), {drawWord(uniform.getStream())});
    return success();
  }
  if (auto extract = dyn_cast<vector::ExtractOp>(op)) {
    if (extract.getStaticPosition().size() != 1 || !extract.getDynamicPosition().empty())
      return op->emitOpError("must take one element at a constant position");
    bindings.scalars[result] = target.extractElement(b, bindings.pointers.lookup(op->getOperand(0)),
                                                     extract.getStaticPosition()[0]);
    return success();
  }
  if (auto hot = dyn_cast<RowHotOp>(op)) {
    bindings.scalars[result] = getHandle(hot.getRow()).isHot;
    return success();
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? operand : getScalar(operand));
  FailureOr<Value> value = scalarize(op, operands);
  if (failed(value))
    return failure();
  bindings.scalars[result] = *value;
  return success();
}

bool RowBodyEmitter::isColumn(Value value) const {
  Operation *maker = value.getDefiningOp();
  return maker && schedule.isColumn(maker);
}

void RowBodyEmitter::emitScalarParts(RowConcatOp concat, ScalarParts which) {
  EmitCBuilder b = at(concat);
  int64_t offset = 0;
  for (Value part : concat.getParts()) {
    if (!isVector(part) && which(part)) {
      Operation *guard = target.enterScalarWrite(b);
      b.storeElement(bindings.pointers.lookup(concat.getResult()), b.integer(offset),
                     getScalar(part));
      if (guard)
        b.leave(guard);
    }
    offset += isVector(part) ? getExtent(part) : 1;
  }
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

LogicalResult RowBodyEmitter::emitLevel(const BodyLevel &level) {
  const bool isOneByOne = target.writesPartsOneByOne();
  auto isMadeHere = [&](Value part) {
    return isOneByOne && part.getDefiningOp() &&
           llvm::is_contained(level.scalars, part.getDefiningOp());
  };
  auto emitParts = [&](ScalarParts which) {
    for (RowConcatOp concat : level.concats)
      emitScalarParts(concat, [&](Value part) { return !isColumn(part) && which(part); });
  };
  if (isOneByOne)
    emitParts([&](Value part) { return !isMadeHere(part); });
  for (Operation *op : level.scalars) {
    if (schedule.getKind(op) == BodyKind::address)
      emitAddress(op);
    else if (failed(emitScalar(op)))
      return failure();
    if (isOneByOne)
      emitParts([&](Value part) { return part.getDefiningOp() == op; });
  }
  if (!isOneByOne)
    emitParts([](Value) { return true; });
  for (const ElementLoop &loop : level.loops)
    if (failed(emitLoop(loop)))
      return failure();
  // Calls read what loops and scalars have written.
  const bool isWritten = !level.loops.empty() || !level.concats.empty();
  if (isWritten && !level.calls.empty())
    target.separate(EmitCBuilder(builder, level.calls[0]->getLoc()));
  for (Operation *op : level.calls)
    emitCall(op);
  return success();
}

void RowBodyEmitter::emitScalarYields(ScalarParts which) {
  Operation *yield = schedule.getKernel().getBody().front().getTerminator();
  for (OpOperand &operand : yield->getOpOperands()) {
    if (isVector(operand.get()) || !which(operand.get()))
      continue;
    EmitCBuilder b(builder, operand.get().getLoc());
    Operation *guard = target.enterScalarWrite(b);
    writer.writeScalar(b, getYieldedResult(schedule.getKernel(), operand.getOperandNumber()),
                       getScalar(operand.get()));
    if (guard)
      b.leave(guard);
  }
}

LogicalResult RowBodyEmitter::emitColumns(const ColumnLoop &loop) {
  Block &body = schedule.getKernel().getBody().front();
  auto isOfLoop = [&](Value value) { return loop.written.contains(value); };
  for (Operation &op : body)
    if (loop.ops.contains(&op) && failed(emitScalar(&op)))
      return failure();
  for (auto concat : body.getOps<RowConcatOp>())
    if (std::optional<unsigned> target = schedule.getJoinTarget(concat);
        target && llvm::any_of(concat.getParts(), isOfLoop)) {
      bindings.pointers[concat.getResult()] =
          writer.getRow(getYieldedResult(schedule.getKernel(), *target));
      emitScalarParts(concat, isOfLoop);
    }
  emitScalarYields(isOfLoop);
  return success();
}

LogicalResult RowBodyEmitter::emit() {
  // The parts of a joined row may be written at several levels.
  for (auto concat : schedule.getKernel().getBody().front().getOps<RowConcatOp>()) {
    if (std::optional<unsigned> target = schedule.getJoinTarget(concat))
      bindings.pointers[concat.getResult()] =
          writer.getRow(getYieldedResult(schedule.getKernel(), *target));
    else
      makeArray(concat.getResult());
  }
  for (auto [index, level] : llvm::enumerate(schedule.levels)) {
    if (index)
      target.separate(EmitCBuilder(builder, schedule.getKernel().getLoc()));
    if (failed(emitLevel(level)))
      return failure();
  }
  emitScalarYields([&](Value value) { return !isColumn(value); });
  // Before the next row overwrites the local arrays.
  target.separate(EmitCBuilder(builder, schedule.getKernel().getLoc()));
  return success();
}
