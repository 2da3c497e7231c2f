//===- CudaKernelTarget.cpp - code of row kernels for CUDA ----------------===//
//
// Rows and elements on lanes, as getRowMapping says. Values stay with their lane, in arrays whose
// loops are unrolled, unless other lanes read them. genrec_rt/kernels/cuda/lanes.h has what is
// called.
//
//===----------------------------------------------------------------------===//

#include "CudaKernelTarget.h"

#include "RowMapping.h"

#include "genrec/Target/EmitC/Fields.h"
#include "genrec_rt/device_limits.h"

using namespace mlir;
using namespace genrec;

namespace {
class CudaTarget : public KernelTarget {
public:
  CudaTarget(RowKernelOp kernel, KernelForm form)
      : kernel(kernel), form(form), isColumn(form != KernelForm::launched),
        mapping(getRowMapping(kernel)), meets(lanesMeet(kernel, mapping)) {
    assert((!isColumn || mapping.lanes <= rt::kColumnThreads) && "a block has rows of a column");
  }

  KernelFunction createFunction(const EmitCBuilder &b, StringRef name,
                                ArrayRef<KernelArgument> arguments) override;
  Value enterChunk(const EmitCBuilder &b, KernelFunction &kernel, Value count,
                   Value floats) override;
  bool keepsSums() const override { return true; }
  void clearSums(const EmitCBuilder &b, Value sums, Value floats) override {
    b.callVoid("kernels::clearSums", {sums, floats}, {getLanes(b)});
  }
  bool spreadsRows() const override { return mapping.isSpread; }
  Value createAddends(const EmitCBuilder &b, int64_t size) override {
    return createShared(b, b.f32(), size, RowMapping::alignAddends(size));
  }
  void leaveRow(const EmitCBuilder &b) override;
  void addRows(const EmitCBuilder &b, Value sums, Value addends, int64_t size) override;
  void leaveRows(const EmitCBuilder &b) override {
    b.callVoid("kernels::meetTeam", {}, {getLanes(b)});
  }
  std::optional<RowTerms> getTerms(unsigned result) const override {
    return getRowTerms(kernel, result);
  }
  Value enterTerms(const EmitCBuilder &b, const RowTerms &terms, Value memory, Value rows,
                   int64_t domain, int64_t stride) override;
  Value skipTerms(const EmitCBuilder &b, const RowTerms &terms, Value memory, Value rows) override;
  Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, function_ref<Value()> getCount,
                  StringRef name) override;
  bool splitsLists() const override { return form != KernelForm::column; }
  bool takesDomains() const override { return form == KernelForm::joint; }
  Value getDomain(const EmitCBuilder &b, KernelFunction &kernel, int64_t pointer) override;
  ElementLoops enterElements(const EmitCBuilder &b, int64_t extent) override;
  void leaveElements(const EmitCBuilder &b, ElementLoops &at) override;
  Value loadElement(const EmitCBuilder &b, Value pointer, ElementLoops &at) override;
  void storeElement(const EmitCBuilder &b, Value pointer, int64_t offset, ElementLoops &at,
                    Value value) override;
  Value extractElement(const EmitCBuilder &b, Value pointer, int64_t position) override;
  bool isShared(Value vector) const override { return isReadByOtherLanes(vector, mapping); }
  Value createArray(const EmitCBuilder &b, Type element, int64_t size, bool isShared) override;
  Value createReductionMemory(const EmitCBuilder &b) override;
  void separate(const EmitCBuilder &b) override;
  bool writesPartsOneByOne() const override { return true; }
  // Lanes keep them in registers, 64 each.
  int64_t getMostStored() const override { return int64_t(64) * mapping.lanes; }
  // With the registers of lanes that have a warp for their row; others share what a chunk has.
  bool gathersOnce() const override { return mapping.lanes == 32 && !mapping.isSpread; }
  Operation *enterScalarWrite(const EmitCBuilder &b) override;
  LogicalResult finish(const EmitCBuilder &b, KernelFunction &kernel) override;
  int64_t getColumnBytes() const override {
    return isColumn ? rt::kColumnThreads / mapping.lanes * sharedBytes : 0;
  }
  void describe(const EmitCBuilder &b, StringRef name) override;

protected:
  SmallVector<int64_t> getRowArguments() const override { return {mapping.lanes, mapping.pack}; }

private:
  /// Creates an array in the shared memory of a row, at a multiple of `alignment` bytes.
  Value createShared(const EmitCBuilder &b, Type element, int64_t size, int64_t alignment = 16);
  Attribute getLanes(const EmitCBuilder &b) const { return b.templateInteger(mapping.lanes); }
  void createColumnArguments(const EmitCBuilder &b, ArrayRef<KernelArgument> arguments,
                             KernelFunction &kernel) const;
  /// Emits the shapes of all sums of the kernel.
  void describeSums(const EmitCBuilder &b, StringRef name);
  /// The array that holds the current pack of what `pointer` points at.
  Value createPack(const EmitCBuilder &b, Value pointer, ElementLoops &at) const;

  RowKernelOp kernel;
  const KernelForm form;
  const bool isColumn;
  const RowMapping mapping;
  const bool meets;
  int64_t sharedBytes = 0;                       ///< of a row
  SmallVector<emitc::CallOpaqueOp> sharedArrays; ///< which take that as their third argument
  Value reductionMemory;
  Value chunkBegin, chunkEnd;        ///< rows, of a kernel that adds up sums
  Value firstRow;                    ///< of those at a time, where rows are spread
  Operation *spreadRow = nullptr;    ///< the condition that there is such a row
  SmallVector<Attribute> termShapes; ///< SumShape of results with terms
};
} // namespace

//===----------------------------------------------------------------------===//
// Functions and rows
//===----------------------------------------------------------------------===//

KernelFunction CudaTarget::createFunction(const EmitCBuilder &b, StringRef name,
                                          ArrayRef<KernelArgument> arguments) {
  SmallVector<Type> types;
  if (isColumn)
    types = {b.pointer(arguments[0].pointee), b.opaque("void *const *"), b.i64(), b.i64()};
  else
    for (const KernelArgument &argument : arguments)
      types.push_back(b.pointer(argument.pointee));
  auto function =
      emitc::FuncOp::create(b.builder, b.loc, name, b.builder.getFunctionType(types, {}));
  // Of the larger blocks three shall fit into a multiprocessor: 80 registers.
  const int64_t threads = mapping.getBlockThreads();
  std::string bounds = "__launch_bounds__(" + std::to_string(threads) +
                       (mapping.isSpread && threads == 256 ? ", 3)" : ")");
  function.setSpecifiersAttr(
      isColumn ? b.builder.getStrArrayAttr({"static", "__device__"})
               : b.builder.getStrArrayAttr({"extern \"C\"", "__global__", bounds}));
  Block *entry = function.addEntryBlock();
  b.builder.setInsertionPointToStart(entry);
  auto end = emitc::ReturnOp::create(b.builder, b.loc, Value());
  b.builder.setInsertionPoint(end);
  KernelFunction kernel{function, {}, nullptr};
  if (isColumn) {
    createColumnArguments(b, arguments, kernel);
    return kernel;
  }
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    BlockArgument value = entry->getArgument(index);
    value.setLoc(NameLoc::get(b.builder.getStringAttr(argument.name), b.loc));
    if (argument.isConst)
      function.setArgAttr(index, kConstAttrName, b.builder.getUnitAttr());
    function.setArgAttr(index, kRestrictAttrName, b.builder.getUnitAttr());
    kernel.arguments.push_back(value);
  }
  return kernel;
}

// body(step, pointers, begin, end): rows begin to end of a column, by a block (column_bodies.h).
void CudaTarget::createColumnArguments(const EmitCBuilder &b, ArrayRef<KernelArgument> arguments,
                                       KernelFunction &kernel) const {
  emitc::FuncOp function = kernel.function;
  for (auto [argument, title] :
       llvm::zip(function.getArguments(), ArrayRef<StringRef>{"step", "pointers", "begin", "end"}))
    argument.setLoc(NameLoc::get(b.builder.getStringAttr(title), b.loc));
  function.setArgAttr(0, kConstAttrName, b.builder.getUnitAttr());
  kernel.arguments.push_back(function.getArgument(0));
  for (auto [index, argument] : llvm::enumerate(arguments.drop_front())) {
    EmitCBuilder named = b.named(argument.name);
    Value pointer =
        named.call("kernels::columnPointer", b.pointer(argument.pointee),
                   {function.getArgument(1), b.integer(index)}, {b.templateType(argument.pointee)});
    if (argument.isConst)
      EmitCBuilder::constant(pointer);
    // What columns share, such as a divisor, is then read once for all rows of a thread.
    kernel.arguments.push_back(EmitCBuilder::restricted(pointer));
  }
}

Value CudaTarget::getDomain(const EmitCBuilder &b, KernelFunction &kernel, int64_t pointer) {
  return b.call("kernels::columnDomain", b.pointer(b.opaque("genrec_domain")),
                {kernel.arguments.front(), kernel.function.getArgument(1), b.integer(pointer)});
}

Value CudaTarget::enterChunk(const EmitCBuilder &b, KernelFunction &, Value count, Value floats) {
  EmitCBuilder::kept(count);
  StringRef first = mapping.isSpread ? "kernels::chunkOfTeam" : "kernels::firstRow";
  Value chunk = b.named("chunk").call(first, b.i64(), {}, {getLanes(b)});
  EmitCBuilder::kept(chunk);
  SmallVector<Value> operands{chunk, count, floats};
  chunkBegin = b.named("begin").call("kernels::chunkBegin", b.i64(), operands);
  chunkEnd = b.named("end").call("kernels::chunkEnd", b.i64(), operands);
  EmitCBuilder::kept(chunkEnd);
  EmitCBuilder::kept(chunkBegin);
  // The grid has a place for each chunk that there can be.
  b.enterIf(b.compare(emitc::CmpPredicate::lt, chunkBegin, chunkEnd));
  return chunk;
}

Value CudaTarget::enterTerms(const EmitCBuilder &b, const RowTerms &terms, Value memory, Value rows,
                             int64_t domain, int64_t stride) {
  Fields shape(b.getContext());
  shape.integer("terms", terms.count).integer("vectors", terms.countVectors());
  shape.integer("width", terms.width).integer("stride", stride).integer("domain", domain);
  shape.boolean("isScaled", terms.isScaled);
  ArrayRef<int64_t> firstTerms = ArrayRef(terms.firstTerms).take_front(terms.countVectors());
  shape.add("firstTerms", b.builder.getI64ArrayAttr(firstTerms));
  if (terms.isRounded)
    shape.boolean("isRounded", true);
  termShapes.push_back(shape.get());
  return EmitCBuilder::kept(b.named("terms").call("kernels::termsOf",
                                                  b.opaque("kernels::ScatteredTerms"),
                                                  {memory, rows}, terms.getTemplate(b)));
}

Value CudaTarget::skipTerms(const EmitCBuilder &b, const RowTerms &terms, Value memory,
                            Value rows) {
  return EmitCBuilder::kept(b.named("behind").call("kernels::behindTerms", memory.getType(),
                                                   {memory, rows}, terms.getTemplate(b)));
}

Value CudaTarget::enterRows(const EmitCBuilder &b, KernelFunction &kernel,
                            function_ref<Value()> getCount, StringRef name) {
  Value first, end, step;
  if (isColumn) {
    Value own = b.call("kernels::rowOfBlock", b.i64(), {}, {getLanes(b)});
    first = b.add(kernel.function.getArgument(2), own);
    end = kernel.function.getArgument(3);
    step = b.call("kernels::blockStep", b.i64(), {}, {getLanes(b)});
  } else if (chunkBegin) {
    first = chunkBegin;
    end = chunkEnd;
    step =
        mapping.isSpread ? b.call("kernels::teamRows", b.i64(), {}, {getLanes(b)}) : b.integer(1);
  } else {
    end = EmitCBuilder::kept(getCount());
    first = b.call("kernels::firstRow", b.i64(), {}, {getLanes(b)});
    step = b.call("kernels::rowStep", b.i64(), {}, {getLanes(b)});
  }
  if (!mapping.isSpread) {
    emitc::ForOp loop = b.enterFor(first, end, step, name);
    kernel.rows = loop;
    return loop.getInductionVar();
  }
  emitc::ForOp loop = b.enterFor(first, end, step, "first");
  kernel.rows = loop;
  firstRow = loop.getInductionVar();
  Value own = b.call("kernels::rowOfTeam", b.i64(), {}, {getLanes(b)});
  Value row = EmitCBuilder::kept(b.named(name).add(firstRow, own));
  spreadRow = b.enterIf(b.compare(emitc::CmpPredicate::lt, row, end));
  return row;
}

void CudaTarget::leaveRow(const EmitCBuilder &b) {
  b.leave(spreadRow);
  b.callVoid("kernels::meetTeam", {}, {getLanes(b)});
}

void CudaTarget::addRows(const EmitCBuilder &b, Value sums, Value addends, int64_t size) {
  b.callVoid("kernels::addRows", {sums, addends, firstRow, chunkBegin, chunkEnd},
             {b.templateInteger(size), getLanes(b), b.templateInteger(0)});
  sharedArrays.push_back(cast<emitc::CallOpaqueOp>(*std::prev(b.builder.getInsertionPoint())));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

// A loop over packs, whose number is known so that arrays stay in registers; where the last one is
// not for all lanes, a condition; and a loop over the elements of a pack.
ElementLoops CudaTarget::enterElements(const EmitCBuilder &b, int64_t extent) {
  ElementLoops at;
  at.extent = extent;
  at.pack = std::min(mapping.pack, extent);
  const int64_t each = mapping.lanes * mapping.pack;
  auto note = [&](Operation *op) { at.outermost = at.outermost ? at.outermost : op; };
  at.place = b.integer(0);
  if (extent > each) {
    b.pragma("unroll");
    emitc::ForOp packs =
        b.enterFor(b.integer(0), b.integer((extent + each - 1) / each), b.integer(1), "pack");
    note(packs);
    at.place = packs.getInductionVar();
  }
  const bool isOne = extent <= each;
  if (mapping.lanes == 1) {
    at.first = b.integer(0);
  } else {
    at.first = callOnRow(b.named("first"), "kernels::firstOfPack", b.i64(), {at.place});
    EmitCBuilder::kept(at.first);
    if (extent % each != 0)
      note(b.enterIf(b.compare(emitc::CmpPredicate::lt, at.first, b.integer(extent))));
  }
  if (at.pack == 1) {
    at.index = at.first;
    at.slot = at.place;
    return at;
  }
  b.pragma("unroll");
  at.insideHint = &*std::prev(b.builder.getInsertionPoint());
  emitc::ForOp inside =
      b.enterFor(b.integer(0), b.integer(at.pack), b.integer(1), mapping.lanes == 1 ? "i" : "j");
  note(inside);
  at.inside = inside;
  Value j = inside.getInductionVar();
  at.index = mapping.lanes == 1 ? j : b.named("i").add(at.first, j);
  at.slot = isOne ? j : b.add(b.mul(at.place, b.integer(at.pack)), j);
  return at;
}

void CudaTarget::leaveElements(const EmitCBuilder &b, ElementLoops &at) {
  if (at.inside) {
    b.leave(at.inside);
    for (auto [where, pack] : at.stored) {
      auto [pointer, offset] = where;
      Value to = offset ? b.add(pointer, b.integer(offset)) : pointer;
      b.callVoid("kernels::storePack",
                 {mapping.lanes == 1 ? to : b.add(to, at.first), b.decay(pack)},
                 {b.templateInteger(mapping.aligned)});
    }
  }
  // A single pack that all lanes have needs no loop.
  if (at.outermost && at.outermost != at.inside)
    b.leave(at.outermost);
}

/// Whether `pointer` is that of a constant of the module, which is not aligned.
static bool isConstantTable(Value pointer) {
  return isa_and_nonnull<emitc::AddressOfOp>(pointer.getDefiningOp());
}

Value CudaTarget::createPack(const EmitCBuilder &b, Value pointer, ElementLoops &at) const {
  return b.named("pack").array(cast<emitc::PointerType>(pointer.getType()).getPointee(), at.pack);
}

Value CudaTarget::loadElement(const EmitCBuilder &b, Value pointer, ElementLoops &at) {
  if (isa<emitc::ArrayType>(pointer.getType()))
    return b.loadElement(pointer, at.slot);
  if (!at.inside || mapping.aligned == 1 || isConstantTable(pointer))
    return b.loadElement(pointer, at.index);
  Value &pack = at.loaded[pointer];
  if (!pack) {
    OpBuilder::InsertionGuard guard(b.builder);
    b.builder.setInsertionPoint(at.insideHint);
    pack = createPack(b, pointer, at);
    Value from = mapping.lanes == 1 ? pointer : b.add(pointer, at.first);
    b.callVoid("kernels::loadPack", {from, b.decay(pack)}, {b.templateInteger(mapping.aligned)});
  }
  return b.loadElement(pack, cast<emitc::ForOp>(at.inside).getInductionVar());
}

void CudaTarget::storeElement(const EmitCBuilder &b, Value pointer, int64_t offset,
                              ElementLoops &at, Value value) {
  if (isa<emitc::ArrayType>(pointer.getType())) {
    assert((offset == 0 || mapping.lanes == 1) && "joined rows of several lanes are shared");
    b.storeElement(pointer, offset ? b.add(at.slot, b.integer(offset)) : at.slot, value);
    return;
  }
  if (!at.inside || mapping.aligned == 1)
    return KernelTarget::storeElement(b, pointer, offset, at, value);
  Value &pack = at.stored[{pointer, offset}];
  if (!pack) {
    OpBuilder::InsertionGuard guard(b.builder);
    b.builder.setInsertionPoint(at.insideHint);
    pack = createPack(b, pointer, at);
  }
  b.storeElement(pack, cast<emitc::ForOp>(at.inside).getInductionVar(), value);
}

Value CudaTarget::extractElement(const EmitCBuilder &b, Value pointer, int64_t position) {
  if (!isa<emitc::ArrayType>(pointer.getType()) || mapping.lanes == 1)
    return KernelTarget::extractElement(b, pointer, position);
  const int64_t pack = position / mapping.pack;
  const int64_t slot = pack / mapping.lanes * mapping.pack + position % mapping.pack;
  Value own = b.loadElement(pointer, b.integer(slot));
  return b.call("kernels::valueOf", own.getType(), {own, b.integer(pack % mapping.lanes)},
                {getLanes(b)});
}

//===----------------------------------------------------------------------===//
// Arrays and lanes
//===----------------------------------------------------------------------===//

Value CudaTarget::createArray(const EmitCBuilder &b, Type element, int64_t size, bool isShared) {
  if (!isShared) {
    const int64_t each = mapping.lanes * mapping.pack;
    int64_t slots = mapping.lanes == 1 ? size : (size + each - 1) / each * mapping.pack;
    return b.array(element, slots);
  }
  return createShared(b, element, size);
}

Value CudaTarget::createShared(const EmitCBuilder &b, Type element, int64_t size,
                               int64_t alignment) {
  const auto offset = static_cast<int64_t>(llvm::alignTo(sharedBytes, alignment));
  sharedBytes = offset + std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1) * size;
  Value pointer = b.call(
      "kernels::sharedArray", b.pointer(element), {},
      {b.templateType(element), getLanes(b), b.templateInteger(0), b.templateInteger(offset)});
  sharedArrays.push_back(pointer.getDefiningOp<emitc::CallOpaqueOp>());
  return EmitCBuilder::kept(pointer);
}

Value CudaTarget::createReductionMemory(const EmitCBuilder &b) {
  if (mapping.reducesByMemory() && !reductionMemory)
    reductionMemory = createArray(b.named("reduced"), b.f32(), mapping.widest, /*isShared=*/true);
  return reductionMemory;
}

void CudaTarget::separate(const EmitCBuilder &b) {
  if (meets && mapping.lanes > 1)
    b.callVoid("kernels::meet", {}, {getLanes(b)});
}

Operation *CudaTarget::enterScalarWrite(const EmitCBuilder &b) {
  if (mapping.lanes == 1)
    return nullptr;
  return b.enterIf(b.call("kernels::isFirstLane", b.i1(), {}, {getLanes(b)}));
}

LogicalResult CudaTarget::finish(const EmitCBuilder &b, KernelFunction &kernel) {
  constexpr int64_t kMostBytes = 227 << 10;
  sharedBytes = llvm::alignTo(sharedBytes, 16);
  if (sharedBytes > kMostBytes)
    return emitError(b.loc) << "needs " << sharedBytes
                            << " bytes of shared memory for the vectors of a row, but a block of a "
                               "device has "
                            << kMostBytes << "; use fewer or shorter vectors, or --target=cpu";
  int64_t count = kernel.function.getNumArguments();
  if (count > rt::kMostKernelArguments)
    return emitError(b.loc) << "is fused into a kernel of " << count
                            << " arguments, but a kernel of a device takes "
                            << rt::kMostKernelArguments
                            << "; combine fewer columns at once, or use --target=cpu";
  for (emitc::CallOpaqueOp array : sharedArrays) {
    SmallVector<Attribute> arguments(array.getTemplateArgs()->getValue());
    arguments[2] = b.templateInteger(sharedBytes);
    array.setTemplateArgsAttr(b.builder.getArrayAttr(arguments));
  }
  // Most threads have one row, unless it is a value of a column or a row of a chunk. Unrolled, with
  // a division for how often, the loop has more code and registers.
  if ((!isColumn || mapping.lanes > 1) && (!chunkBegin || mapping.isSpread)) {
    OpBuilder::InsertionGuard guard(b.builder);
    b.builder.setInsertionPoint(kernel.rows);
    b.pragma("unroll 1");
  }
  return success();
}

void CudaTarget::describe(const EmitCBuilder &b, StringRef name) {
  if (isColumn)
    return;
  Fields fields(b.getContext());
  fields.integer("lanes", mapping.lanes).integer("sharedBytes", sharedBytes);
  fields.boolean("isSpread", mapping.isSpread);
  b.constexprGlobal(name + "_mapping", b.opaque("kernels::RowMapping"), fields.get());
  describeSums(b, name);
}

void CudaTarget::describeSums(const EmitCBuilder &b, StringRef name) {
  SmallVector<Attribute> shapes;
  auto next = termShapes.begin();
  for (unsigned result = 0; result < kernel.getNumResults(); ++result)
    if (isAccumulated(kernel.getKernelResultRole(result)))
      shapes.push_back(getTerms(result) ? *next++ : Fields(b.getContext()).get());
  if (shapes.empty())
    return;
  auto count = static_cast<int64_t>(shapes.size());
  b.constexprGlobal(name + "_sums", emitc::ArrayType::get({count}, b.opaque("kernels::SumShape")),
                    b.builder.getArrayAttr(shapes));
}

std::unique_ptr<KernelTarget> genrec::createCudaKernelTarget(RowKernelOp kernel, KernelForm form) {
  return std::make_unique<CudaTarget>(kernel, form);
}
