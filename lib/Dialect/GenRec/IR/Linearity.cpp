//===- Linearity.cpp - which ops are linear, and in what ------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;
using llvm::SmallBitVector;

static bool isFloatTensor(Value value) {
  return isa<RankedTensorType>(value.getType()) &&
         isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

bool genrec::variesInAllFloats(Operation *op, const SmallBitVector &operands) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (isFloatTensor(operand) && !operands[index])
      return false;
  return true;
}

/// In the gradient, or in the query or the items, not in two of them.
bool ScoresGradOp::isLinearIn(const SmallBitVector &varying) { return varying.count() == 1; }

/// `onto` is added to the results.
bool ScoresGradOp::takesPartial(unsigned index) { return index >= 3; }

/// The other operands only order the op.
bool AfterOp::takesPartial(unsigned index) { return index > 0; }

bool MulOp::isLinearIn(const SmallBitVector &varying) { return varying.count() == 1; }

bool DivOp::isLinearIn(const SmallBitVector &varying) { return !varying[1]; }

bool SelectOp::isLinearIn(const SmallBitVector &varying) {
  return !varying[0] && varying[1] && varying[2];
}

bool RowReduceOp::isLinearIn(const SmallBitVector &) { return getKind() != ReduceKind::max; }

bool PoolOp::isLinearIn(const SmallBitVector &) { return getKind() != PoolKind::max; }

/// With `bf16` partial values are added up first: their sum is what is rounded.
bool WeightGradientOp::isLinearIn(const SmallBitVector &varying) {
  return !getBf16() && varying.count() == 1;
}

/// In the gradient, its last operand, as the layer's own gradients are.
bool DistinctLinearGradOp::isLinearIn(const SmallBitVector &varying) {
  return !getBf16() && varying.count() == 1 && varying[varying.size() - 1];
}

/// x · weight + bias: in x, or in the weight, together with the bias.
bool LinearOp::isLinearIn(const SmallBitVector &varying) {
  bool withBias = !getBias() || varying[2];
  return !getBf16() && withBias && varying[0] != varying[1];
}
