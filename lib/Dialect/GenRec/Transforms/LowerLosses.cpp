//===- LowerLosses.cpp - losses as sums and gradients ---------------------===//

#include "LowerLosses.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

/// The weight of every row: the declared one or 1, and 0 if not valid.
static Value buildRowWeight(GradientBuilder &b, Value x, Value weight,
                            Value valid) {
  if (weight)
    return valid ? b.maskWith(valid, weight) : weight;
  if (valid)
    return CastOp::create(b.builder, b.loc, x.getType(), valid);
  return BroadcastRowsOp::create(b.builder, b.loc, x.getType(),
                                 b.constant(1.0, x.getType()),
                                 b.domainOf(x.getType()));
}

/// Checks weights where they come from, so that a column is named and nothing is converted for it.
static void requireWeights(OpBuilder &builder, LossOp loss) {
  Value weight = loss.getWeight();
  while (auto cast = weight.getDefiningOp<CastOp>()) {
    Type element = llvm::cast<RankedTensorType>(cast.getX().getType()).getElementType();
    if (element.isInteger(1))
      return; // 0 or 1
    if (element.isBF16())
      break;
    weight = cast.getX();
  }
  RequireRangeOp::create(builder, loss.getLoc(),
                         builder.getStringAttr("the weight of the loss '" + loss.getName() + "'"),
                         weight, /*weight=*/Value(), loss.getValid(), /*items=*/Value(),
                         builder.getF64FloatAttr(0.0), /*max=*/FloatAttr());
}

LoweredLoss genrec::lowerLoss(LossOp loss) {
  OpBuilder builder(loss);
  if (loss.getWeight())
    requireWeights(builder, loss);
  GradientBuilder b(builder, loss.getLoc());
  LoweredLoss lowered{loss.getX(), loss.getWeight(), loss.getValid(),
                      Value(),     Value(),          loss.getScale().convertToDouble(),
                      loss.getLoc()};
  Value x = lowered.x;
  if (lowered.weight)
    x = b.mul(x, lowered.weight);
  // Masks by a select, as a weight of 0 would not remove a NaN.
  if (lowered.valid)
    x = b.maskWith(lowered.valid, x);
  lowered.sum = b.reduceRows(x);
  lowered.total = b.reduceRows(
      buildRowWeight(b, lowered.x, lowered.weight, lowered.valid));
  ReportLossOp::create(builder, loss.getLoc(), lowered.sum, lowered.total,
                       loss.getNameAttr(), loss.getScaleAttr());
  loss.erase();
  return lowered;
}

LossSeeds genrec::buildLossSeeds(OpBuilder &builder, const LoweredLoss &loss,
                                 bool wantsWeight) {
  GradientBuilder b(builder, loss.loc);
  Type type = loss.x.getType();
  Value zero = b.constant(0.0, type), one = b.constant(1.0, type);
  Value isWeighted = b.compare(CompareKind::ne, loss.total, zero);
  Value divisor = b.select(isWeighted, loss.total, one);
  Value scale = b.select(isWeighted, b.constant(loss.scale, type), zero);
  Value perWeight = b.div(scale, divisor);

  LossSeeds seeds;
  Value rowWeight = buildRowWeight(b, loss.x, loss.weight, loss.valid);
  seeds.x = b.mul(rowWeight, perWeight);
  if (wantsWeight && loss.weight) {
    Value mean = b.div(loss.sum, divisor);
    seeds.weight = b.mul(b.sub(loss.x, mean), perWeight);
    if (loss.valid)
      seeds.weight = b.maskWith(loss.valid, seeds.weight);
  }
  return seeds;
}
