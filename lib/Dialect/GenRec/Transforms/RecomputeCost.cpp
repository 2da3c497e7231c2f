//===- RecomputeCost.cpp - what computing a row again costs ---------------===//

#include "RecomputeCost.h"
#include "RowOps.h"

using namespace mlir;
using namespace genrec;

/// Bytes moved in the time of one elementwise operation on an element.
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

/// Operations per element of the op's widest operand or result.
static double getOperations(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<FanoutOp, SliceColumnsOp, ConcatColumnsOp, PadColumnsOp, DetachOp, BroadcastRowsOp,
            PoolOp, EmbeddingOp, GatherRowsOp, RowKernelOp>([](Operation *) { return 0.0; })
      .Case<DivOp, SqrtOp, RsqrtOp, ModOp>([](Operation *) { return 4.0; })
      .Case<ExpOp, LogOp, SinOp, CosOp, TanhOp, SigmoidOp, SiluOp, GeluOp, ErfOp, SoftplusOp, HashOp>(
          [](Operation *) { return 12.0; })
      // Ten rounds of Philox give four words.
      .Case<DropoutOp, RandomUniformOp>([](Operation *) { return 16.0; })
      .Case<BucketizeOp, SoftmaxCrossEntropyOp, SoftmaxCrossEntropyGradOp, LogSumExpOp>(
          [](Operation *) { return 20.0; })
      .Default([](Operation *) { return 1.0; });
}

double genrec::getArithmeticCost(Operation *op) {
  int64_t elements = 1;
  for (Type type : op->getResultTypes())
    elements = std::max(elements, getRowSize(type));
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (getOperandRole(op, index) == OperandRole::aligned)
      elements = std::max(elements, getRowSize(operand.getType()));
  return getOperations(op) * elements * bytesPerOperation;
}

double genrec::getReadCost(Operation *op, unsigned index) {
  std::optional<OperandRole> role = getOperandRole(op, index);
  if (!role || *role == OperandRole::shared)
    return 0.0;
  if (*role == OperandRole::source)
    return op->getNumResults() ? getRowBytes(op->getResult(0).getType()) : 0.0;
  Type type = op->getOperand(index).getType();
  double bytes = getRowBytes(type);
  // A handle stands for the table row that the kernel loads through it.
  if (auto row = dyn_cast<RowType>(getElementTypeOrSelf(type)))
    bytes += 4.0 * row.getWidth();
  constexpr double rowsPerAncestor = 4.0;
  return *role == OperandRole::ancestor ? bytes / rowsPerAncestor : bytes;
}

bool genrec::isRecomputable(Operation *op) {
  if (isa<SampledSoftmaxOp, SampledSoftmaxGradOp>(op))
    return false;
  if (auto kernel = dyn_cast<RowKernelOp>(op))
    for (Operation &inner : kernel.getBody().front())
      if (isa<RowStoreOp, AccumulateOp>(inner))
        return false;
  for (unsigned index = 0; index < op->getNumResults(); ++index)
    if (getResultRole(op, index) != ResultRole::aligned)
      return false;
  return op->getNumResults() > 0;
}
