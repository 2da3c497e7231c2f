//===- GradientsDomains.cpp - gradients of moves between domains ----------===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

LogicalResult
DeriveOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  Value gradient;
  if (isDifferentiable(type))
    gradient = DeriveGradOp::create(builder, getLoc(), type,
                                    resultGradients[0], b.domainOf(type));
  operandGradients.append({gradient, Value()});
  return success();
}

LogicalResult
DeriveGradOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                            SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  operandGradients.push_back(DeriveOp::create(
      builder, getLoc(), type, resultGradients[0], b.domainOf(type)));
  operandGradients.push_back(Value());
  return success();
}

LogicalResult
ConcatRowsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                            SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  for (auto [index, part] : llvm::enumerate(getParts())) {
    Type type = part.getType();
    Value gradient;
    if (isDifferentiable(type))
      gradient = SplitRowsOp::create(builder, getLoc(), type,
                                     resultGradients[0], b.domainOf(type),
                                     static_cast<int64_t>(index));
    operandGradients.push_back(gradient);
  }
  operandGradients.push_back(Value());
  return success();
}

// One part gets the gradient; the other parts get zeros.
LogicalResult
SplitRowsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  auto type = cast<RankedTensorType>(getX().getType());
  if (!isDifferentiable(type)) {
    operandGradients.append({Value(), Value()});
    return success();
  }
  Value domain = b.domainOf(type);
  auto joined = domain.getDefiningOp<ConcatDomainsOp>();
  if (!joined)
    return emitOpError("needs rows of a domain made by genrec.concat_domains");
  ArrayRef<int64_t> shape = getRowShape(type);
  auto zerosType = RankedTensorType::get(shape, type.getElementType());
  Value zeros = ConstantOp::create(
      builder, getLoc(), zerosType,
      DenseElementsAttr::get(zerosType,
                             FloatAttr::get(type.getElementType(), 0.0)));
  SmallVector<Value> parts;
  for (auto [index, source] : llvm::enumerate(joined.getSources())) {
    if (static_cast<int64_t>(index) == static_cast<int64_t>(getPart())) {
      parts.push_back(resultGradients[0]);
      continue;
    }
    Type partType = getRowsType(cast<DomainType>(source.getType()).getDomain(),
                                shape, type.getElementType());
    parts.push_back(
        BroadcastRowsOp::create(builder, getLoc(), partType, zeros, source));
  }
  operandGradients.push_back(
      ConcatRowsOp::create(builder, getLoc(), type, parts, domain));
  operandGradients.push_back(Value());
  return success();
}

LogicalResult
FanoutOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  Value gradient;
  if (isDifferentiable(type))
    gradient = PoolOp::create(builder, getLoc(), type, resultGradients[0],
                              b.domainOf(type), PoolKind::sum);
  operandGradients.append({gradient, Value()});
  return success();
}

/// 1 / max(length, 1) per parent row of `children`, in the element type of `like`.
static Value buildInverseLength(GradientBuilder &b, Value children,
                                Value parent, Type like) {
  FlatSymbolRefAttr domain = cast<DomainType>(parent.getType()).getDomain();
  Type counted = getRowsType(domain, {}, b.builder.getI64Type());
  Value length = LengthOp::create(b.builder, b.loc, TypeRange(counted), children).getResult(0);
  Type type = getRowsType(domain, {},
                          cast<RankedTensorType>(like).getElementType());
  Value count = CastOp::create(b.builder, b.loc, type, length);
  Value one = b.constant(1.0, like);
  return b.div(one, b.maximum(count, one));
}

LogicalResult PairRowsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  Value gradient;
  auto pairs = getDomain().getDefiningOp<PairDomainsOp>();
  if (getElementTypeOrSelf(getX().getType()).isF32())
    gradient = PairSumOp::create(builder, getLoc(), getX().getType(), resultGradients[0],
                                 pairs.getSecond());
  operandGradients.append({gradient, Value()});
  return success();
}

LogicalResult PairSumOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value gradient = PairRowsOp::create(builder, getLoc(), getX().getType(), resultGradients[0],
                                      b.domainOf(getX().getType()));
  operandGradients.append({gradient, Value()});
  return success();
}

LogicalResult TileOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  Value gradient;
  if (isDifferentiable(type))
    gradient = TileGradOp::create(builder, getLoc(), type, resultGradients[0], b.domainOf(type),
                                  getCountAttr(), getKeepAttr());
  operandGradients.append({gradient, Value()});
  return success();
}

LogicalResult TileGradOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  Value gradient;
  if (isDifferentiable(type))
    gradient = TileOp::create(builder, getLoc(), type, resultGradients[0], b.domainOf(type),
                              getCountAttr(), getKeepAttr());
  operandGradients.append({gradient, Value()});
  return success();
}

LogicalResult
PoolOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                      SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Type type = getX().getType();
  Value gradient;
  if (isDifferentiable(type)) {
    Value g = resultGradients[0], children = b.domainOf(type);
    switch (getKind()) {
    case PoolKind::mean:
      g = b.mul(g, buildInverseLength(b, children, getDomain(), type));
      [[fallthrough]];
    case PoolKind::sum:
      gradient = FanoutOp::create(builder, getLoc(), type, g, children);
      break;
    case PoolKind::max:
    case PoolKind::first:
    case PoolKind::last:
      gradient = PoolGradOp::create(builder, getLoc(), type, getX(), g,
                                    getDomain(), getKind());
      break;
    }
  }
  operandGradients.append({gradient, Value()});
  return success();
}

// Row i of lead(x) is row i + n of x, so row j of x's gradient is row j - n of the result's
// gradient: a lag. Its zeros before the start of the list are correct.
LogicalResult LeadOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  Value g = resultGradients[0];
  Value gradient;
  if (g && isDifferentiable(getX().getType()))
    gradient = LagOp::create(builder, getLoc(), g.getType(),
                             getValid().getType(), g, getDistanceAttr())
                   .getResult();
  operandGradients.push_back(gradient);
  return success();
}

LogicalResult LagOp::buildGradient(OpBuilder &builder,
                                   ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  Value g = resultGradients[0];
  Value gradient;
  if (g && isDifferentiable(getX().getType()))
    gradient = LeadOp::create(builder, getLoc(), g.getType(),
                              getValid().getType(), g, getDistanceAttr())
                   .getResult();
  operandGradients.push_back(gradient);
  return success();
}

LogicalResult
BroadcastRowsOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                               SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value gradient;
  if (isDifferentiable(getX().getType()))
    gradient = b.reduceRows(resultGradients[0]);
  operandGradients.append({gradient, Value()});
  return success();
}
