//===- ClipGradients.cpp - gradient clipping as ops -----------------------===//

#include "ClipGradients.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

/// A limit declared by the model, which flags may override.
static Value buildLimit(GradientBuilder &b, StringRef name, double declared) {
  auto type = RankedTensorType::get({}, b.builder.getF32Type());
  return StepValueOp::create(b.builder, b.loc, type,
                             b.builder.getStringAttr(name),
                             b.builder.getF64FloatAttr(declared));
}

/// Clamps every element to [-limit, limit], unless the limit is 0.
static Value clampElements(GradientBuilder &b, Value gradient, Value limit) {
  Value isOn = b.compare(CompareKind::gt, limit,
                         b.constant(0.0, limit.getType()));
  Value low = b.unary<NegOp>(limit);
  Value bounded = MinimumOp::create(b.builder, b.loc, gradient.getType(),
                                    gradient, limit);
  bounded = b.maximum(bounded, low);
  return b.select(isOn, bounded, gradient);
}

/// The sum of squares of all elements, as a shared scalar.
static Value sumSquares(GradientBuilder &b, Value gradient) {
  Value square = b.unary<SquareOp>(gradient);
  if (!getRowShape(square.getType()).empty())
    square = b.rowReduce(ReduceKind::sum, square);
  return b.reduceRows(square);
}

/// min(1, limit / norm), or 1 if the limit is 0.
static Value buildCoefficient(GradientBuilder &b, ArrayRef<Value> gradients,
                              Value limit) {
  // All parts before the first addition, so that ranks add up theirs in one exchange.
  SmallVector<Value> parts;
  for (Value gradient : gradients)
    parts.push_back(sumSquares(b, gradient));
  Value total = parts.front();
  for (Value part : llvm::drop_begin(parts))
    total = b.add(total, part);
  // Avoids a division by 0: for so small a norm, the coefficient is clamped to 1 anyway.
  constexpr double tiny = 1e-30;
  Value one = b.constant(1.0, limit.getType());
  Value norm = b.maximum(b.unary<SqrtOp>(total),
                         b.constant(tiny, limit.getType()));
  Value ratio = b.div(limit, norm);
  Value bounded =
      MinimumOp::create(b.builder, b.loc, one.getType(), one, ratio);
  Value isOn = b.compare(CompareKind::gt, limit,
                         b.constant(0.0, limit.getType()));
  return b.select(isOn, bounded, one);
}

void genrec::clipGradients(OpBuilder &builder, ModelOp model,
                           MutableArrayRef<Value> gradients) {
  if (gradients.empty())
    return;
  GradientBuilder b(builder, model.getLoc());
  if (double declared = model.getClipValue().convertToDouble()) {
    Value limit = buildLimit(b, "clip_value", declared);
    for (Value &gradient : gradients)
      gradient = clampElements(b, gradient, limit);
  }
  if (double declared = model.getClipNorm().convertToDouble()) {
    Value limit = buildLimit(b, "clip_norm", declared);
    Value coefficient = buildCoefficient(b, gradients, limit);
    for (Value &gradient : gradients)
      gradient = b.mul(gradient, coefficient);
  }
}
