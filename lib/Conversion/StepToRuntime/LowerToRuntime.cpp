//===- LowerToRuntime.cpp - turns programs into stage functions -----------===//

#include "Description.h"

#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

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
};
} // namespace

// --check-finite checks results after the op that computed them. Those of a launch of several
// kernels are checked where these were.
void LowerToRuntimePass::checkResults(Operation *op, StageBuilder &stage) {
  auto step = cast<StepOpInterface>(op);
  auto isOfKernel = [](Operation *user) { return isa<LaunchedKernelOp>(user); };
  for (OpResult result : op->getResults())
    if (step.ownsResult(result.getResultNumber()) && llvm::none_of(result.getUsers(), isOfKernel))
      stage.checkFinite(op, result);
}

// --profile: marks the beginning of the op.
void LowerToRuntimePass::enterOp(Operation *op, StageBuilder &stage) {
  if (isStepOp(op))
    stage.at(op).callVoid("kernels::enter", {stage.getStep(), stage.getOpNumber(op)});
}

LogicalResult LowerToRuntimePass::lowerOp(Operation *op, StageBuilder &stage) {
  auto step = dyn_cast<StepOpInterface>(op);
  if (!step)
    return op->emitOpError("has no lowering to a call of the runtime");
  enterOp(op, stage);
  // Views and declarations have no code of their own.
  if (isView(op) || isDeclaration(op))
    return success();
  if (failed(step.lower(stage)))
    return failure();
  if (step.getStepKind() != StepKind::kernel)
    ++libraryCalls;
  if (isStepOp(op))
    checkResults(op, stage);
  return success();
}

/// Ends the function of the current run of calls unless `op` (null: none) belongs to it, and begins
/// that of the run that `op` belongs to.
static void moveToBlock(Operation *op, StageBuilder &stage) {
  RowBlockAttr run = op ? getRowBlock(op) : RowBlockAttr();
  if (run == stage.getBlock())
    return;
  if (stage.getBlock())
    stage.endBlock();
  if (run)
    stage.beginBlock(run);
}

LogicalResult LowerToRuntimePass::lowerModel(ModelOp model) {
  ModelIndex index(model);
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  SmallVector<StageNames> names;
  SmallVector<StepOp> ops;
  for (ProgramOp program : index.programs) {
    names.emplace_back();
    for (Stage stage : {Stage::copy, Stage::dispatch, Stage::compute, Stage::update}) {
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
  if (Target::of(getOperation()).hasDevice)
    moveTablesToDevice(getOperation());
  emitDescription(index, names, ops, compiler, builder);
  model->erase();
  return success();
}
