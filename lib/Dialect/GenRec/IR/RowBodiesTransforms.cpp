//===- RowBodiesTransforms.cpp - bodies of transforms of ids and values ---===//

#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

using namespace mlir;
using namespace genrec;

LogicalResult HashOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                   SmallVectorImpl<Value> &results) {
  results.push_back(RowHashOp::create(
      builder, getLoc(), getBodyType(getResult().getType()), operands[0],
      getKind(), getBits(), getSeed()));
  return success();
}

LogicalResult MultiHashOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  Type type = getBodyType(getResult().getType());
  SmallVector<Value> hashes;
  for (int64_t i = 0; i < getRowSize(getResult().getType()); ++i)
    hashes.push_back(RowHashOp::create(builder, getLoc(), builder.getI64Type(), operands[0],
                                       getKind(), getBits(), static_cast<int64_t>(getSeed()) + i));
  results.push_back(RowConcatOp::create(builder, getLoc(), type, hashes));
  return success();
}

LogicalResult CrossOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                    SmallVectorImpl<Value> &results) {
  constexpr int64_t kWholeHash = 63;
  RowBodyBuilder b(builder, getLoc());
  auto hash = [&](Value x, int64_t bits) -> Value {
    return RowHashOp::create(builder, getLoc(), x.getType(), x, getKind(), bits, getSeed());
  };
  Value crossed = hash(operands[0], kWholeHash);
  for (auto [index, column] : llvm::enumerate(operands.drop_front())) {
    bool isLast = index + 2 == operands.size();
    crossed = hash(b.add(crossed, column), isLast ? getBits() : kWholeHash);
  }
  results.push_back(crossed);
  return success();
}

// The result of remsi has the sign of the dividend; a Euclidean remainder is not negative.
LogicalResult ModOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                  SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Type type = operands[0].getType();
  Value divisor = b.integer(type, getDivisor());
  Value remainder = b.make<arith::RemSIOp>(operands[0], divisor);
  Value isNegative =
      b.compare(CompareKind::lt, remainder, b.integer(type, 0));
  results.push_back(
      b.select(isNegative, b.add(remainder, divisor), remainder));
  return success();
}

LogicalResult BucketizeOp::buildRowBody(OpBuilder &builder,
                                        ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  results.push_back(RowBucketizeOp::create(
      builder, getLoc(), getBodyType(getResult().getType()), operands[0],
      getEdgesAttr()));
  return success();
}

//===----------------------------------------------------------------------===//
// Cast
//===----------------------------------------------------------------------===//

/// Truncates towards 0 and saturates; NaN gives 0. `fptosi` is undefined for values out of the
/// integer's range, so it gets only values within the range.
static Value castFloatToInteger(RowBodyBuilder &b, Value x, Type type) {
  int width = bodyElement(type).getIntOrFloatBitWidth();
  Type from = x.getType();
  if (width == 1)
    return b.compare(CompareKind::ge, x, b.constant(from, 1.0));
  // -2^(w-1) and 2^(w-1) are exact in every float type; 2^(w-1) - 1 is not.
  double limit = std::ldexp(1.0, width - 1);
  Value low = b.constant(from, -limit), high = b.constant(from, limit);
  Value isAbove = b.compare(CompareKind::ge, x, high);
  Value isBelow = b.compare(CompareKind::lt, x, low);
  Value isInside = b.make<arith::AndIOp>(b.compare(CompareKind::ge, x, low),
                                         b.compare(CompareKind::lt, x, high));
  Value inside = b.select(isInside, x, b.constant(from, 0.0));
  Value result = b.make<arith::FPToSIOp>(type, inside);
  int64_t largest = llvm::maxIntN(width), smallest = llvm::minIntN(width);
  result = b.select(isAbove, b.integer(type, largest), result);
  return b.select(isBelow, b.integer(type, smallest), result);
}

static Value castFloat(RowBodyBuilder &b, Value x, Type type) {
  int from = bodyElement(x.getType()).getIntOrFloatBitWidth();
  int to = bodyElement(type).getIntOrFloatBitWidth();
  if (from == to)
    return x;
  return from < to ? b.make<arith::ExtFOp>(type, x)
                   : b.make<arith::TruncFOp>(type, x);
}

static Value castInteger(RowBodyBuilder &b, Value x, Type type) {
  int from = bodyElement(x.getType()).getIntOrFloatBitWidth();
  int to = bodyElement(type).getIntOrFloatBitWidth();
  if (from == to)
    return x;
  if (to == 1)
    return b.compare(CompareKind::ne, x, b.integer(x.getType(), 0));
  if (from == 1)
    return b.make<arith::ExtUIOp>(type, x);
  return from < to ? b.make<arith::ExtSIOp>(type, x)
                   : b.make<arith::TruncIOp>(type, x);
}

LogicalResult CastOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                   SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Type type = getBodyType(getResult().getType());
  Type from = bodyElement(x.getType()), to = bodyElement(type);
  if (isa<FloatType>(from) && isa<FloatType>(to))
    results.push_back(castFloat(b, x, type));
  else if (isa<FloatType>(from))
    results.push_back(castFloatToInteger(b, x, type));
  else if (!isa<FloatType>(to))
    results.push_back(castInteger(b, x, type));
  else if (from.isInteger(1))
    results.push_back(b.make<arith::UIToFPOp>(type, x));
  else
    results.push_back(b.make<arith::SIToFPOp>(type, x));
  return success();
}
