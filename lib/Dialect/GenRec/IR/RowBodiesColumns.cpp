//===- RowBodiesColumns.cpp - bodies of ops along a row, gathers, dropout -===//

#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

using namespace mlir;
using namespace genrec;

LogicalResult RowReduceOp::buildRowBody(OpBuilder &builder,
                                        ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  if (getKind() == ReduceKind::max) {
    results.push_back(b.reduceMax(x));
    return success();
  }
  Value sum = b.reduceAdd(x);
  if (getKind() == ReduceKind::mean) {
    double size = bodyShape(x.getType())[0];
    sum = b.make<arith::DivFOp>(sum, b.constant(sum.getType(), size));
  }
  results.push_back(sum);
  return success();
}

LogicalResult ConcatColumnsOp::buildRowBody(OpBuilder &builder,
                                            ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(RowConcatOp::create(
      builder, getLoc(), getBodyType(getResult().getType()), operands));
  return success();
}

LogicalResult SliceColumnsOp::buildRowBody(OpBuilder &builder,
                                           ValueRange operands,
                                           SmallVectorImpl<Value> &results) {
  results.push_back(RowSliceOp::create(builder, getLoc(),
                                       getBodyType(getResult().getType()),
                                       operands[0], getOffset()));
  return success();
}

LogicalResult PadColumnsOp::buildRowBody(OpBuilder &builder,
                                         ValueRange operands,
                                         SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Type element = bodyElement(x.getType());
  int64_t offset = getOffset();
  int64_t after = getRowSize(getResult().getType()) - offset -
                  getRowSize(getX().getType());
  SmallVector<Value> parts;
  if (offset > 0)
    parts.push_back(b.constant(VectorType::get({offset}, element), 0.0));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(b.constant(VectorType::get({after}, element), 0.0));
  results.push_back(RowConcatOp::create(
      builder, getLoc(), getBodyType(getResult().getType()), parts));
  return success();
}

LogicalResult BroadcastRowsOp::buildRowBody(OpBuilder &, ValueRange operands,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(operands[0]);
  return success();
}

LogicalResult DropoutOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                      SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Type type = x.getType();
  Value mask = KeepMaskOp::create(builder, getLoc(),
                                  bodyTypeLike(type, builder.getI1Type()),
                                  getRateAttr(), getStreamAttr());
  double rate = getRate().convertToDouble();
  Value zero = b.constant(type, 0.0);
  if (rate >= 1.0) {
    results.push_back(zero);
    return success();
  }
  Value scaled = b.mul(x, b.constant(type, 1.0 / (1.0 - rate)));
  results.push_back(b.select(mask, scaled, zero));
  return success();
}

LogicalResult RandomUniformOp::buildRowBody(OpBuilder &builder, ValueRange,
                                            SmallVectorImpl<Value> &results) {
  results.push_back(
      RowUniformOp::create(builder, getLoc(), getBodyType(getResult().getType()), getStreamAttr()));
  return success();
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

bool GatherRowsOp::isGatherSource(unsigned index) { return index == 0; }

LogicalResult GatherRowsOp::buildRowBody(OpBuilder &builder,
                                         ValueRange operands,
                                         SmallVectorImpl<Value> &results) {
  results.push_back(RowGatherOp::create(builder, getLoc(),
                                        getBodyType(getResult().getType()),
                                        operands[0], operands[1],
                                        /*clamp=*/false));
  return success();
}

bool EmbeddingOp::isGatherSource(unsigned index) { return index == 1; }

LogicalResult EmbeddingOp::buildRowBody(OpBuilder &builder,
                                        ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  results.push_back(RowGatherOp::create(builder, getLoc(),
                                        getBodyType(getResult().getType()),
                                        operands[1], operands[0],
                                        /*clamp=*/true));
  return success();
}
