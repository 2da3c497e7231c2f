//===- Decompositions.cpp - decompositions of composite ops ---------------===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

/// (x - mean) / sqrt(variance + eps) along each row.
static Value buildNormalization(GradientBuilder &b, Value x, double eps) {
  Value mean = b.rowReduce(ReduceKind::mean, x);
  Value centered = b.sub(x, mean);
  Value variance =
      b.rowReduce(ReduceKind::mean, b.unary<SquareOp>(centered));
  Value inverse =
      b.unary<RsqrtOp>(b.add(variance, b.constant(eps, x.getType())));
  return b.mul(centered, inverse);
}

LogicalResult LayerNormOp::decompose(OpBuilder &builder,
                                     SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value y = buildNormalization(b, getX(), getEps().convertToDouble());
  if (getScale())
    y = b.mul(y, getScale());
  if (getBias())
    y = b.add(y, getBias());
  results.push_back(y);
  return success();
}

LogicalResult RmsNormOp::decompose(OpBuilder &builder,
                                   SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value x = getX();
  Value square = b.rowReduce(ReduceKind::mean, b.unary<SquareOp>(x));
  Value eps = b.constant(getEps().convertToDouble(), x.getType());
  Value y = b.mul(x, b.unary<RsqrtOp>(b.add(square, eps)));
  if (getScale())
    y = b.mul(y, getScale());
  results.push_back(y);
  return success();
}

// max(norm, eps) is computed as sqrt(max(norm², eps²)), whose gradient at x = 0 is 0 rather than 0
// * infinity.
LogicalResult L2NormalizeOp::decompose(OpBuilder &builder,
                                       SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value x = getX();
  double eps = getEps().convertToDouble();
  Value square = b.rowReduce(ReduceKind::sum, b.unary<SquareOp>(x));
  Value bounded = b.maximum(square, b.constant(eps * eps, x.getType()));
  results.push_back(b.mul(x, b.unary<RsqrtOp>(bounded)));
  return success();
}

// The label gets no gradient.
LogicalResult BceWithLogitsOp::decompose(OpBuilder &builder,
                                         SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value label = getLabel();
  if (!isa_and_nonnull<FeatureOp>(label.getDefiningOp()))
    label = b.unary<DetachOp>(label);
  Value softplus = b.unary<SoftplusOp>(getLogit());
  results.push_back(b.sub(softplus, b.mul(label, getLogit())));
  return success();
}

LogicalResult HstuBlockOp::decompose(OpBuilder &builder,
                                     SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value x = getX();
  double eps = getEps().convertToDouble();
  int64_t heads = getHeads();
  int64_t widthV = heads * static_cast<int64_t>(getDv());
  int64_t widthQk = heads * static_cast<int64_t>(getQk());

  Type jointType = withRowShape(x.getType(), {2 * widthV + 2 * widthQk});
  Value joint =
      LinearOp::create(builder, getLoc(), jointType,
                       buildNormalization(b, x, eps), getUvqk(),
                       /*bias=*/Value(), /*transposed=*/false);
  joint = b.unary<SiluOp>(joint);
  Value u = b.slice(joint, 0, widthV);
  Value v = b.slice(joint, widthV, widthV);
  Value q = b.slice(joint, 2 * widthV, widthQk);
  Value k = b.slice(joint, 2 * widthV + widthQk, widthQk);

  Value attended = AttentionOp::create(builder, getLoc(), v.getType(), q, k, v, getPositionBias(),
                                       getTimeBias(), getTime(), getTarget(), getHeadsAttr(),
                                       getScoreAttr(), getCausalAttr(), getWindowAttr(),
                                       getContextualAttr(), getScaleAttr(), getFixedLengthAttr(),
                                       getNextEventTimeAttr(), getDropoutAttr(), getStreamAttr());
  Value gated = b.mul(u, buildNormalization(b, attended, eps));
  if (getLinearDropout().convertToDouble() > 0.0)
    gated = DropoutOp::create(
        builder, getLoc(), gated.getType(), gated, getLinearDropoutAttr(),
        builder.getI64IntegerAttr(getStream() + 1));
  Value projected =
      LinearOp::create(builder, getLoc(), x.getType(), gated, getOutWeight(),
                       getOutBias(), /*transposed=*/false);
  results.push_back(b.add(x, projected));
  return success();
}
