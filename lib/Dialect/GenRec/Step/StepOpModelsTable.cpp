//===- StepOpModelsTable.cpp - embedding tables and their updates ---------===//

#include "StepOpModels.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec_rt/abi.h"

using namespace mlir;
using namespace genrec;

bool genrec::isAddedByReader(Value value) {
  auto owned = value.getDefiningOp<CollectRowsOp>();
  bool isSum = value.getDefiningOp<SegmentSumOp>() || value.getDefiningOp<ContributeRowsOp>() ||
               (owned && owned.getOwnedSums() == value);
  if (!isSum || !value.hasOneUse())
    return false;
  Operation *reader = *value.user_begin();
  if (auto given = dyn_cast<ContributeRowsOp>(reader))
    return given.getSums() == value && isAddedByReader(given.getResult());
  if (auto collect = dyn_cast<CollectRowsOp>(reader))
    return collect.getSums() == value && isAddedByReader(collect.getOwnedSums());
  return getStepKind(reader) == StepKind::kernel;
}

namespace {

/// A lookup reads one bucket of keys.
constexpr double kProbeBytes = 64;

/// An op that does a lookup per row.
template <typename OpT> struct SearchStep : StepModel<SearchStep<OpT>, OpT> {
  void addCosts(Operation *op, StepCosts &costs) const {
    costs.addOperandsAndResults(op);
    costs.getOwn().gatheredBytes += kProbeBytes;
  }
};

/// The distinct table rows that a step touches.
struct UniqueRowsStep : StepModel<UniqueRowsStep, UniqueRowsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    FlatSymbolRefAttr domain = cast<UniqueRowsOp>(op).getDomain().getType().getDomain();
    slots.push_back({domain, GENREC_SEGMENT_BYTES_PER_ROW, GENREC_SEGMENT_BYTES,
                     domain.getValue().str() + "_segments"});
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    return sizes.addRowsOf(cast<UniqueRowsOp>(op).getRows());
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto unique = cast<UniqueRowsOp>(op);
    if (!unique.getAll())
      return costs.addOperandsAndResults(op);
    for (Value rows : unique.getRows()) // gradients are not read
      costs.addTensor(rows.getType());
    costs.addTensor(unique.getResult().getType());
  }
};

/// A sum that is added up by the kernel that reads it is a view of its operands.
struct SegmentSumStep : StepModel<SegmentSumStep, SegmentSumOp> {
  StepKind getStepKind(Operation *op) const {
    return isAddedByReader(op->getResult(0)) ? StepKind::view : StepKind::call;
  }
  KeptBuffer getKeptBuffer(Operation *op) const {
    return {cast<SegmentSumOp>(op).getDomain().getDefiningOp(), kSegmentsSlot};
  }
  ValueRange getAliasedOperands(Operation *op) const {
    return cast<SegmentSumOp>(op).getGradients();
  }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    return getStepKind(op) == StepKind::view ? makeSegmentSums(cast<SegmentSumOp>(op), stage)
                                             : Value();
  }
};

/// The distinct rows of several lookups.
struct DistinctRowsStep : StepModel<DistinctRowsStep, DistinctRowsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    auto distinct = cast<DistinctRowsOp>(op);
    auto lookups = static_cast<int64_t>(distinct.getAllRows().size());
    slots.push_back({getRowDomain(distinct.getAllRows().front().getType()),
                     GENREC_DISTINCT_BYTES_PER_ROW * lookups,
                     GENREC_DISTINCT_BYTES_PER_PART * lookups + GENREC_DISTINCT_BYTES,
                     getPlacesName(distinct)});
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr domain,
                                        SizeBuilder &sizes) const {
    auto distinct = cast<DistinctRowsOp>(op);
    auto made = llvm::find_if(distinct.getDomains(),
                              [&](Value value) { return domainOf(value) == domain; });
    return sizes.addRowsOf(distinct.getRowsOf(*made));
  }
};

} // namespace

void genrec::attachTableModels(MLIRContext *context) {
  attachModels<SearchStep, TableRowsOp, ResolveOp>(context);
  attachModels<PlainCall, MergedKeysOp>(context);
  attachModels<Setup, StepValueOp>(context);
  UniqueRowsOp::attachInterface<UniqueRowsStep>(*context);
  SegmentSumOp::attachInterface<SegmentSumStep>(*context);
  DistinctRowsOp::attachInterface<DistinctRowsStep>(*context);
}
