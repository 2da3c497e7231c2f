//===- Damage.cpp - scales a gradient, to test the checks -----------------===//

#include "genrec/Fuzz/Damage.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

bool fuzz::scaleGradient(ModelOp model, uint64_t choice, double factor) {
  SmallVector<OpOperand *> gradients;
  model.walk([&](Operation *op) {
    if (auto update = dyn_cast<UpdateParameterOp>(op))
      gradients.push_back(&update.getGradientMutable());
    if (auto update = dyn_cast<UpdateTableOp>(op))
      for (OpOperand &gradient : update.getGradientsMutable())
        gradients.push_back(&gradient);
  });
  if (gradients.empty())
    return false;
  OpOperand *gradient = gradients[choice % gradients.size()];
  OpBuilder builder(gradient->getOwner());
  Location loc = gradient->getOwner()->getLoc();
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value scale = ConstantOp::create(builder, loc, scalar,
                                   DenseElementsAttr::get(scalar, static_cast<float>(factor)));
  gradient->set(MulOp::create(builder, loc, gradient->get().getType(), gradient->get(), scale));
  return true;
}
