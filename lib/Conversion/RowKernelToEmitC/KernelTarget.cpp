//===- KernelTarget.cpp - code of row kernels for a target ----------------===//

#include "KernelTarget.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// CPU: a range of rows per call, plain loops
//===----------------------------------------------------------------------===//

namespace {
class CpuTarget : public KernelTarget {
public:
  KernelFunction createFunction(const EmitCBuilder &b, StringRef name,
                                ArrayRef<KernelArgument> arguments) const override;
  Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, Value count,
                  StringRef name) const override;
  void prefetchRow(const EmitCBuilder &b, Value handles, Value row, Value count, int64_t floats,
                   int64_t others) const override;
  Value getChunk(const EmitCBuilder &, KernelFunction &kernel) const override {
    return kernel.function.getArgument(3);
  }
  bool hasRowVectors() const override { return true; }
  void hintVectors(const EmitCBuilder &b, bool staysLoop = false) const override;
  emitc::ForOp enterElements(const EmitCBuilder &b, int64_t extent) const override;
  Value createArray(const EmitCBuilder &b, Type element, int64_t size) const override {
    return b.array(element, size);
  }
  void separate(const EmitCBuilder &) const override {}
  Operation *enterScalarWrite(const EmitCBuilder &) const override { return nullptr; }
};
} // namespace

KernelFunction CpuTarget::createFunction(const EmitCBuilder &b, StringRef name,
                                         ArrayRef<KernelArgument> arguments) const {
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

Value CpuTarget::enterRows(const EmitCBuilder &b, KernelFunction &kernel, Value,
                           StringRef name) const {
  emitc::ForOp loop = b.enterFor(kernel.function.getArgument(1), kernel.function.getArgument(2),
                                 b.integer(1), name);
  kernel.rows = loop;
  return loop.getInductionVar();
}

void CpuTarget::prefetchRow(const EmitCBuilder &b, Value handles, Value row, Value count,
                            int64_t floats, int64_t others) const {
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
void CpuTarget::hintVectors(const EmitCBuilder &b, bool staysLoop) const {
  std::string hint = "#pragma clang loop vectorize(assume_safety)";
  if (staysLoop)
    hint += " unroll(disable)";
  emitc::VerbatimOp::create(b.builder, b.loc, b.builder.getStringAttr(hint), ValueRange());
}

emitc::ForOp CpuTarget::enterElements(const EmitCBuilder &b, int64_t extent) const {
  constexpr int64_t kLeastVectorized = 8, kMostUnrolled = 16;
  Value begin = b.integer(0), end = b.integer(extent), step = b.integer(1);
  // Clang unrolls short loops before the loop vectoriser runs, and then rarely vectorises them.
  if (extent >= kLeastVectorized)
    hintVectors(b, /*staysLoop=*/extent <= kMostUnrolled);
  return b.enterFor(begin, end, step, "i");
}

//===----------------------------------------------------------------------===//
// CUDA: a warp per row, elements on lanes
//===----------------------------------------------------------------------===//

namespace {
class CudaTarget : public KernelTarget {
public:
  KernelFunction createFunction(const EmitCBuilder &b, StringRef name,
                                ArrayRef<KernelArgument> arguments) const override;
  Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, Value count,
                  StringRef name) const override;
  /// No prefetch: other warps run while one waits for memory.
  void prefetchRow(const EmitCBuilder &, Value, Value, Value, int64_t, int64_t) const override {}
  Value getChunk(const EmitCBuilder &b, KernelFunction &kernel) const override;
  emitc::ForOp enterElements(const EmitCBuilder &b, int64_t extent) const override;
  Value createArray(const EmitCBuilder &b, Type element, int64_t size) const override;
  void separate(const EmitCBuilder &b) const override { b.callVoid("__syncwarp", {}); }
  Operation *enterScalarWrite(const EmitCBuilder &b) const override;

private:
  mutable int64_t arrayCount = 0;
};
} // namespace

KernelFunction CudaTarget::createFunction(const EmitCBuilder &b, StringRef name,
                                          ArrayRef<KernelArgument> arguments) const {
  SmallVector<Type> types;
  for (const KernelArgument &argument : arguments)
    types.push_back(b.pointer(argument.pointee));
  auto function =
      emitc::FuncOp::create(b.builder, b.loc, name, b.builder.getFunctionType(types, {}));
  function.setSpecifiersAttr(b.builder.getStrArrayAttr({"extern \"C\"", "__global__"}));
  Block *entry = function.addEntryBlock();
  b.builder.setInsertionPointToStart(entry);
  auto end = emitc::ReturnOp::create(b.builder, b.loc, Value());
  b.builder.setInsertionPoint(end);
  KernelFunction kernel{function, {}, nullptr};
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

Value CudaTarget::enterRows(const EmitCBuilder &b, KernelFunction &kernel, Value count,
                            StringRef name) const {
  Value first = b.call("kernels::firstRow", b.i64(), {});
  Value step = b.call("kernels::rowStep", b.i64(), {});
  emitc::ForOp loop = b.enterFor(first, count, step, name);
  kernel.rows = loop;
  return loop.getInductionVar();
}

Value CudaTarget::getChunk(const EmitCBuilder &b, KernelFunction &) const {
  return b.call("kernels::firstRow", b.i64(), {});
}

emitc::ForOp CudaTarget::enterElements(const EmitCBuilder &b, int64_t extent) const {
  Value lane = b.call("kernels::lane", b.i64(), {});
  Value end = b.integer(extent), step = b.integer(32);
  return b.enterFor(lane, end, step, "i");
}

Value CudaTarget::createArray(const EmitCBuilder &b, Type element, int64_t size) const {
  // The number distinguishes arrays of the same type and size.
  return b.call(
      "kernels::sharedRow", b.pointer(element), {},
      {b.templateType(element), b.templateInteger(size), b.templateInteger(arrayCount++)});
}

Operation *CudaTarget::enterScalarWrite(const EmitCBuilder &b) const {
  Value lane = b.call("kernels::lane", b.i64(), {});
  return b.enterIf(b.compare(emitc::CmpPredicate::eq, lane, b.integer(0)));
}

std::unique_ptr<KernelTarget> genrec::createKernelTarget(const Target &target) {
  switch (target.kind) {
  case TargetKind::cpu:
    return std::make_unique<CpuTarget>();
  case TargetKind::cuda:
    return std::make_unique<CudaTarget>();
  }
  llvm_unreachable("every target prints kernels");
}
