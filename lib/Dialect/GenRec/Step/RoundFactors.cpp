//===- RoundFactors.cpp - rounds a factor once for all that multiply it ---===//

#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

#include "mlir/IR/TypeUtilities.h"

namespace genrec {
#define GEN_PASS_DEF_ROUNDFACTORS
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

static void copyStage(Operation *from, Operation *to) {
  StringRef name = GenRecDialect::StageAttrHelper::getNameStr();
  if (Attribute stage = from->getDiscardableAttr(name))
    to->setDiscardableAttr(name, stage);
}

namespace {
struct RoundFactors : genrec::impl::RoundFactorsBase<RoundFactors> {
  void runOnOperation() override {
    unsigned roundedBefore = 0;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      SmallVector<ProductOpInterface> products(
          program.getBody().front().getOps<ProductOpInterface>());
      llvm::DenseMap<Value, Value> rounded;
      for (ProductOpInterface product : products)
        if (product.getBf16())
          roundOperands(product, rounded);
      for (ProductOpInterface product : products)
        if (getElementTypeOrSelf(product->getOperand(0).getType()).isBF16())
          sliceActivations(product);
      roundedBefore += rounded.size();
    }
    if (roundedBefore == 0)
      return markAllAnalysesPreserved();
    factors += roundedBefore;
  }

private:
  void roundOperands(ProductOpInterface product, DenseMap<Value, Value> &rounded);
  void sliceActivations(ProductOpInterface product);
};
} // namespace

/// The cast stands where the value is made, so that one kernel makes both, in the stage of its
/// readers: the copy of a batch computes nothing.
void RoundFactors::roundOperands(ProductOpInterface product, DenseMap<Value, Value> &rounded) {
  auto step = dyn_cast<StepOpInterface>(product.getOperation());
  if (!step)
    return;
  for (OpOperand &operand : product->getOpOperands()) {
    Value factor = operand.get();
    Operation *maker = factor.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(factor.getType());
    if (!maker || !type || !type.getElementType().isF32() ||
        !step.takesRounded(operand.getOperandNumber()))
      continue;
    Value &cast = rounded[factor];
    if (!cast) {
      OpBuilder builder(maker->getContext());
      builder.setInsertionPointAfter(maker);
      cast = CastOp::create(builder, factor.getLoc(), type.clone(builder.getBF16Type()), factor);
      copyStage(product, cast.getDefiningOp());
    }
    operand.set(cast);
  }
}

/// activation(x)[slice] becomes activation(x[slice]) where slices are all that reads it.
void RoundFactors::sliceActivations(ProductOpInterface product) {
  for (Operation *activation : llvm::make_early_inc_range(product->getUsers())) {
    if (!isa<ActivationOpInterface>(activation) || activation->use_empty() ||
        !llvm::all_of(activation->getUsers(), llvm::IsaPred<SliceColumnsOp>))
      continue;
    for (Operation *user : llvm::make_early_inc_range(activation->getUsers())) {
      OpBuilder builder(user);
      Operation *slice = builder.clone(*user);
      slice->setOperand(0, activation->getOperand(0));
      Operation *applied = builder.clone(*activation);
      applied->setOperand(0, slice->getResult(0));
      applied->getResult(0).setType(slice->getResult(0).getType());
      copyStage(user, applied);
      user->getResult(0).replaceAllUsesWith(applied->getResult(0));
      user->erase();
    }
    activation->erase();
    ++sliced;
  }
}
