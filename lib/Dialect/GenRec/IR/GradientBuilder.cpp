//===- GradientBuilder.cpp - builds ops for gradients ---------------------===//

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"

using namespace mlir;
using namespace genrec;

RankedTensorType genrec::withElement(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element,
                               tensor.getEncoding());
}

RankedTensorType genrec::withRowShape(Type type, ArrayRef<int64_t> rowShape) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (FlatSymbolRefAttr domain = getRowDomain(type))
    return getRowsType(domain, rowShape, element);
  return RankedTensorType::get(rowShape, element);
}

bool genrec::isDifferentiable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

static Type getElement(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// The type of an elementwise result: the domain of an operand that has one, and the longer row
/// shape.
static RankedTensorType getElementwiseType(ValueRange operands, Type element) {
  FlatSymbolRefAttr domain;
  ArrayRef<int64_t> shape;
  for (Value operand : operands) {
    if (FlatSymbolRefAttr own = getRowDomain(operand.getType()))
      domain = own;
    ArrayRef<int64_t> own = getRowShape(operand.getType());
    if (own.size() > shape.size())
      shape = own;
  }
  if (domain)
    return getRowsType(domain, shape, element);
  return RankedTensorType::get(shape, element);
}

Value GradientBuilder::constant(double value, Type like) const {
  Type element = cast<RankedTensorType>(like).getElementType();
  auto type = RankedTensorType::get({}, element);
  auto attribute =
      DenseElementsAttr::get(type, FloatAttr::get(element, value));
  return ConstantOp::create(builder, loc, type, attribute);
}

template <typename OpT>
static Value buildBinary(const GradientBuilder &b, Value lhs, Value rhs) {
  Type type = getElementwiseType({lhs, rhs}, getElement(lhs));
  return OpT::create(b.builder, b.loc, type, lhs, rhs);
}

Value GradientBuilder::add(Value lhs, Value rhs) const {
  return buildBinary<AddOp>(*this, lhs, rhs);
}
Value GradientBuilder::sub(Value lhs, Value rhs) const {
  return buildBinary<SubOp>(*this, lhs, rhs);
}
Value GradientBuilder::mul(Value lhs, Value rhs) const {
  return buildBinary<MulOp>(*this, lhs, rhs);
}
Value GradientBuilder::div(Value lhs, Value rhs) const {
  return buildBinary<DivOp>(*this, lhs, rhs);
}
Value GradientBuilder::maximum(Value lhs, Value rhs) const {
  return buildBinary<MaximumOp>(*this, lhs, rhs);
}
Value GradientBuilder::mul(Value x, double factor) const {
  return mul(x, constant(factor, x.getType()));
}

Value GradientBuilder::compare(CompareKind kind, Value lhs, Value rhs) const {
  Type type = getElementwiseType({lhs, rhs}, builder.getI1Type());
  return CompareOp::create(builder, loc, type, kind, lhs, rhs);
}

Value GradientBuilder::select(Value condition, Value onTrue,
                              Value onFalse) const {
  Type type =
      getElementwiseType({condition, onTrue, onFalse}, getElement(onTrue));
  return SelectOp::create(builder, loc, type, condition, onTrue, onFalse);
}

Value GradientBuilder::maskWith(Value condition, Value value) const {
  return select(condition, value, constant(0.0, value.getType()));
}

Value GradientBuilder::rowReduce(ReduceKind kind, Value x) const {
  return RowReduceOp::create(builder, loc, withRowShape(x.getType(), {}), kind,
                             x);
}

Value GradientBuilder::reduceRows(Value x) const {
  auto type =
      RankedTensorType::get(getRowShape(x.getType()), getElement(x));
  return ReduceRowsOp::create(builder, loc, type, x);
}

Value GradientBuilder::slice(Value x, int64_t offset, int64_t size) const {
  return SliceColumnsOp::create(builder, loc, withRowShape(x.getType(), {size}),
                                x, offset);
}

Value GradientBuilder::repeatTo(Value x, Type type) const {
  ArrayRef<int64_t> shape = getRowShape(type);
  Type element = getElement(x);
  auto onesType = RankedTensorType::get(shape, element);
  Value ones = ConstantOp::create(
      builder, loc, onesType,
      DenseElementsAttr::get(onesType, FloatAttr::get(element, 1.0)));
  if (getRowDomain(type))
    ones = BroadcastRowsOp::create(builder, loc, type, ones, domainOf(type));
  return mul(x, ones);
}

/// Sums a shared [n, d] or [d] to a shared scalar.
Value GradientBuilder::reduceShared(Value gradient) const {
  auto type = cast<RankedTensorType>(gradient.getType());
  if (type.getRank() == 2) {
    // Viewed as n rows, it is reduced along the rows and then over them.
    auto program =
        cast<ProgramOp>(builder.getInsertionBlock()->getParentOp());
    Value domain = getFixedRows(program, getSharedRowCount(type));
    gradient = viewSharedAsRows(builder, loc, gradient, domain);
    return reduceRows(rowReduce(ReduceKind::sum, gradient));
  }
  return rowReduce(ReduceKind::sum, gradient);
}

Value GradientBuilder::reduceTo(Value gradient, Type type) const {
  bool isRows = static_cast<bool>(getRowDomain(gradient.getType()));
  size_t rank = getRowShape(gradient.getType()).size();
  if (rank > getRowShape(type).size())
    gradient = isRows ? rowReduce(ReduceKind::sum, gradient)
                      : reduceShared(gradient);
  if (isRows && !getRowDomain(type))
    gradient = reduceRows(gradient);
  return gradient;
}

Value GradientBuilder::domainOf(Type type) const {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  return lookupDomainValue(cast<ProgramOp>(parent), getRowDomain(type));
}
