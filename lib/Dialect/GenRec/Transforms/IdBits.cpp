//===- IdBits.cpp - how many bits an id has -------------------------------===//

#include "IdBits.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

int64_t genrec::getIdBits(Value ids) {
  Operation *op = ids.getDefiningOp();
  if (!op)
    return kUnknownIdBits;
  if (auto type = dyn_cast<RankedTensorType>(ids.getType());
      type && type.getElementType().isInteger(1))
    return 1;
  // Past the end of a list: 0.
  if (op->hasTrait<PassesRowsOn>())
    return getIdBits(op->getOperand(0));
  if (auto bounded = dyn_cast<IdBitsOpInterface>(op))
    return bounded.inferIdBits(getIdBits);
  // hash and its like say how many bits they make.
  auto bits = op->getAttrOfType<IntegerAttr>("bits");
  return bits && isa<RowwiseOpInterface>(op) ? bits.getInt() : kUnknownIdBits;
}
