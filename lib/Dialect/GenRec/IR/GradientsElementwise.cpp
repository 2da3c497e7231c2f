//===- GradientsElementwise.cpp - gradients of elementwise ops ------------===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Unary ops
//===----------------------------------------------------------------------===//

// x: the operand, y: the result, g: the result's gradient.
#define GENREC_UNARY_GRADIENT(OpT, expression)                                 \
  LogicalResult OpT::buildGradient(OpBuilder &builder,                         \
                                   ValueRange resultGradients,                 \
                                   SmallVectorImpl<Value> &operandGradients) { \
    GradientBuilder b(builder, getLoc());                                      \
    [[maybe_unused]] Value x = getX(), y = getResult();                        \
    Value g = resultGradients[0];                                              \
    operandGradients.push_back(expression);                                    \
    return success();                                                          \
  }

GENREC_UNARY_GRADIENT(NegOp, b.unary<NegOp>(g))
GENREC_UNARY_GRADIENT(RoundFactorOp, g)
GENREC_UNARY_GRADIENT(SquareOp, b.mul(g, b.mul(x, 2.0)))
GENREC_UNARY_GRADIENT(SqrtOp, b.div(b.mul(g, 0.5), y))
GENREC_UNARY_GRADIENT(RsqrtOp, b.mul(g, b.mul(b.mul(y, -0.5), b.mul(y, y))))
GENREC_UNARY_GRADIENT(ExpOp, b.mul(g, y))
GENREC_UNARY_GRADIENT(LogOp, b.div(g, x))
GENREC_UNARY_GRADIENT(Log1pOp, b.div(g, b.add(x, b.constant(1.0, x.getType()))))
GENREC_UNARY_GRADIENT(SinOp, b.mul(g, b.unary<CosOp>(x)))
GENREC_UNARY_GRADIENT(CosOp, b.unary<NegOp>(b.mul(g, b.unary<SinOp>(x))))
GENREC_UNARY_GRADIENT(TanhOp,
                      b.mul(g, b.sub(b.constant(1.0, x.getType()), b.mul(y, y))))
GENREC_UNARY_GRADIENT(
    SigmoidOp,
    b.mul(g, b.mul(y, b.sub(b.constant(1.0, x.getType()), y))))
GENREC_UNARY_GRADIENT(SoftplusOp, b.mul(g, b.unary<SigmoidOp>(x)))
GENREC_UNARY_GRADIENT(ReluOp,
                      b.maskWith(b.compare(CompareKind::gt, y,
                                           b.constant(0.0, y.getType())),
                                 g))

#undef GENREC_UNARY_GRADIENT

LogicalResult AbsOp::buildGradient(OpBuilder &builder,
                                   ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value g = resultGradients[0], zero = b.constant(0.0, getX().getType());
  Value isPositive = b.compare(CompareKind::gt, getX(), zero);
  Value isNegative = b.compare(CompareKind::lt, getX(), zero);
  Value negative = b.maskWith(isNegative, b.unary<NegOp>(g));
  operandGradients.push_back(b.select(isPositive, g, negative));
  return success();
}

// d/dx erf(x) = 2 / sqrt(pi) * exp(-x²)
LogicalResult ErfOp::buildGradient(OpBuilder &builder,
                                   ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value e = b.unary<ExpOp>(b.unary<NegOp>(b.unary<SquareOp>(getX())));
  operandGradients.push_back(
      b.mul(resultGradients[0], b.mul(e, M_2_SQRTPI)));
  return success();
}

// s + x * s * (1 - s) with s = sigmoid(x)
LogicalResult SiluOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value one = b.constant(1.0, getX().getType());
  Value s = b.unary<SigmoidOp>(getX());
  Value slope = b.mul(s, b.add(one, b.mul(getX(), b.sub(one, s))));
  operandGradients.push_back(b.mul(resultGradients[0], slope));
  return success();
}

static bool isOne(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  return elements && elements.isSplat() && elements.getSplatValue<APFloat>().isExactlyValue(1.0);
}

Value genrec::matchSiluSlope(Value slope) {
  auto product = slope.getDefiningOp<MulOp>();
  auto s = product ? product.getLhs().getDefiningOp<SigmoidOp>() : nullptr;
  auto sum = product ? product.getRhs().getDefiningOp<AddOp>() : nullptr;
  auto scaled = sum && isOne(sum.getLhs()) ? sum.getRhs().getDefiningOp<MulOp>() : nullptr;
  auto rest = scaled ? scaled.getRhs().getDefiningOp<SubOp>() : nullptr;
  bool matches = s && rest && scaled.getLhs() == s.getX() && isOne(rest.getLhs()) &&
                 rest.getRhs() == s.getResult();
  return matches ? s.getX() : Value();
}

// (1 + erf(x / sqrt 2)) / 2 + x * exp(-x² / 2) / sqrt(2 pi)
LogicalResult GeluOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value x = getX();
  Value erf = b.unary<ErfOp>(b.mul(x, M_SQRT1_2));
  Value distribution =
      b.mul(b.add(erf, b.constant(1.0, x.getType())), 0.5);
  Value e = b.unary<ExpOp>(b.mul(b.unary<SquareOp>(x), -0.5));
  Value density = b.mul(e, 0.5 * M_2_SQRTPI * M_SQRT1_2);
  Value slope = b.add(distribution, b.mul(x, density));
  operandGradients.push_back(b.mul(resultGradients[0], slope));
  return success();
}

LogicalResult CastOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    SmallVectorImpl<Value> &operandGradients) {
  Value gradient;
  if (isDifferentiable(getX().getType()) &&
      isDifferentiable(getResult().getType()))
    gradient = CastOp::create(builder, getLoc(), getX().getType(),
                              resultGradients[0]);
  operandGradients.push_back(gradient);
  return success();
}

LogicalResult DetachOp::buildGradient(OpBuilder &, ValueRange,
                                      SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(Value());
  return success();
}

//===----------------------------------------------------------------------===//
// Binary ops and select
//===----------------------------------------------------------------------===//

/// Appends the gradients of the two operands, reduced to the operands' types, or nulls for
/// integers. Each function builds the gradient of one operand.
static LogicalResult
pushBinary(GradientBuilder &b, Value lhs, Value rhs,
           SmallVectorImpl<Value> &operandGradients,
           llvm::function_ref<Value()> left,
           llvm::function_ref<Value()> right) {
  if (!isDifferentiable(lhs.getType())) {
    operandGradients.append(2, Value());
    return success();
  }
  operandGradients.push_back(b.reduceTo(left(), lhs.getType()));
  operandGradients.push_back(b.reduceTo(right(), rhs.getType()));
  return success();
}

#define GENREC_BINARY_GRADIENT(OpT, left, right)                               \
  LogicalResult OpT::buildGradient(OpBuilder &builder,                         \
                                   ValueRange resultGradients,                 \
                                   SmallVectorImpl<Value> &operandGradients) { \
    GradientBuilder b(builder, getLoc());                                      \
    [[maybe_unused]] Value lhs = getLhs(), rhs = getRhs(), y = getResult();    \
    Value g = resultGradients[0];                                              \
    return pushBinary(                                                         \
        b, lhs, rhs, operandGradients, [&]() -> Value { return left; },        \
        [&]() -> Value { return right; });                                     \
  }

GENREC_BINARY_GRADIENT(AddOp, g, g)
GENREC_BINARY_GRADIENT(SubOp, g, b.unary<NegOp>(g))
GENREC_BINARY_GRADIENT(MulOp, b.mul(g, rhs), b.mul(g, lhs))
GENREC_BINARY_GRADIENT(DivOp, b.div(g, rhs),
                       b.unary<NegOp>(b.div(b.mul(g, y), rhs)))
GENREC_BINARY_GRADIENT(
    MaximumOp, b.maskWith(b.compare(CompareKind::ge, lhs, rhs), g),
    b.maskWith(b.compare(CompareKind::lt, lhs, rhs), g))
GENREC_BINARY_GRADIENT(
    MinimumOp, b.maskWith(b.compare(CompareKind::le, lhs, rhs), g),
    b.maskWith(b.compare(CompareKind::gt, lhs, rhs), g))

#undef GENREC_BINARY_GRADIENT

LogicalResult SelectOp::buildGradient(OpBuilder &builder,
                                      ValueRange resultGradients,
                                      SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  operandGradients.push_back(Value());
  Value g = resultGradients[0];
  Value zero = b.constant(0.0, g.getType());
  return pushBinary(
      b, getOnTrue(), getOnFalse(), operandGradients,
      [&] { return b.select(getCondition(), g, zero); },
      [&] { return b.select(getCondition(), zero, g); });
}
