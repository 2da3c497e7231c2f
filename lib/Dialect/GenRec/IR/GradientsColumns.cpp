//===- GradientsColumns.cpp - gradients along rows, dense layers, losses --===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Along a row
//===----------------------------------------------------------------------===//

LogicalResult
RowReduceOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value x = getX(), g = resultGradients[0];
  if (!isDifferentiable(x.getType())) {
    operandGradients.push_back(Value());
    return success();
  }
  if (getKind() == ReduceKind::mean)
    g = b.mul(g, 1.0 / getRowSize(x.getType()));
  if (getKind() != ReduceKind::max) {
    operandGradients.push_back(b.repeatTo(g, x.getType()));
    return success();
  }
  Value isLargest = b.compare(CompareKind::eq, x, getResult());
  Value mask = CastOp::create(builder, getLoc(), x.getType(), isLargest);
  Value count = b.rowReduce(ReduceKind::sum, mask);
  operandGradients.push_back(b.maskWith(isLargest, b.div(g, count)));
  return success();
}

LogicalResult
ConcatColumnsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                               SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  int64_t offset = 0;
  for (Value part : getParts()) {
    int64_t size = getRowSize(part.getType());
    Value gradient;
    if (isDifferentiable(part.getType())) {
      gradient = b.slice(resultGradients[0], offset, size);
      gradient = b.reduceTo(gradient, part.getType());
    }
    operandGradients.push_back(gradient);
    offset += size;
  }
  return success();
}

LogicalResult
SliceColumnsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                              SmallVectorImpl<Value> &operandGradients) {
  Value gradient;
  if (isDifferentiable(getX().getType()))
    gradient = PadColumnsOp::create(builder, getLoc(), getX().getType(),
                                    resultGradients[0], getOffset());
  operandGradients.push_back(gradient);
  return success();
}

LogicalResult
PadColumnsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                            SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  operandGradients.push_back(b.slice(resultGradients[0], getOffset(),
                                     getRowSize(getX().getType())));
  return success();
}

// The gradient uses the same stream, and hence the same mask.
LogicalResult
DropoutOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         SmallVectorImpl<Value> &operandGradients) {
  Value g = resultGradients[0];
  operandGradients.push_back(DropoutOp::create(
      builder, getLoc(), g.getType(), g, getRateAttr(), getStreamAttr()));
  return success();
}

//===----------------------------------------------------------------------===//
// Dense layers and embeddings
//===----------------------------------------------------------------------===//

LogicalResult
LinearOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value g = resultGradients[0];
  operandGradients.push_back(
      LinearOp::create(builder, getLoc(), getX().getType(), g, getWeight(),
                       /*bias=*/Value(), /*transposed=*/!getTransposed()));
  Value x = getX(), y = g;
  if (getTransposed())
    std::swap(x, y);
  operandGradients.push_back(WeightGradientOp::create(
      builder, getLoc(), getWeight().getType(), x, y));
  if (getBias())
    operandGradients.push_back(b.reduceRows(g));
  return success();
}

LogicalResult DotInteractionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                              SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(DotInteractionGradOp::create(builder, getLoc(), getX().getType(),
                                                          getX(), resultGradients[0],
                                                          getCountAttr(), getSelfAttr()));
  return success();
}

LogicalResult SplitSharedOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                           SmallVectorImpl<Value> &operandGradients) {
  SmallVector<Value> parts(resultGradients);
  for (auto [part, own] : llvm::zip_equal(parts, getParts()))
    if (!part) // no loss depends on it
      part = SubOp::create(builder, getLoc(), own.getType(), own, own);
  operandGradients.push_back(ConcatSharedOp::create(builder, getLoc(), getX().getType(), parts));
  return success();
}

LogicalResult ConcatSharedOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                            SmallVectorImpl<Value> &operandGradients) {
  auto split = SplitSharedOp::create(builder, getLoc(), getParts().getTypes(), resultGradients[0]);
  operandGradients.append(split.getParts().begin(), split.getParts().end());
  return success();
}

// The gradients of all lookups of a table become one update, which `differentiate` creates.
LogicalResult
LookupOp::buildGradient(OpBuilder &, ValueRange,
                        SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(getNumOperands(), Value());
  return success();
}

LogicalResult
EmbeddingOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(Value());
  operandGradients.push_back(
      EmbeddingGradOp::create(builder, getLoc(), getWeight().getType(),
                              getIndex(), resultGradients[0]));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult
AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           SmallVectorImpl<Value> &operandGradients) {
  auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
  auto gradients = AttentionGradOp::create(
      builder, getLoc(), getQ().getType(), getK().getType(), getV().getType(),
      typeOf(getPositionBias()), typeOf(getTimeBias()), getQ(), getK(), getV(), getPositionBias(),
      getTimeBias(), getTime(), getTarget(), getResult(), resultGradients[0], getHeadsAttr(),
      getScoreAttr(), getCausalAttr(), getWindowAttr(), getContextualAttr(), getScaleAttr(),
      getFixedLengthAttr(), getNextEventTimeAttr(), getDropoutAttr(), getStreamAttr());
  operandGradients.append(
      {gradients.getDq(), gradients.getDk(), gradients.getDv()});
  if (getPositionBias())
    operandGradients.push_back(gradients.getDpositionBias());
  if (getTimeBias())
    operandGradients.push_back(gradients.getDtimeBias());
  if (getTime())
    operandGradients.push_back(Value());
  if (getTarget())
    operandGradients.push_back(Value());
  return success();
}

LogicalResult CrossAttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                              SmallVectorImpl<Value> &operandGradients) {
  auto gradients = CrossAttentionGradOp::create(
      builder, getLoc(), getQ().getType(), getK().getType(), getV().getType(), getQ(), getK(),
      getV(), resultGradients[0], getHeadsAttr(), getScaleAttr());
  operandGradients.append({gradients.getDq(), gradients.getDk(), gradients.getDv()});
  return success();
}

//===----------------------------------------------------------------------===//
// Losses and scores
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyOp::buildGradient(
    OpBuilder &builder, ValueRange resultGradients,
    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(
      SoftmaxCrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(), getLogits(),
                                        getLabel(), resultGradients[0], /*log_sum_exp=*/Value(),
                                        /*first=*/builder.getI64IntegerAttr(0),
                                        getLabelSmoothingAttr()));
  operandGradients.push_back(Value());
  return success();
}

LogicalResult SampledSoftmaxOp::buildGradient(
    OpBuilder &builder, ValueRange resultGradients,
    SmallVectorImpl<Value> &operandGradients) {
  auto gradients = SampledSoftmaxGradOp::create(
      builder, getLoc(), getQuery().getType(), getItems().getType(), getQuery(),
      getPositive(), getItems(), resultGradients[0], getDrawn(), getNegativesAttr(),
      getSharedAttr(), getTemperatureAttr(), getStreamAttr());
  operandGradients.append(
      {gradients.getDquery(), Value(), gradients.getDitems()});
  if (getDrawn())
    operandGradients.push_back(Value());
  return success();
}

LogicalResult InBatchSoftmaxOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                              SmallVectorImpl<Value> &operandGradients) {
  if (resultGradients[1])
    return emitOpError("has a loss that depends on 'kept', which is for the op's own gradient");
  auto gradients = InBatchSoftmaxGradOp::create(
      builder, getLoc(), getQuery().getType(), getItem().getType(), getQuery(), getItem(), getId(),
      getKept(), resultGradients[0], getLogQ(), getValid(), getTemperatureAttr());
  operandGradients.append({gradients.getDquery(), gradients.getDitem()});
  operandGradients.resize(getNumOperands()); // the others have none
  return success();
}

LogicalResult
ScoresOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                        SmallVectorImpl<Value> &operandGradients) {
  auto gradients = ScoresGradOp::create(
      builder, getLoc(), getQuery().getType(), getItems().getType(), getQuery(), getItems(),
      resultGradients[0], /*onto=*/ValueRange(), getFirst(), getPartial());
  operandGradients.append({gradients.getDquery(), gradients.getDitems()});
  return success();
}
