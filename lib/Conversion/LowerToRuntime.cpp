//===- LowerToRuntime.cpp - turns programs into stage functions -----------===//

#include "KernelOutliner.h"
#include "StageBuilder.h"

#include "genrec/Conversion/Passes.h"

namespace genrec {
#define GEN_PASS_DEF_LOWERTORUNTIME
#include "genrec/Conversion/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
struct LowerToRuntimePass : genrec::impl::LowerToRuntimeBase<LowerToRuntimePass> {
  using LowerToRuntimeBase::LowerToRuntimeBase;

  void runOnOperation() override {
    for (auto model : llvm::make_early_inc_range(getOperation().getOps<ModelOp>()))
      if (failed(lowerModel(model)))
        return signalPassFailure();
  }

private:
  LogicalResult lowerModel(ModelOp model);
  LogicalResult lowerOp(Operation *op, StageBuilder &stage);
  void enterOp(Operation *op, StageBuilder &stage);
  void checkResults(Operation *op, StageBuilder &stage);
  void lowerLaunch(LaunchOp launch, StageBuilder &stage);
  void lowerLaunchColumns(LaunchColumnsOp launch, StageBuilder &stage);
};
} // namespace

// launch(step, domain, grain, kernel, pointers...), or, where rows add up,
// launchSums<n>(step, domain, grain, kernel, out, size, ..., pointers...).
void LowerToRuntimePass::lowerLaunch(LaunchOp launch, StageBuilder &stage) {
  SmallVector<Value> inputs, sums, outputs;
  for (Value input : launch.getInputs()) {
    if (ParameterOp parameter = getRowsParameter(input)) {
      int64_t number = stage.index.getParameter(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      inputs.push_back(stage.getParameterMember(number, "value"));
      inputs.push_back(stage.getParameterMember(number, "state"));
    } else {
      inputs.push_back(stage.getPointer(input));
    }
  }
  EmitCBuilder b = stage.at(launch);
  ArrayRef<int64_t> accumulators = launch.getAccumulators();
  for (auto [number, result] : llvm::enumerate(launch.getResults())) {
    Value pointer = stage.getPointer(result);
    if (!llvm::is_contained(accumulators, static_cast<int64_t>(number))) {
      outputs.push_back(pointer);
      continue;
    }
    sums.push_back(pointer);
    sums.push_back(getAccumulatorSize(b, stage.getStep(), stage.index, result));
  }
  Value domain = stage.getDomain(launch.getDomain());
  SmallVector<Value> operands = {stage.getStep(), domain,
                                 b.integer(static_cast<int64_t>(launch.getGrain())),
                                 b.literal(launch.getKernel(), b.opaque("genrec_rt_chunk_fn"))};
  operands.append(sums);
  operands.append(inputs);
  operands.append(outputs);
  if (accumulators.empty())
    b.callVoid("kernels::launch", operands);
  else
    b.callVoid("kernels::launchSums", operands,
               {b.templateInteger(static_cast<int64_t>(accumulators.size()))});
}

// launchColumns(step, count, kernels, domains, arguments), three arrays by column.
void LowerToRuntimePass::lowerLaunchColumns(LaunchColumnsOp launch, StageBuilder &stage) {
  EmitCBuilder b = stage.at(launch);
  Type function = b.opaque("genrec_rt_chunk_fn"), domain = b.pointer(b.opaque("const genrec_domain"));
  SmallVector<Value> functions, domains, arguments;
  unsigned next = 0;
  ArrayRef<int64_t> columns = launch.getColumns();
  for (; !columns.empty(); columns = columns.drop_front(4)) {
    auto name = cast<FlatSymbolRefAttr>(launch.getKernels()[columns[0]]);
    auto stack = launch.getDomains()[columns[2]].getDefiningOp<StackDomainsOp>();
    functions.push_back(b.literal(name.getValue(), function));
    domains.push_back(stage.getDomain(stack.getParts()[columns[3]]));
    SmallVector<Value> pointers{stage.getStep()};
    for (Value input : launch.getInputs().slice(next, columns[1]))
      pointers.push_back(stage.getPointer(input));
    next += columns[1];
    pointers.push_back(stage.getPartPointer(launch.getResult(columns[2]), stack.getResult(), columns[3]));
    arguments.push_back(stage.makeArray(b.named("column"), b.voidPointer(), pointers));
  }
  b.callVoid("kernels::launchColumns",
             {stage.getStep(), b.integer(functions.size()), stage.makeArray(b.named("kernels_of"), function, functions),
              stage.makeArray(b.named("domains_of"), domain, domains),
              stage.makeArray(b.named("arguments_of"), b.pointer(b.voidPointer()), arguments)});
}

// What --check-finite looks at: floats, after the op that made them.
void LowerToRuntimePass::checkResults(Operation *op, StageBuilder &stage) {
  if (isa<StepValueOp>(op))
    return;
  for (Value result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !type.getElementType().isF32())
      continue;
    EmitCBuilder b = stage.at(op->getLoc());
    Value count = getRowDomain(type) ? stage.getCount(result) : b.integer(1);
    int64_t size = getRowSize(type), stride = getRowDomain(type) ? getRowPlace(result).stride : size;
    b.callVoid("kernels::checkFinite", {stage.getStep(), stage.getOpNumber(op),
                                        stage.getPointer(result), count, b.integer(size),
                                        b.integer(stride)});
  }
}

// What --profile measures: the op begins.
void LowerToRuntimePass::enterOp(Operation *op, StageBuilder &stage) {
  if (isStepOp(op))
    stage.at(op).callVoid("kernels::enter", {stage.getStep(), stage.getOpNumber(op)});
}

LogicalResult LowerToRuntimePass::lowerOp(Operation *op, StageBuilder &stage) {
  enterOp(op, stage);
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    lowerLaunch(launch, stage);
    checkResults(op, stage);
    return success();
  }
  if (auto launch = dyn_cast<LaunchColumnsOp>(op)) {
    lowerLaunchColumns(launch, stage);
    return success();
  }
  // Values that stages reach where they use them.
  if (isView(op) || isDeclaration(op))
    return success();
  bool matched = false;
  for (auto *lower : {lowerDomainOp, lowerDenseOp, lowerTableOp, lowerSinkOp}) {
    if (failed(lower(op, stage, matched)))
      return failure();
    if (matched) {
      ++libraryCalls;
      checkResults(op, stage);
      return success();
    }
  }
  return op->emitOpError("has no lowering to a call of the runtime");
}

/// Ends the function of a run of calls that `op` (null: none) is not of, and begins its own.
static void moveToBlock(Operation *op, StageBuilder &stage) {
  RowBlockRun run = op ? getRowBlock(op) : RowBlockRun();
  if (run.number == stage.getBlock())
    return;
  if (stage.getBlock() >= 0)
    stage.endBlock();
  if (run.number >= 0)
    stage.beginBlock(run);
}

LogicalResult LowerToRuntimePass::lowerModel(ModelOp model) {
  ModelIndex index(model);
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  SmallVector<std::array<std::string, 3>> names;
  SmallVector<StepOp> ops;
  for (ProgramOp program : index.programs) {
    names.emplace_back();
    for (Stage stage : {Stage::copy, Stage::dispatch, Stage::compute}) {
      StageBuilder functions(program, index, ops, builder);
      functions.begin(stage);
      for (Operation &op : program.getBody().front()) {
        if (getStage(&op) != stage || isView(&op))
          continue;
        moveToBlock(&op, functions);
        if (failed(lowerOp(&op, functions)))
          return failure();
      }
      moveToBlock(/*op=*/nullptr, functions);
      if (!functions.isEmpty()) {
        names.back()[static_cast<unsigned>(stage)] = functions.getFunction().getSymName().str();
        ++stages;
      }
      functions.end();
    }
  }
  emitDescription(index, names, ops, compiler, builder);
  model->erase();
  return success();
}
