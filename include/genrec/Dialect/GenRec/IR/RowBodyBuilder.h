//===- RowBodyBuilder.h - builds bodies of row kernels ----------*- C++ -*-===//
//
// Builders for `arith` and `math` ops on scalars and vectors of static size.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_ROWBODYBUILDER_H
#define GENREC_DIALECT_GENREC_IR_ROWBODYBUILDER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace genrec {

/// Builds body ops at one location. A body type is a scalar type or a vector type of static size.
class RowBodyBuilder {
public:
  RowBodyBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// A constant of a float or integer `type`; for a vector, in every element.
  mlir::Value constant(mlir::Type type, double value) const;
  mlir::Value integer(mlir::Type type, int64_t value) const;

  /// `value`, broadcast along the row if it is a scalar and `shape` is not.
  mlir::Value fit(mlir::Value value, llvm::ArrayRef<int64_t> shape) const;

  /// Arithmetic on floats or integers.
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value max(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value min(mlir::Value lhs, mlir::Value rhs) const;
  /// A signed comparison of integers, or an ordered one of floats; `ne` with NaN is true.
  mlir::Value compare(CompareKind kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value select(mlir::Value condition, mlir::Value onTrue,
                     mlir::Value onFalse) const;
  /// 1 / (1 + exp(-x)).
  mlir::Value sigmoid(mlir::Value x) const;

  /// x as a factor of a product with `bf16`: the nearest bfloat16, as f32.
  mlir::Value roundFactor(mlir::Value x) const;
  /// What is of bf16 as f32.
  mlir::Value widen(mlir::Value x) const;

  /// A vector reduced to a scalar.
  mlir::Value reduceAdd(mlir::Value x) const;
  mlir::Value reduceMax(mlir::Value x) const;

  template <typename OpT, typename... Args>
  mlir::Value make(Args &&...args) const {
    return OpT::create(builder, loc, std::forward<Args>(args)...);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// What RowBodyBuilder::sigmoid makes before the division.
struct SigmoidParts {
  mlir::arith::NegFOp negated;
  mlir::math::ExpOp exp;
  mlir::arith::AddFOp sum;
};
/// Those of a division that is such a sigmoid.
std::optional<SigmoidParts> matchSigmoid(mlir::arith::DivFOp op);

/// The element type of a body value.
inline mlir::Type bodyElement(mlir::Type type) {
  return mlir::getElementTypeOrSelf(type);
}
/// The shape of a body value: empty for a scalar.
inline llvm::ArrayRef<int64_t> bodyShape(mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vector ? vector.getShape() : llvm::ArrayRef<int64_t>();
}
/// `element` with the shape of `like`.
mlir::Type bodyTypeLike(mlir::Type like, mlir::Type element);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_ROWBODYBUILDER_H
