//===- StageBuilder.cpp - a stage of a program as a function --------------===//

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

/// Creates a function with a step as its argument, and moves the builder into it.
void StageBuilder::makeFunction(const Twine &name, StringRef stepType) {
  EmitCBuilder b(builder, program.getLoc());
  FunctionType type = builder.getFunctionType({b.pointer(b.opaque(stepType))}, {});
  current = Function();
  current.function = emitc::FuncOp::create(builder, program.getLoc(), name.str(), type);
  current.function.setSpecifiersAttr(builder.getStrArrayAttr({"static", "GENREC_STAGE"}));
  Block *entry = current.function.addEntryBlock();
  current.step = entry->getArgument(0);
  current.step.setLoc(NameLoc::get(builder.getStringAttr("step"), program.getLoc()));
  builder.setInsertionPointToStart(entry);
  auto end = emitc::ReturnOp::create(builder, program.getLoc(), Value());
  builder.setInsertionPoint(end);
}

void StageBuilder::begin(Stage stage) {
  makeFunction(program.getSymName() + "_" + stringifyStage(stage), "genrec_step");
  opCount = 0;
}

void StageBuilder::end() {
  builder.setInsertionPointAfter(current.function);
  if (isEmpty())
    current.function->erase();
}

void StageBuilder::beginBlock(RowBlockAttr run) {
  stageFunction = std::move(current);
  builder.setInsertionPoint(stageFunction.function);
  makeFunction(program.getSymName() + "_blocks_" + Twine(run.getNumber()), "kernels::RowBlock");
  block = run;
  firstOpOfBlock = ops.size();
}

void StageBuilder::endBlock() {
  StringRef name = current.function.getSymName();
  Operation *end = stageFunction.function.getBody().back().getTerminator();
  current = std::move(stageFunction);
  builder.setInsertionPoint(end);
  EmitCBuilder b = at(program.getLoc());
  auto number = [&](int64_t value) { return b.integer(value, b.i32()); };
  b.callVoid("kernels::runRowBlocks",
             {getStep(), b.integer(index.domains.size()),
              b.integer(index.getDomain(block.getDomain())),
              b.integer(getBlockBytes(buffers, block.getNumber())), number(firstOpOfBlock),
              number(static_cast<int64_t>(ops.size()) - firstOpOfBlock),
              b.literal(name, b.opaque("void"))});
  block = {};
}

EmitCBuilder StageBuilder::at(Operation *op) {
  ++opCount;
  return {builder, op->getLoc()};
}

Value StageBuilder::getPool() {
  if (!current.pool) {
    EmitCBuilder b = at(program.getLoc()).named("pool");
    current.pool = EmitCBuilder::kept(
        b.load(b.memberOf(getStep(), "pool", b.pointer(b.opaque("genrec_rt_pool")))));
  }
  return current.pool;
}

Value StageBuilder::getDomain(FlatSymbolRefAttr domain) {
  Value &pointer = current.domains[domain];
  if (!pointer) {
    EmitCBuilder b = at(program.getLoc()).named(makeIdentifier(domain.getValue()));
    pointer = EmitCBuilder::kept(getDomainPointer(b, getStep(), index.getDomain(domain)));
  }
  return pointer;
}

Value StageBuilder::getDomain(Value domain) {
  return getDomain(cast<DomainType>(domain.getType()).getDomain());
}

Value StageBuilder::getDomainOf(Value tensor) { return getDomain(getRowDomain(tensor.getType())); }

Value StageBuilder::getCount(Value tensor) {
  EmitCBuilder b = at(tensor.getLoc());
  return b.load(b.memberOf(getDomainOf(tensor), "count", b.i64()));
}

Value StageBuilder::getRowsArgument(Value tensor) {
  if (!target.hasDevice)
    return getCount(tensor);
  EmitCBuilder b = at(tensor.getLoc());
  return b.cast(getDomainOf(tensor), b.pointer(b.opaque("const genrec_domain")));
}

SmallVector<Value> StageBuilder::withStep(ArrayRef<Value> operands) {
  SmallVector<Value> result;
  if (target.hasDevice)
    result.push_back(getStep());
  result.append(operands.begin(), operands.end());
  return result;
}

Value StageBuilder::getBuffer(int64_t number, Type element, StringRef name) {
  EmitCBuilder b = at(program.getLoc()).named(makeIdentifier(name));
  const PlannedBuffer &plan = buffers[number];
  if (plan.block >= 0)
    return EmitCBuilder::kept(b.call("kernels::localRows", b.pointer(element),
                                     {getStep(), b.integer(plan.offset)},
                                     {b.templateType(element)}));
  Value all = b.load(b.memberOf(getStep(), "buffers", b.pointer(b.voidPointer())));
  Value buffer = b.cast(b.loadElement(all, b.integer(number)), b.pointer(element));
  return EmitCBuilder::kept(getBlockRows(b, buffer, plan.domain, plan.bytesPerRow));
}

Value StageBuilder::getBlockRows(const EmitCBuilder &b, Value rows, FlatSymbolRefAttr domain,
                                 int64_t bytesPerRow) {
  if (!block || domain != block.getDomain())
    return rows;
  return b.call("kernels::blockRows", rows.getType(), {getStep(), rows, b.integer(bytesPerRow)});
}

Value StageBuilder::getColumnMember(int64_t feature, StringRef member, Type element) {
  EmitCBuilder b = at(program.getLoc());
  Value columns = b.load(b.memberOf(getStep(), "columns", b.pointer(b.opaque("genrec_column"))));
  Value place = b.member(b.element(columns, b.integer(feature)), member, b.voidPointer());
  return b.cast(b.load(place), b.pointer(element));
}

Value StageBuilder::getParameterMember(int64_t number, StringRef member) {
  EmitCBuilder b = at(program.getLoc());
  Value parameters =
      b.load(b.memberOf(getStep(), "parameters", b.pointer(b.opaque("genrec_parameter"))));
  return b.load(b.member(b.element(parameters, b.integer(number)), member, b.pointer(b.f32())));
}

Value StageBuilder::getOpNumber(Operation *op) {
  auto [known, isNew] = opNumbers.try_emplace(op, ops.size());
  if (isNew) {
    ops.push_back({getStepOpName(op), op->getLoc(), describeOrigin(op), getStage(op), getCosts(op),
                   multipliesRounded(op), isOfSeveralLines(op)});
  }
  EmitCBuilder b = at(op->getLoc());
  return b.integer(known->second, b.i32());
}

void StageBuilder::checkFinite(Operation *op, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isF32())
    return;
  EmitCBuilder b = at(op->getLoc());
  const bool hasRows = getRowDomain(type) != nullptr;
  Value count = hasRows ? getRowsArgument(value)
                : target.hasDevice
                    ? b.literal("nullptr", b.pointer(b.opaque("const genrec_domain")))
                    : b.integer(1);
  const int64_t size = getRowSize(type), stride = hasRows ? getRowAddress(value).stride : size;
  b.callVoid("kernels::checkFinite", {getStep(), getOpNumber(op), getPointer(value), count,
                                      b.integer(size), b.integer(stride)});
}

/// The number of rows before those of a part.
Value StageBuilder::getPartOffset(Value stack, int64_t part) {
  FlatSymbolRefAttr domain = cast<DomainType>(stack.getType()).getDomain();
  EmitCBuilder b = at(stack.getLoc()), named = b.named(domain.getValue() + "_offsets");
  SmallVector<Value> &offsets = current.partOffsets[domain];
  if (!target.hasDevice) {
    if (offsets.empty())
      offsets.push_back(EmitCBuilder::kept(named.load(
          named.memberOf(getDomain(stack), "offsets", b.pointer(b.opaque("const int64_t"))))));
    return b.loadElement(offsets[0], b.integer(part));
  }
  // The host does not know counts: each part has the room of its capacity (stackDomains).
  auto parts = stack.getDefiningOp<StackDomainsOp>().getParts();
  while (static_cast<int64_t>(offsets.size()) < part) {
    Value rows = named.load(named.memberOf(getDomain(parts[offsets.size()]), "capacity", b.i64()));
    offsets.push_back(EmitCBuilder::kept(offsets.empty() ? rows : named.add(offsets.back(), rows)));
  }
  return offsets[part - 1];
}

Value StageBuilder::getPartPointer(Value tensor, Value stack, int64_t part) {
  EmitCBuilder b = at(tensor.getLoc());
  Value pointer = getPointer(tensor);
  if (part == 0)
    return pointer;
  Value first = getPartOffset(stack, part);
  int64_t width = getRowSize(tensor.getType());
  return b.add(pointer, width == 1 ? first : b.mul(first, b.integer(width)));
}

Value StageBuilder::makeArray(const EmitCBuilder &b, Type element, ValueRange values) {
  Value array = b.array(element, values.size());
  for (auto [number, value] : llvm::enumerate(values))
    b.storeElement(array, b.integer(number),
                   value.getType() == element ? value : b.cast(value, element));
  return b.decay(array);
}

Value StageBuilder::makePointer(Value tensor) {
  auto result = cast<OpResult>(tensor);
  if (auto step = dyn_cast<StepOpInterface>(result.getOwner()))
    if (Value address = step.getAddress(*this, result.getResultNumber()))
      return address;
  EmitCBuilder b = at(tensor.getLoc()).named(getValueName(tensor));
  if (isView(result.getOwner())) {
    RowAddress address = getRowAddress(tensor);
    Value pointer = getPointer(address.root);
    return address.offset ? EmitCBuilder::kept(b.add(pointer, b.integer(address.offset))) : pointer;
  }
  Type element = getBufferElement(b, cast<RankedTensorType>(tensor.getType()).getElementType());
  return getBuffer(getResultBuffer(result), element, getValueName(tensor));
}

Value StageBuilder::getPointer(Value tensor) {
  if (Value known = current.pointers.lookup(tensor))
    return known;
  Value pointer = makePointer(tensor);
  return current.pointers[tensor] = pointer;
}

Value StageBuilder::getOptionalPointer(Value tensor, Type element) {
  if (tensor)
    return getPointer(tensor);
  EmitCBuilder b = at(program.getLoc());
  return b.literal("nullptr", b.pointer(element));
}

Value StageBuilder::getStride(Value tensor) {
  return at(tensor.getLoc()).integer(getRowAddress(tensor).stride);
}
