//===- ColumnBodies.cpp - bodies of columns of ids ------------------------===//

#include "ColumnBodies.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

using namespace mlir;
using namespace genrec;

static bool isScalarRow(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && getRowShape(type).empty();
}

/// Whether a column can compute the op itself: it works on scalars, per row or shared, and neither
/// draws random numbers nor gathers.
static bool isTransform(Operation *op) {
  auto rowwise = dyn_cast_or_null<RowwiseOpInterface>(op);
  if (!rowwise || op->hasAttr("stream") || op->getNumResults() != 1 ||
      !isScalarRow(op->getResult(0)))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (!isScalarRow(operand.get()) || rowwise.isGatherSource(operand.getOperandNumber()))
      return false;
  return true;
}

namespace {
class BodyBuilder {
public:
  BodyBuilder(ColumnBody &body, MLIRContext *context) : body(body), builder(context) {
    builder.setInsertionPointToEnd(body.block.get());
  }

  /// The value of `value`'s row inside of the body.
  FailureOr<Value> build(Value value);

  ColumnBody &body;
  OpBuilder builder;

private:
  FailureOr<Value> buildConstant(ConstantOp constant);

  DenseMap<Value, Value> values;
};
} // namespace

FailureOr<Value> BodyBuilder::build(Value value) {
  if (Value known = values.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value &result = values[value];
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  if (constant && constant.getValue().getShapedType().getRank() == 0) {
    auto number =
        cast<TypedAttr>(cast<DenseElementsAttr>(constant.getValue()).getSplatValue<Attribute>());
    return result = arith::ConstantOp::create(builder, op->getLoc(), number).getResult();
  }
  if (!isTransform(op)) {
    // A fan-out is an input with the row of the ancestor, a truncated list one with its whole list.
    if (auto fanout = dyn_cast_or_null<FanoutOp>(op))
      value = fanout.getX();
    else if (auto derive = dyn_cast_or_null<DeriveOp>(op); derive && derive.isKernelPart())
      value = derive.getX();
    body.inputs.push_back(value);
    return result = body.block->addArgument(getBodyType(value.getType()), value.getLoc());
  }
  SmallVector<Value> operands, results;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> row = build(operand);
    if (failed(row))
      return failure();
    operands.push_back(*row);
  }
  builder.setInsertionPointToEnd(body.block.get());
  if (failed(cast<RowwiseOpInterface>(op).buildRowBody(builder, operands, results)))
    return failure();
  body.transforms.push_back(op);
  return values[op->getResult(0)] = results.front();
}

FailureOr<ColumnBody> genrec::buildColumnBody(MLIRContext *context, const ColumnSpec &column) {
  ColumnBody body;
  body.domain = getRowDomain(column.ids.getType());
  body.block = std::make_unique<Block>();
  BodyBuilder builder(body, context);
  FailureOr<Value> id = builder.build(column.ids);
  if (failed(id))
    return failure();
  FailureOr<Value> valid = Value();
  if (column.valid && failed(valid = builder.build(column.valid)))
    return failure();
  RowBodyBuilder b(builder.builder, column.ids.getLoc());
  Type i64 = builder.builder.getI64Type();
  // The bits of an id do not overlap those of the tag.
  Value key = b.make<arith::OrIOp>(*id, b.integer(i64, column.tag));
  if (*valid)
    key = b.select(*valid, key, b.integer(i64, -1));
  RowYieldOp::create(builder.builder, column.ids.getLoc(), key);
  return body;
}
