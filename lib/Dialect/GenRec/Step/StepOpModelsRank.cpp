//===- StepOpModelsRank.cpp - sums over portions as step ops --------------===//

#include "StepOpModels.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

/// Whether the sum may take the memory of the partial value: nobody else reads that.
static bool isSummedInPlace(Value given) {
  auto contribute = given.getDefiningOp<ContributeOp>();
  return contribute.getOperand(cast<OpResult>(given).getResultNumber()).hasOneUse();
}

namespace {

/// With one portion on one rank these calls take no time.
template <typename ModelT, typename OpT> struct PortionCall : StepModel<ModelT, OpT> {
  StepKind getStepKind(Operation *) const { return StepKind::setup; }
};

/// The result aliases the partial values.
struct ContributeStep : PortionCall<ContributeStep, ContributeOp> {
  bool ownsResult(Operation *, unsigned) const { return false; }
  ValueRange getAliasedOperands(Operation *op) const { return op->getOperands(); }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned number) const {
    return stage.getPointer(op->getOperand(number));
  }
};

struct CollectStep : PortionCall<CollectStep, CollectOp> {
  bool ownsResult(Operation *op, unsigned number) const {
    return !isSummedInPlace(op->getOperand(number));
  }
  ValueRange getAliasedOperands(Operation *op) const { return op->getOperands(); }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned number) const {
    Value given = op->getOperand(number);
    return isSummedInPlace(given) ? stage.getPointer(given) : Value();
  }
};

/// A buffer of the sum that passes through: that of the rows' segments, where the update adds up.
static KeptBuffer getSegments(Value sums) {
  SegmentSumOp sum = findSegmentSum(sums);
  return sum ? KeptBuffer{sum.getDomain().getDefiningOp(), kSegmentsSlot} : KeptBuffer();
}

struct ContributeRowsStep : PortionCall<ContributeRowsStep, ContributeRowsOp> {
  bool ownsResult(Operation *, unsigned) const { return false; }
  ValueRange getAliasedOperands(Operation *op) const { return op->getOperands().drop_front(2); }
  KeptBuffer getKeptBuffer(Operation *op) const { return getSegments(op->getResult(0)); }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    return stage.getPointer(cast<ContributeRowsOp>(op).getSums());
  }
};

/// The rows and sums are the operands', or lie in memory of the runtime.
struct CollectRowsStep : PortionCall<CollectRowsStep, CollectRowsOp> {
  bool ownsResult(Operation *, unsigned) const { return false; }
  ValueRange getAliasedOperands(Operation *op) const { return op->getOperands().drop_front(1); }
  KeptBuffer getKeptBuffer(Operation *op) const { return getSegments(cast<CollectRowsOp>(op).getSums()); }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr, SizeBuilder &sizes) const {
    return sizes.addRowsOf(cast<CollectRowsOp>(op).getRows());
  }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned number) const {
    auto owned = cast<CollectRowsOp>(op);
    return number == 1 ? makeOwnedRows(owned, stage) : makeOwnedSums(owned, stage);
  }
};

} // namespace

void genrec::attachRankModels(MLIRContext *context) {
  ContributeOp::attachInterface<ContributeStep>(*context);
  CollectOp::attachInterface<CollectStep>(*context);
  ContributeRowsOp::attachInterface<ContributeRowsStep>(*context);
  CollectRowsOp::attachInterface<CollectRowsStep>(*context);
  attachModels<PlainCall, ExactSumOp>(context);
}
