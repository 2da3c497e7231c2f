//===- KernelTarget.cpp - code of row kernels for a target ----------------===//

#include "CudaKernelTarget.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Every target
//===----------------------------------------------------------------------===//

void KernelTarget::leaveElements(const EmitCBuilder &b, ElementLoops &at) { b.leave(at.outermost); }

Value KernelTarget::loadElement(const EmitCBuilder &b, Value pointer, ElementLoops &at) {
  return b.loadElement(pointer, at.index);
}

void KernelTarget::storeElement(const EmitCBuilder &b, Value pointer, int64_t offset,
                                ElementLoops &at, Value value) {
  b.storeElement(pointer, offset ? b.add(at.index, b.integer(offset)) : at.index, value);
}

Value KernelTarget::callOnRow(const EmitCBuilder &b, StringRef callee, Type result,
                              ValueRange operands, ArrayRef<int64_t> sizes) {
  SmallVector<Attribute> arguments;
  for (int64_t size : sizes)
    arguments.push_back(b.templateInteger(size));
  for (int64_t size : getRowArguments())
    arguments.push_back(b.templateInteger(size));
  if (result)
    return b.call(callee, result, operands, arguments);
  b.callVoid(callee, operands, arguments);
  return {};
}

//===----------------------------------------------------------------------===//
// CPU: a range of rows per call, plain loops
//===----------------------------------------------------------------------===//

namespace {
class CpuTarget : public KernelTarget {
public:
  KernelFunction createFunction(const EmitCBuilder &b, StringRef name,
                                ArrayRef<KernelArgument> arguments) override;
  Value enterChunk(const EmitCBuilder &, KernelFunction &kernel, Value, Value) override {
    return kernel.function.getArgument(3);
  }
  Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, function_ref<Value()> getCount,
                  StringRef name) override;
  bool prefetchesRows() const override { return true; }
  void prefetchRow(const EmitCBuilder &b, Value handles, Value row, Value count, int64_t floats,
                   int64_t others) override;
  bool hasRowVectors() const override { return true; }
  // As many as registers for their addresses; the caches have lines of few more at a time.
  size_t getMostStreams() const override { return 8; }
  void hintVectors(const EmitCBuilder &b, bool staysLoop = false) override;
  ElementLoops enterElements(const EmitCBuilder &b, int64_t extent) override;
  Value createArray(const EmitCBuilder &b, Type element, int64_t size, bool) override {
    return b.array(element, size);
  }
};
} // namespace

KernelFunction CpuTarget::createFunction(const EmitCBuilder &b, StringRef name,
                                         ArrayRef<KernelArgument> arguments) {
  FunctionType type = b.builder.getFunctionType({b.voidPointer(), b.i64(), b.i64(), b.i64()}, {});
  auto function = emitc::FuncOp::create(b.builder, b.loc, name, type);
  function.setSpecifiersAttr(b.builder.getStrArrayAttr({"static"}));
  Block *entry = function.addEntryBlock();
  for (auto [argument, title] :
       llvm::zip(entry->getArguments(), ArrayRef<StringRef>{"args", "begin", "end", "chunk"}))
    argument.setLoc(NameLoc::get(b.builder.getStringAttr(title), b.loc));
  b.builder.setInsertionPointToStart(entry);
  auto end = emitc::ReturnOp::create(b.builder, b.loc, Value());
  b.builder.setInsertionPoint(end);

  KernelFunction kernel{function, {}, nullptr};
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    Value pointer =
        b.named(argument.name)
            .call("kernels::argument", b.pointer(argument.pointee),
                  {entry->getArgument(0), b.integer(index)}, {b.templateType(argument.pointee)});
    if (argument.isConst)
      EmitCBuilder::constant(pointer);
    kernel.arguments.push_back(EmitCBuilder::restricted(pointer));
  }
  return kernel;
}

Value CpuTarget::enterRows(const EmitCBuilder &b, KernelFunction &kernel, function_ref<Value()>,
                           StringRef name) {
  emitc::ForOp loop = b.enterFor(kernel.function.getArgument(1), kernel.function.getArgument(2),
                                 b.integer(1), name);
  kernel.rows = loop;
  return loop.getInductionVar();
}

void CpuTarget::prefetchRow(const EmitCBuilder &b, Value handles, Value row, Value count,
                            int64_t floats, int64_t others) {
  // About as many cache lines as a core can have in flight, but at most 16 rows ahead.
  constexpr int64_t kLines = 64, kMostAhead = 16;
  int64_t lines = (floats * 4 + 63) / 64;
  int64_t ahead = std::clamp<int64_t>(kLines / (lines * others), 1, kMostAhead);
  b.callVoid("kernels::prefetchRow", {handles, row, count},
             {b.templateInteger(floats), b.templateInteger(ahead)});
}

// Makes clang vectorise: its cost model gives up on loops with many operations, and its alias
// checks on loops with dozens of arrays. Vectorising is safe: two arrays are the same or do not
// overlap, and an iteration accesses only elements of its own number.
void CpuTarget::hintVectors(const EmitCBuilder &b, bool staysLoop) {
  b.pragma(Twine("clang loop vectorize(assume_safety)") + (staysLoop ? " unroll(disable)" : ""));
}

ElementLoops CpuTarget::enterElements(const EmitCBuilder &b, int64_t extent) {
  constexpr int64_t kLeastVectorized = 8, kMostUnrolled = 16;
  Value begin = b.integer(0), end = b.integer(extent), step = b.integer(1);
  // Clang unrolls short loops before the loop vectoriser runs, and then rarely vectorises them.
  if (extent >= kLeastVectorized)
    hintVectors(b, /*staysLoop=*/extent <= kMostUnrolled);
  emitc::ForOp loop = b.enterFor(begin, end, step, "i");
  ElementLoops at;
  at.outermost = loop;
  at.index = at.slot = loop.getInductionVar();
  at.extent = extent;
  return at;
}

std::unique_ptr<KernelTarget> genrec::createKernelTarget(const Target &target, RowKernelOp kernel,
                                                         KernelForm form) {
  switch (target.kind) {
  case TargetKind::cpu:
    return std::make_unique<CpuTarget>();
  case TargetKind::cuda:
    return createCudaKernelTarget(kernel, form);
  }
  llvm_unreachable("every target prints kernels");
}
