//===- RecomputeCost.cpp - the cost of recomputing a row ------------------===//

#include "RecomputeCost.h"
#include "RowOps.h"

#include "genrec/Analysis/Operations.h"

using namespace mlir;
using namespace genrec;

/// Bytes moved in the time of one operation.
static constexpr double bytesPerOperation = 0.35;

double genrec::getRowBytes(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  double size = 8.0;
  if (element.isInteger(1))
    size = 1.0;
  else if (element.isIntOrFloat())
    size = element.getIntOrFloatBitWidth() / 8.0;
  else if (isa<StringType>(element))
    size = 16.0;
  return size * getRowSize(type);
}

double genrec::getArithmeticCost(Operation *op) {
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  return rowwise ? getRowOperations(rowwise) * bytesPerOperation : 0.0;
}

double genrec::getReadCost(Operation *op, unsigned index) {
  std::optional<OperandRole> role = getOperandRole(op, index);
  if (!role || *role == OperandRole::shared)
    return 0.0;
  if (*role == OperandRole::source)
    return op->getNumResults() ? getRowBytes(op->getResult(0).getType()) : 0.0;
  Type type = op->getOperand(index).getType();
  double bytes = getRowBytes(type);
  // For a handle, the bytes of the table row that the kernel loads through it.
  if (auto row = dyn_cast<RowType>(getElementTypeOrSelf(type)))
    bytes += static_cast<double>(row.getValueBytes());
  constexpr double rowsPerAncestor = 4.0;
  return *role == OperandRole::ancestor ? bytes / rowsPerAncestor : bytes;
}

bool genrec::isRecomputable(Operation *op) {
  if (isa<CatalogueOpInterface>(op)) // draws many rows
    return false;
  if (auto kernel = dyn_cast<RowKernelOp>(op))
    for (Operation &inner : kernel.getBody().front())
      if (hasEffect<MemoryEffects::Write>(&inner))
        return false;
  for (unsigned index = 0; index < op->getNumResults(); ++index)
    if (getResultRole(op, index) != ResultRole::aligned)
      return false;
  return op->getNumResults() > 0;
}
