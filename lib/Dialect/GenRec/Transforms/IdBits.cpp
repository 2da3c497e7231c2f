//===- IdBits.cpp - bounds on ids -----------------------------------------===//

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
  // Rows that an op adds are 0, which fits.
  if (op->hasTrait<PassesRowsOn>())
    return getIdBits(op->getOperand(0));
  if (auto bounded = dyn_cast<IdBitsOpInterface>(op))
    return bounded.inferIdBits(getIdBits);
  // hash and similar ops have the number of bits as an attribute.
  auto bits = op->getAttrOfType<IntegerAttr>("bits");
  return bits && isa<RowwiseOpInterface>(op) ? bits.getInt() : kUnknownIdBits;
}
