//===- RowOps.cpp - ops that row kernels can compute ----------------------===//

#include "RowOps.h"

using namespace mlir;
using namespace genrec;

bool genrec::isRowOp(Operation *op) {
  auto part = dyn_cast<KernelPartOpInterface>(op);
  return part ? part.isKernelPart() : isa<RowwiseOpInterface>(op);
}

FlatSymbolRefAttr genrec::getRowOpDomain(Operation *op) {
  auto part = dyn_cast<KernelPartOpInterface>(op);
  return part ? part.getKernelDomain() : getRowDomain(op->getResult(0).getType());
}

bool genrec::isSharedOnly(Operation *op) { return !getRowOpDomain(op); }

std::optional<OperandRole> genrec::getOperandRole(Operation *op, unsigned index) {
  Value operand = op->getOperand(index);
  if (isa<DomainType>(operand.getType()))
    return std::nullopt;
  if (auto part = dyn_cast<KernelPartOpInterface>(op))
    return part.getKernelOperandRole(index);
  if (auto rowwise = dyn_cast<RowwiseOpInterface>(op); rowwise && rowwise.isGatherSource(index))
    return OperandRole::source;
  return getRowDomain(operand.getType()) ? OperandRole::aligned : OperandRole::shared;
}

ResultRole genrec::getResultRole(Operation *op, unsigned index) {
  auto part = dyn_cast<KernelPartOpInterface>(op);
  return part ? part.getKernelResultRole(index) : ResultRole::aligned;
}

bool genrec::readsColumnsInPlace(OpOperand &use) {
  auto reader = dyn_cast<StridedReadOpInterface>(use.getOwner());
  return reader && reader.readsColumnsInPlace(use.getOperandNumber());
}
