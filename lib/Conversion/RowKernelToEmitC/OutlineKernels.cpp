//===- OutlineKernels.cpp - turns row kernels into functions --------------===//

#include "CudaKernelTarget.h"
#include "KernelOutliner.h"

#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

namespace genrec {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "genrec/Conversion/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The comment above the function of a kernel.
static std::string getComment(RowKernelOp kernel) {
  std::string origin = describeOrigin(kernel);
  StringRef joint = origin.empty()                                                ? ""
                    : origin.front() == '('                                       ? " "
                    : kernel->hasAttr(GenRecDialect::OpsAttrHelper::getNameStr()) ? ": "
                                                                                  : "; ";
  return ("Over @" + kernel.getDomain().getType().getDomain().getValue() + joint + origin).str();
}

namespace {
struct OutlineKernelsPass : genrec::impl::OutlineKernelsBase<OutlineKernelsPass> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override;

private:
  LogicalResult outlineModel(ModelOp model, const Target &target);
  LogicalResult outlineKernel(RowKernelOp kernel, const ModelIndex &index, const Target &target);
  FailureOr<std::string> outlineFunction(RowKernelOp kernel, KernelOutliner &outliner,
                                         KernelTarget &target, OpBuilder &builder);
  LogicalResult outlineColumns(TransformColumnsOp op, const ModelIndex &index,
                               const Target &target);
  std::string emitColumnsOf(TransformColumnsOp op, const ModelIndex &index,
                            ArrayRef<Attribute> functions);
  std::string makeUnique(std::string name);

  llvm::StringMap<std::string> functions; ///< names, by code
  llvm::StringSet<> names;
};
} // namespace

std::string OutlineKernelsPass::makeUnique(std::string name) {
  std::string unique = name;
  for (int64_t count = 2; !names.insert(unique).second; ++count)
    unique = name + "_" + std::to_string(count);
  return unique;
}

/// Copies the decisions of earlier passes, the origin and the costs of an op to its replacement.
/// Costs are passed in, as they must be computed while the op is still the only reader of its
/// operands.
static void copyAttributes(Operation *from, ArrayRef<OpCost> costs, Operation *to) {
  OpBuilder builder(from->getContext());
  auto dialect = cast<GenRecDialect>(to->getDialect());
  SmallVector<Attribute> entries = llvm::map_to_vector(
      costs, [&](const OpCost &cost) -> Attribute { return cost.toAttribute(from->getContext()); });
  dialect->getOriginAttrHelper().setAttr(to, builder.getStringAttr(describeOrigin(from)));
  dialect->getCostsAttrHelper().setAttr(to, builder.getArrayAttr(entries));
  for (StringAttr name :
       {dialect->getBufferIdsAttrHelper().getName(), dialect->getRowBlockAttrHelper().getName(),
        dialect->getStageAttrHelper().getName()})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

/// The text of a function without name and locations, to compare functions.
static std::string getCode(emitc::FuncOp function) {
  std::string name = function.getSymName().str(), code;
  function.setSymName("kernel");
  llvm::raw_string_ostream stream(code);
  function->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  function.setSymName(name);
  return code;
}

/// The name of the function of `kernel`; kernels with the same code share a function.
FailureOr<std::string> OutlineKernelsPass::outlineFunction(RowKernelOp kernel,
                                                           KernelOutliner &outliner,
                                                           KernelTarget &target,
                                                           OpBuilder &builder) {
  EmitCBuilder b(builder, kernel.getLoc());
  emitc::VerbatimOp comment = b.comment(getComment(kernel));
  FailureOr<emitc::FuncOp> function = outliner.outline(getStepOpName(kernel));
  if (failed(function))
    return failure();
  std::string code = getCode(*function);
  auto [known, isNew] = functions.try_emplace(code);
  if (isNew) {
    known->second = makeUnique(function->getSymName().str());
    function->setSymName(known->second);
    target.describe(b, known->second);
    outliner.describePools(known->second);
    ++kernels;
    loops += outliner.loopCount;
    arrays += outliner.arrayCount;
  } else {
    comment->erase();
    function->erase();
  }
  return known->second;
}

LogicalResult OutlineKernelsPass::outlineKernel(RowKernelOp kernel, const ModelIndex &index,
                                                const Target &target) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  std::unique_ptr<KernelTarget> kernelTarget = createKernelTarget(target, kernel, false);
  KernelOutliner outliner(kernel, index, *kernelTarget, builder);
  FailureOr<std::string> function = outlineFunction(kernel, outliner, *kernelTarget, builder);
  if (failed(function))
    return failure();

  SmallVector<OpCost> costs = getCosts(kernel);
  builder.setInsertionPoint(kernel);
  Value domain =
      lookupDomainValue(kernel->getParentOfType<ProgramOp>(), outliner.getLaunchDomain());
  auto launch = LaunchOp::create(builder, kernel.getLoc(), kernel.getResultTypes(), *function,
                                 domain, kernel.getInputs(), outliner.getGrain(),
                                 outliner.getAccumulatedResults(), outliner.splitsLists());
  copyAttributes(kernel, costs, launch);
  kernel->replaceAllUsesWith(launch);
  kernel->erase();
  ++launches;
  return success();
}

/// Creates a row kernel for one column, before `op`.
static RowKernelOp makeColumnKernel(TransformColumnsOp op,
                                    const TransformColumnsOp::Column &column) {
  OpBuilder builder(op);
  MLIRContext *context = op.getContext();
  Value domain = op.getColumnDomain(column);
  FlatSymbolRefAttr own = cast<DomainType>(domain.getType()).getDomain();
  SmallVector<Attribute> roles;
  for (unsigned index = 0; index < column.inputs.size(); ++index)
    roles.push_back(OperandRoleAttr::get(context, op.getInputRole(column, index)));
  Attribute result = ResultRoleAttr::get(context, ResultRole::aligned);
  auto kernel =
      RowKernelOp::create(builder, op.getLoc(), getRowsType(own, {}, builder.getI64Type()), domain,
                          column.inputs, builder.getArrayAttr(roles), builder.getArrayAttr(result),
                          /*pool_kinds=*/ArrayAttr(), op.getNameAttr());
  IRMapping mapping;
  op.getBodies()[column.program].cloneInto(&kernel.getBody(), mapping);
  return kernel;
}

/// Emits the kernel that runs all columns on a device, by their program; its name.
std::string OutlineKernelsPass::emitColumnsOf(TransformColumnsOp op, const ModelIndex &index,
                                              ArrayRef<Attribute> functions) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  SmallVector<std::string> bodies;
  SmallVector<SmallVector<int64_t>> columns;
  int64_t pointers = 0;
  auto getNumber = [&](Value domain) {
    return index.getDomain(cast<DomainType>(domain.getType()).getDomain());
  };
  for (Attribute function : functions)
    bodies.push_back(cast<FlatSymbolRefAttr>(function).getValue().str());
  for (const TransformColumnsOp::Column &column : op.getColumns()) {
    int64_t count = static_cast<int64_t>(column.inputs.size()) + 1;
    columns.push_back({column.program, count, getNumber(op.getColumnDomain(column))});
    pointers += count;
  }
  std::string name = makeUnique("run_" + getStepOpName(op));
  emitColumnsKernel(EmitCBuilder(builder, op.getLoc()), name, bodies, columns, pointers);
  return name;
}

/// Creates one function per column program and one launch for all columns. On a device the last
/// kernel of the launch is the one that runs them all.
LogicalResult OutlineKernelsPass::outlineColumns(TransformColumnsOp op, const ModelIndex &index,
                                                 const Target &target) {
  OpBuilder builder(&getContext());
  SmallVector<Attribute> functions(op.getBodies().size());
  SmallVector<int64_t> columns;
  for (const TransformColumnsOp::Column &column : op.getColumns()) {
    Attribute &name = functions[column.program];
    if (!name) {
      builder.setInsertionPointToEnd(getOperation().getBody());
      RowKernelOp kernel = makeColumnKernel(op, column);
      std::unique_ptr<KernelTarget> kernelTarget = createKernelTarget(target, kernel, true);
      KernelOutliner outliner(kernel, index, *kernelTarget, builder);
      FailureOr<std::string> function = outlineFunction(kernel, outliner, *kernelTarget, builder);
      if (failed(function))
        return failure();
      name = FlatSymbolRefAttr::get(&getContext(), *function);
      kernel->erase();
    }
    columns.append(
        {column.program, static_cast<int64_t>(column.inputs.size()), column.result, column.part});
  }
  if (target.hasDevice)
    functions.push_back(FlatSymbolRefAttr::get(&getContext(), emitColumnsOf(op, index, functions)));
  builder.setInsertionPoint(op);
  auto launch = LaunchColumnsOp::create(builder, op.getLoc(), op.getResultTypes(), op.getInputs(),
                                        op.getDomains(), builder.getArrayAttr(functions), columns);
  copyAttributes(op, getCosts(op), launch);
  op->replaceAllUsesWith(launch);
  op->erase();
  ++launches;
  return success();
}

/// Records at each feature the table that its ids are looked up in, as this cannot be found any
/// more once the bodies of columns are functions.
static void noteTables(const ModelIndex &index) {
  for (ProgramOp program : index.programs)
    for (auto feature : program.getBody().front().getOps<FeatureOp>()) {
      auto domain = cast<DomainType>(feature.getDomain().getType()).getDomain();
      const FeatureEntry &entry = index.features[index.getFeature(domain, feature.getColumnAttr())];
      if (entry.table)
        feature->setAttr(GenRecDialect::TableAttrHelper::getNameStr(), entry.table);
    }
}

LogicalResult OutlineKernelsPass::outlineModel(ModelOp model, const Target &target) {
  ModelIndex index(model);
  noteTables(index);
  for (ProgramOp program : index.programs)
    for (auto op :
         llvm::make_early_inc_range(program.getBody().front().getOps<TransformColumnsOp>()))
      if (failed(outlineColumns(op, index, target)))
        return failure();
  for (ProgramOp program : index.programs)
    for (auto kernel : llvm::make_early_inc_range(program.getBody().front().getOps<RowKernelOp>()))
      if (failed(outlineKernel(kernel, index, target)))
        return failure();
  return success();
}

void OutlineKernelsPass::runOnOperation() {
  const Target &target = Target::of(getOperation());
  functions.clear();
  names.clear();
  for (auto model : llvm::make_early_inc_range(getOperation().getOps<ModelOp>()))
    if (failed(outlineModel(model, target)))
      return signalPassFailure();
  if (target.hasDevice)
    moveTablesToDevice(getOperation());
}
