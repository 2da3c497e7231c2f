//===- OutlineKernels.cpp - turns row kernels into functions --------------===//

#include "KernelOutliner.h"

#include "genrec/Conversion/MemoryPlan.h"
#include "genrec/Conversion/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace genrec {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "genrec/Conversion/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// A name for `kernel`: its own, else that of what it computes.
static std::string getKernelName(RowKernelOp kernel) {
  StringRef name;
  if (std::optional<StringRef> own = kernel.getName())
    name = *own;
  if (name.empty())
    name = getUserName(kernel.getLoc());
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (name.empty())
      name = getUserName(op.getLoc());
  return "row_" + (name.empty() ? "kernel" : makeIdentifier(name));
}

/// "user names (files and lines)" of what the kernel came from.
static std::string describeOrigin(RowKernelOp kernel) {
  SmallVector<std::string> names, lines;
  auto add = [](SmallVector<std::string> &list, std::string text) {
    if (!text.empty() && !llvm::is_contained(list, text))
      list.push_back(std::move(text));
  };
  auto visit = [&](Location loc) {
    add(names, getUserName(loc).str());
    add(lines, describeLocation(loc));
  };
  auto visitParts = [&](Location loc) {
    if (auto fused = dyn_cast<FusedLoc>(loc))
      llvm::for_each(fused.getLocations(), visit);
    else
      visit(loc);
  };
  visitParts(kernel.getLoc());
  for (Operation &op : kernel.getBody().front().without_terminator())
    visitParts(op.getLoc());
  constexpr size_t kMostShown = 8;
  auto join = [](ArrayRef<std::string> parts) {
    std::string text = llvm::join(parts.take_front(kMostShown), ", ");
    return parts.size() > kMostShown ? text + ", …" : text;
  };
  std::string text = "Over @" + kernel.getDomain().getType().getDomain().getValue().str();
  if (auto ops = kernel->getAttrOfType<StringAttr>("genrec.ops"))
    text += ": " + ops.getValue().str();
  if (!names.empty())
    text += "; of " + join(names);
  if (!lines.empty())
    text += " (" + join(lines) + ")";
  return text;
}

namespace {
struct OutlineKernelsPass : genrec::impl::OutlineKernelsBase<OutlineKernelsPass> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override;

private:
  LogicalResult outlineModel(ModelOp model, const KernelTarget &target);
  LogicalResult outlineKernel(RowKernelOp kernel, const ModelIndex &index,
                              const KernelTarget &target);
  std::string makeUnique(std::string name);

  llvm::StringMap<std::string> functions; ///< name by code
  llvm::StringSet<> names;
};
} // namespace

std::string OutlineKernelsPass::makeUnique(std::string name) {
  std::string unique = name;
  for (int64_t count = 2; !names.insert(unique).second; ++count)
    unique = name + "_" + std::to_string(count);
  return unique;
}

/// The text of a function without its name and locations.
static std::string getCode(emitc::FuncOp function) {
  std::string name = function.getSymName().str(), code;
  function.setSymName("kernel");
  llvm::raw_string_ostream stream(code);
  function->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  function.setSymName(name);
  return code;
}

LogicalResult OutlineKernelsPass::outlineKernel(RowKernelOp kernel, const ModelIndex &index,
                                                const KernelTarget &target) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  auto comment = emitc::VerbatimOp::create(builder, kernel.getLoc(),
                                           builder.getStringAttr("// " + describeOrigin(kernel)),
                                           ValueRange());
  KernelOutliner outliner(kernel, index, target, builder);
  FailureOr<emitc::FuncOp> function = outliner.outline(getKernelName(kernel));
  if (failed(function))
    return failure();
  std::string code = getCode(*function);
  auto [known, isNew] = functions.try_emplace(code);
  if (isNew) {
    known->second = makeUnique(function->getSymName().str());
    function->setSymName(known->second);
    ++kernels;
    loops += outliner.loopCount;
    arrays += outliner.arrayCount;
  } else {
    comment->erase();
    function->erase();
  }

  builder.setInsertionPoint(kernel);
  Value domain =
      lookupDomainValue(kernel->getParentOfType<ProgramOp>(), outliner.getLaunchDomain());
  auto launch =
      LaunchOp::create(builder, kernel.getLoc(), kernel.getResultTypes(), known->second, domain,
                       kernel.getInputs(), outliner.getGrain(), outliner.getAccumulatedResults());
  for (StringRef name : {StringRef(kBufferIdsAttrName), StringRef("genrec.stage")})
    if (Attribute attribute = kernel->getAttr(name))
      launch->setAttr(name, attribute);
  kernel->replaceAllUsesWith(launch);
  kernel->erase();
  ++launches;
  return success();
}

LogicalResult OutlineKernelsPass::outlineModel(ModelOp model, const KernelTarget &target) {
  ModelIndex index(model);
  for (ProgramOp program : index.programs)
    for (auto kernel : llvm::make_early_inc_range(program.getBody().front().getOps<RowKernelOp>()))
      if (failed(outlineKernel(kernel, index, target)))
        return failure();
  return success();
}

void OutlineKernelsPass::runOnOperation() {
  std::unique_ptr<KernelTarget> kernelTarget = createKernelTarget(target);
  if (!kernelTarget) {
    getOperation().emitError() << "target must be cpu or cuda, but is '" << target << "'";
    return signalPassFailure();
  }
  functions.clear();
  names.clear();
  for (auto model : llvm::make_early_inc_range(getOperation().getOps<ModelOp>()))
    if (failed(outlineModel(model, *kernelTarget)))
      return signalPassFailure();
  if (target == "cuda")
    for (auto table : getOperation().getOps<emitc::GlobalOp>())
      table->setAttr(kDeviceAttrName, UnitAttr::get(&getContext()));
}
