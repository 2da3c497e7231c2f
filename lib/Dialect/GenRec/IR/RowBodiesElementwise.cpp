//===- RowBodiesElementwise.cpp - bodies of elementwise arithmetic --------===//

#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Unary ops
//===----------------------------------------------------------------------===//

namespace {
/// The body of a unary op, from its operand's row.
using UnaryBody = llvm::function_ref<Value(RowBodyBuilder &, Value)>;
} // namespace

static LogicalResult buildUnary(Operation *op, OpBuilder &builder,
                                ValueRange operands,
                                SmallVectorImpl<Value> &results,
                                UnaryBody body) {
  RowBodyBuilder b(builder, op->getLoc());
  results.push_back(body(b, operands[0]));
  return success();
}

#define GENREC_UNARY_BODY(OpT, expression)                                     \
  LogicalResult OpT::buildRowBody(OpBuilder &builder, ValueRange operands,     \
                                  SmallVectorImpl<Value> &results) {           \
    return buildUnary(                                                         \
        *this, builder, operands, results,                                     \
        [](RowBodyBuilder &b, Value x) -> Value { return expression; });       \
  }

GENREC_UNARY_BODY(NegOp, b.make<arith::NegFOp>(x))
GENREC_UNARY_BODY(AbsOp, b.make<math::AbsFOp>(x))
GENREC_UNARY_BODY(SquareOp, b.mul(x, x))
GENREC_UNARY_BODY(SqrtOp, b.make<math::SqrtOp>(x))
GENREC_UNARY_BODY(RsqrtOp, b.make<math::RsqrtOp>(x))
GENREC_UNARY_BODY(ExpOp, b.make<math::ExpOp>(x))
GENREC_UNARY_BODY(LogOp, b.make<math::LogOp>(x))
GENREC_UNARY_BODY(Log1pOp, b.make<math::Log1pOp>(x))
GENREC_UNARY_BODY(SinOp, b.make<math::SinOp>(x))
GENREC_UNARY_BODY(CosOp, b.make<math::CosOp>(x))
GENREC_UNARY_BODY(TanhOp, b.make<math::TanhOp>(x))
GENREC_UNARY_BODY(ErfOp, b.make<math::ErfOp>(x))
GENREC_UNARY_BODY(SigmoidOp, b.sigmoid(x))
GENREC_UNARY_BODY(SiluOp, b.mul(x, b.sigmoid(x)))
GENREC_UNARY_BODY(ReluOp, b.max(x, b.constant(x.getType(), 0.0)))
GENREC_UNARY_BODY(RoundFactorOp, b.roundFactor(x))
GENREC_UNARY_BODY(DetachOp, x)

#undef GENREC_UNARY_BODY

LogicalResult GeluOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                   SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Type type = x.getType();
  Value erf = b.make<math::ErfOp>(b.mul(x, b.constant(type, M_SQRT1_2)));
  Value half = b.mul(x, b.constant(type, 0.5));
  results.push_back(b.mul(half, b.add(b.constant(type, 1.0), erf)));
  return success();
}

// max(x, 0) + log1p(exp(-|x|)): exp cannot overflow, and log1p is accurate for a small argument.
LogicalResult SoftplusOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                       SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Value magnitude = b.make<math::AbsFOp>(x);
  Value e = b.make<math::ExpOp>(b.make<arith::NegFOp>(magnitude));
  Value positive = b.max(x, b.constant(x.getType(), 0.0));
  results.push_back(b.add(positive, b.make<math::Log1pOp>(e)));
  return success();
}

//===----------------------------------------------------------------------===//
// Binary ops, comparison, select
//===----------------------------------------------------------------------===//

/// Broadcasts each operand along the row if the other one is a vector.
static std::pair<Value, Value> fitBoth(RowBodyBuilder &b, ValueRange operands) {
  ArrayRef<int64_t> shape = bodyShape(operands[0].getType());
  if (shape.empty())
    shape = bodyShape(operands[1].getType());
  return {b.fit(operands[0], shape), b.fit(operands[1], shape)};
}

#define GENREC_BINARY_BODY(OpT, expression)                                    \
  LogicalResult OpT::buildRowBody(OpBuilder &builder, ValueRange operands,     \
                                  SmallVectorImpl<Value> &results) {           \
    RowBodyBuilder b(builder, getLoc());                                       \
    auto [lhs, rhs] = fitBoth(b, operands);                                    \
    results.push_back(expression);                                             \
    return success();                                                          \
  }

GENREC_BINARY_BODY(AddOp, b.add(lhs, rhs))
GENREC_BINARY_BODY(SubOp, b.sub(lhs, rhs))
GENREC_BINARY_BODY(MulOp, b.mul(lhs, rhs))
GENREC_BINARY_BODY(DivOp, b.make<arith::DivFOp>(lhs, rhs))
GENREC_BINARY_BODY(MaximumOp, b.max(lhs, rhs))
GENREC_BINARY_BODY(MinimumOp, b.min(lhs, rhs))
GENREC_BINARY_BODY(CompareOp, b.compare(getKind(), lhs, rhs))

#undef GENREC_BINARY_BODY

LogicalResult SelectOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                     SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  ArrayRef<int64_t> shape = bodyShape(getBodyType(getResult().getType()));
  results.push_back(b.select(b.fit(operands[0], shape),
                             b.fit(operands[1], shape),
                             b.fit(operands[2], shape)));
  return success();
}
