//===- RowBodyBuilder.cpp - builds bodies of row kernels ------------------===//

#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace genrec;

Type genrec::bodyTypeLike(Type like, Type element) {
  ArrayRef<int64_t> shape = bodyShape(like);
  return shape.empty() ? element : Type(VectorType::get(shape, element));
}

Value RowBodyBuilder::constant(Type type, double value) const {
  Type element = bodyElement(type);
  if (!isa<FloatType>(element))
    return integer(type, static_cast<int64_t>(value));
  TypedAttr attribute = FloatAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return make<arith::ConstantOp>(attribute);
}

Value RowBodyBuilder::integer(Type type, int64_t value) const {
  TypedAttr attribute = IntegerAttr::get(bodyElement(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return make<arith::ConstantOp>(attribute);
}

Value RowBodyBuilder::fit(Value value, ArrayRef<int64_t> shape) const {
  if (shape.empty() || isa<VectorType>(value.getType()))
    return value;
  return make<vector::BroadcastOp>(VectorType::get(shape, value.getType()),
                                   value);
}

static bool isFloat(Value value) {
  return isa<FloatType>(bodyElement(value.getType()));
}

Value RowBodyBuilder::add(Value lhs, Value rhs) const {
  return isFloat(lhs) ? make<arith::AddFOp>(lhs, rhs)
                      : make<arith::AddIOp>(lhs, rhs);
}
Value RowBodyBuilder::sub(Value lhs, Value rhs) const {
  return isFloat(lhs) ? make<arith::SubFOp>(lhs, rhs)
                      : make<arith::SubIOp>(lhs, rhs);
}
Value RowBodyBuilder::mul(Value lhs, Value rhs) const {
  return isFloat(lhs) ? make<arith::MulFOp>(lhs, rhs)
                      : make<arith::MulIOp>(lhs, rhs);
}
Value RowBodyBuilder::max(Value lhs, Value rhs) const {
  return isFloat(lhs) ? make<arith::MaximumFOp>(lhs, rhs)
                      : make<arith::MaxSIOp>(lhs, rhs);
}
Value RowBodyBuilder::min(Value lhs, Value rhs) const {
  return isFloat(lhs) ? make<arith::MinimumFOp>(lhs, rhs)
                      : make<arith::MinSIOp>(lhs, rhs);
}

static arith::CmpFPredicate getFloatPredicate(CompareKind kind) {
  switch (kind) {
  case CompareKind::eq:
    return arith::CmpFPredicate::OEQ;
  case CompareKind::ne:
    return arith::CmpFPredicate::UNE;
  case CompareKind::lt:
    return arith::CmpFPredicate::OLT;
  case CompareKind::le:
    return arith::CmpFPredicate::OLE;
  case CompareKind::gt:
    return arith::CmpFPredicate::OGT;
  case CompareKind::ge:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("every comparison is handled");
}

/// For i1, 0 < 1, so its predicates are the unsigned ones.
static arith::CmpIPredicate getIntegerPredicate(CompareKind kind, bool isBool) {
  switch (kind) {
  case CompareKind::eq:
    return arith::CmpIPredicate::eq;
  case CompareKind::ne:
    return arith::CmpIPredicate::ne;
  case CompareKind::lt:
    return isBool ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  case CompareKind::le:
    return isBool ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle;
  case CompareKind::gt:
    return isBool ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  case CompareKind::ge:
    return isBool ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge;
  }
  llvm_unreachable("every comparison is handled");
}

Value RowBodyBuilder::compare(CompareKind kind, Value lhs, Value rhs) const {
  if (isFloat(lhs))
    return make<arith::CmpFOp>(getFloatPredicate(kind), lhs, rhs);
  bool isBool = bodyElement(lhs.getType()).isInteger(1);
  return make<arith::CmpIOp>(getIntegerPredicate(kind, isBool), lhs, rhs);
}

Value RowBodyBuilder::select(Value condition, Value onTrue,
                             Value onFalse) const {
  return make<arith::SelectOp>(condition, onTrue, onFalse);
}

Value RowBodyBuilder::sigmoid(Value x) const {
  Value one = constant(x.getType(), 1.0);
  Value e = make<math::ExpOp>(make<arith::NegFOp>(x));
  return make<arith::DivFOp>(one, add(one, e));
}

std::optional<SigmoidParts> genrec::matchSigmoid(arith::DivFOp op) {
  SigmoidParts parts;
  parts.sum = op.getRhs().getDefiningOp<arith::AddFOp>();
  if (!parts.sum || !matchPattern(op.getLhs(), m_OneFloat()))
    return std::nullopt;
  // Canonicalization puts constants last.
  const bool isFirst = matchPattern(parts.sum.getLhs(), m_OneFloat());
  if (!isFirst && !matchPattern(parts.sum.getRhs(), m_OneFloat()))
    return std::nullopt;
  parts.exp = parts.sum->getOperand(isFirst).getDefiningOp<math::ExpOp>();
  if (!parts.exp)
    return std::nullopt;
  parts.negated = parts.exp.getOperand().getDefiningOp<arith::NegFOp>();
  return parts.negated ? std::optional(parts) : std::nullopt;
}

Value RowBodyBuilder::roundFactor(Value x) const {
  Type rounded = bodyTypeLike(x.getType(), builder.getBF16Type());
  return widen(make<arith::TruncFOp>(rounded, x));
}

Value RowBodyBuilder::widen(Value x) const {
  return make<arith::ExtFOp>(bodyTypeLike(x.getType(), builder.getF32Type()), x);
}

Value RowBodyBuilder::reduceAdd(Value x) const {
  return make<vector::ReductionOp>(vector::CombiningKind::ADD, x);
}

Value RowBodyBuilder::reduceMax(Value x) const {
  vector::CombiningKind kind = isFloat(x) ? vector::CombiningKind::MAXIMUMF
                                          : vector::CombiningKind::MAXSI;
  return make<vector::ReductionOp>(kind, x);
}
