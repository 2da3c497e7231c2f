//===- GradientBuilder.h - builds ops for gradients -------------*- C++ -*-===//
//
// Builds ops of the dialect whose result types are inferred from their operands, and the adjoint of
// broadcasting. Gradients and decompositions use it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_GRADIENTBUILDER_H
#define GENREC_DIALECT_GENREC_IR_GRADIENTBUILDER_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The x of which `slope` is the derivative of silu as its gradient builds it; null for other
/// values.
mlir::Value matchSiluSlope(mlir::Value slope);

/// Builds ops at one location.
class GradientBuilder {
public:
  GradientBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// A shared scalar of the element type of `like`.
  mlir::Value constant(double value, mlir::Type like) const;

  /// Elementwise ops. The result type is that of the broadcast operands.
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value div(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value x, double factor) const;
  mlir::Value maximum(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value compare(CompareKind kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value select(mlir::Value condition, mlir::Value onTrue,
                     mlir::Value onFalse) const;
  /// `value` where `condition` is true, otherwise 0.
  mlir::Value maskWith(mlir::Value condition, mlir::Value value) const;

  template <typename OpT>
  mlir::Value unary(mlir::Value x) const {
    return OpT::create(builder, loc, x.getType(), x);
  }

  /// Reduction along each row: row shape [d] becomes [].
  mlir::Value rowReduce(ReduceKind kind, mlir::Value x) const;
  /// Sum over all rows.
  mlir::Value reduceRows(mlir::Value x) const;
  mlir::Value slice(mlir::Value x, int64_t offset, int64_t size) const;

  /// Broadcasts a value of row shape [] to `type`, whose row shape is [d].
  mlir::Value repeatTo(mlir::Value x, mlir::Type type) const;
  /// The adjoint of broadcasting: `gradient` summed to `type`.
  mlir::Value reduceTo(mlir::Value gradient, mlir::Type type) const;

  /// The value of `type`'s domain in the program being built.
  mlir::Value domainOf(mlir::Type type) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  mlir::Value reduceShared(mlir::Value gradient) const;
};

/// A tensor type with elements `element`; domain (or shared) and row shape are `type`'s.
mlir::RankedTensorType withElement(mlir::Type type, mlir::Type element);
/// A tensor type with row shape `rowShape`; domain (or shared) and element type are `type`'s.
mlir::RankedTensorType withRowShape(mlir::Type type,
                                    llvm::ArrayRef<int64_t> rowShape);
/// Whether `type` is a tensor of floats, for which gradients exist.
bool isDifferentiable(mlir::Type type);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_GRADIENTBUILDER_H
