//===- IdBits.cpp - how many bits an id has -------------------------------===//

#include "IdBits.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

static constexpr int64_t kUnknown = 64;

static int64_t bitsBelow(int64_t count) {
  return count <= 1 ? 1 : static_cast<int64_t>(llvm::Log2_64_Ceil(count));
}

static int64_t getMost(OperandRange values) {
  int64_t most = 0;
  for (Value value : values)
    most = std::max(most, getIdBits(value));
  return most;
}

static int64_t getConstantBits(ConstantOp op) {
  auto values = dyn_cast<DenseIntElementsAttr>(op.getValue());
  if (!values)
    return kUnknown;
  int64_t bits = 1;
  for (const APInt &value : values) {
    if (value.isNegative() && value.getBitWidth() > 1)
      return kUnknown;
    bits = std::max<int64_t>(bits, value.getActiveBits());
  }
  return bits;
}

int64_t genrec::getIdBits(Value ids) {
  Operation *op = ids.getDefiningOp();
  if (!op)
    return kUnknown;
  if (auto type = dyn_cast<RankedTensorType>(ids.getType());
      type && type.getElementType().isInteger(1))
    return 1;
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([](FeatureOp feature) {
        int64_t bits = feature.getIdBits();
        return bits > 0 ? bits : kUnknown;
      })
      .Case([](ModOp mod) { return bitsBelow(mod.getDivisor()); })
      .Case(
          [](BucketizeOp op) { return bitsBelow(static_cast<int64_t>(op.getEdges().size()) + 1); })
      .Case([](ConstantOp op) { return getConstantBits(op); })
      // Past the end of a list: 0.
      .Case<DeriveOp, FanoutOp, LeadOp, LagOp, SplitRowsOp, DetachOp>(
          [](Operation *op) { return getIdBits(op->getOperand(0)); })
      .Case([](ConcatRowsOp op) { return getMost(op.getParts()); })
      .Case([](SelectOp op) {
        return std::max(getIdBits(op.getOnTrue()), getIdBits(op.getOnFalse()));
      })
      .Case([](CastOp op) {
        auto from = cast<RankedTensorType>(op.getX().getType());
        auto to = cast<RankedTensorType>(op.getType()).getElementType();
        int64_t bits = isa<IntegerType>(from.getElementType()) ? getIdBits(op.getX()) : kUnknown;
        return bits < static_cast<int64_t>(to.getIntOrFloatBitWidth()) ? bits : kUnknown;
      })
      .Default([](Operation *op) {
        // hash and its like say how many bits they make.
        auto bits = op->getAttrOfType<IntegerAttr>("bits");
        return bits && isa<RowwiseOpInterface>(op) ? bits.getInt() : kUnknown;
      });
}
