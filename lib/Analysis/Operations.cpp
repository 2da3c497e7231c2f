//===- Operations.cpp - costs of arithmetic -------------------------------===//

#include "genrec/Analysis/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

static double getElements(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? static_cast<double>(vector.getNumElements()) : 1.0;
}

/// Operations per element of the result.
static double getPrice(Operation *op) {
  constexpr double kDivision = 4, kFunction = 16;
  if (isa<arith::ConstantOp>(op))
    return 0;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          math::SqrtOp, math::RsqrtOp>(op))
    return kDivision;
  if (isa<math::AbsFOp, math::AbsIOp>(op))
    return 1;
  bool isFunction = isa<math::MathDialect>(op->getDialect()) || isa<DrawOpInterface>(op) ||
                    op->hasTrait<ElementwiseBody>();
  if (isFunction)
    return kFunction;
  return isa<arith::ArithDialect>(op->getDialect()) ? 1 : 0;
}

double genrec::getOperations(Operation *op) {
  if (op->getNumResults() != 1)
    return 0;
  if (auto reduction = dyn_cast<vector::ReductionOp>(op))
    return getElements(reduction.getVector().getType());
  return getPrice(op) * getElements(op->getResult(0).getType());
}

double genrec::getRowOperations(RowwiseOpInterface op) {
  Block body;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToStart(&body);
  SmallVector<Value> results;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Type type = operand.getType();
    bool isWhole = isa<DomainType>(type) || op.isGatherSource(index);
    body.addArgument(isWhole ? type : getBodyType(type), op->getLoc());
  }
  if (failed(op.buildRowBody(builder, body.getArguments(), results)))
    return 0;
  double total = 0;
  for (Operation &inner : body)
    total += getOperations(&inner);
  return total;
}
