//===- DecompositionsRanking.cpp - decompositions of ranking layers -------===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

/// exp(x - max x) along each row. The softmax does not depend on the shift, so the shift needs no
/// gradient.
static Value buildShiftedExp(GradientBuilder &b, Value x) {
  Value largest = b.rowReduce(ReduceKind::max, b.unary<DetachOp>(x));
  return b.unary<ExpOp>(b.sub(x, largest));
}

LogicalResult SoftmaxOp::decompose(OpBuilder &builder, SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value e = buildShiftedExp(b, getX());
  results.push_back(b.div(e, b.rowReduce(ReduceKind::sum, e)));
  return success();
}

LogicalResult CrossLayerOp::decompose(OpBuilder &builder, SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value x = getX();
  if (Value reduce = getReduce())
    x = LinearOp::create(builder, getLoc(),
                         withRowShape(x.getType(), {getRowShape(reduce.getType())[1]}), x, reduce,
                         /*bias=*/Value(), /*transposed=*/false);
  Value mixed = LinearOp::create(builder, getLoc(), getX0().getType(), x, getWeight(), getBias(),
                                 /*transposed=*/false);
  results.push_back(b.add(b.mul(getX0(), mixed), getX()));
  return success();
}

//===----------------------------------------------------------------------===//
// Mixture of experts
//===----------------------------------------------------------------------===//

/// Element `index` of each row of x, as rows []: the sum of a slice of one element.
static Value buildColumn(GradientBuilder &b, Value x, int64_t index) {
  return b.rowReduce(ReduceKind::sum, b.slice(x, index, 1));
}

/// A shared vector of `count` elements: 1 for elements below `bound`, otherwise 0.
static Value buildBelow(GradientBuilder &b, Type like, int64_t count, int64_t bound) {
  Type element = cast<RankedTensorType>(like).getElementType();
  auto type = RankedTensorType::get({count}, element);
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(FloatAttr::get(element, i < bound ? 1.0 : 0.0));
  return ConstantOp::create(b.builder, b.loc, type, DenseElementsAttr::get(type, values));
}

/// For each logit whether it is among the `count` largest of its row: fewer than `count` logits are
/// larger, or equal and before it.
static Value buildIsAmongTop(GradientBuilder &b, Value logits, int64_t count) {
  logits = b.unary<DetachOp>(logits);
  Type type = logits.getType();
  int64_t size = getRowSize(type);
  SmallVector<Value> ahead;
  for (int64_t i = 0; i < size; ++i) {
    Value own = buildColumn(b, logits, i);
    Value isGreater =
        CastOp::create(b.builder, b.loc, type, b.compare(CompareKind::gt, logits, own));
    Value isEqual = CastOp::create(b.builder, b.loc, type, b.compare(CompareKind::eq, logits, own));
    Value isAhead = b.add(isGreater, b.mul(isEqual, buildBelow(b, type, size, i)));
    ahead.push_back(b.rowReduce(ReduceKind::sum, isAhead));
  }
  Value ranks = ConcatColumnsOp::create(b.builder, b.loc, type, ahead);
  // Ranks are integers: comparing with a half-integer is robust against rounding of their sums.
  return b.compare(CompareKind::lt, ranks, b.constant(static_cast<double>(count) - 0.5, type));
}

LogicalResult MixtureOp::decompose(OpBuilder &builder, SmallVectorImpl<Value> &results) {
  GradientBuilder b(builder, getLoc());
  Value logits = getLogits();
  int64_t count = getRowSize(logits.getType()), size = getRowSize(getType());
  int64_t topK = getTopK();
  Value weight = buildShiftedExp(b, logits);
  if (topK > 0 && topK < count)
    weight = b.maskWith(buildIsAmongTop(b, logits, topK), weight);
  weight = b.div(weight, b.rowReduce(ReduceKind::sum, weight));
  Value sum;
  for (int64_t i = 0; i < count; ++i) {
    Value part = b.mul(b.slice(getExperts(), i * size, size), buildColumn(b, weight, i));
    sum = sum ? b.add(sum, part) : part;
  }
  results.push_back(sum);
  return success();
}
