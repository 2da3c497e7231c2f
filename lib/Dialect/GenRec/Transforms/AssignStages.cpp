//===- AssignStages.cpp - assigns ops to stages of a step -----------------===//

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// Ops that read weights, table rows or step values, and ops that report to the trainer.
static bool belongsToStep(Operation *op) {
  return op->getNumResults() == 0 || op->hasTrait<NeedsRunningStep>() ||
         (op->getNumRegions() != 0 && !isa<TransformColumnsOp>(op));
}

/// Float results are computed in the stage of their users.
static bool makesFloats(Operation *op) {
  if (isa<FeatureOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<FloatType>(tensor.getElementType());
  });
}

namespace {
struct AssignStages : genrec::impl::AssignStagesBase<AssignStages> {
  void runOnOperation() override {
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      assign(program);
  }

  void assign(ProgramOp program) {
    DenseSet<Value> ofCopy;
    auto isReady = [&](Value value) { return ofCopy.contains(value); };
    // Floats of derived rows are moved to the copy stage if keys are computed from them.
    auto canMove = [&](Value value) {
      auto derive = value.getDefiningOp<DeriveOp>();
      return derive && llvm::all_of(derive->getOperands(), isReady);
    };
    for (Operation &op : program.getBody().front()) {
      if (belongsToStep(&op) || makesFloats(&op) ||
          !llvm::all_of(op.getOperands(),
                        [&](Value operand) { return isReady(operand) || canMove(operand); }))
        continue;
      ofCopy.insert(op.operand_begin(), op.operand_end());
      ofCopy.insert(op.result_begin(), op.result_end());
    }
    for (Operation &op : program.getBody().front()) {
      bool isCopy = op.getNumResults() != 0 && isReady(op.getResult(0));
      if (isCopy)
        countStatistic(*this, copyOps, "copy-ops", 1);
      else
        countStatistic(*this, computeOps, "compute-ops", 1);
      Stage stage = isCopy ? Stage::copy : Stage::compute;
      op.setAttr(GenRecDialect::StageAttrHelper::getNameStr(), StageAttr::get(&getContext(), stage));
    }
  }
};
} // namespace
