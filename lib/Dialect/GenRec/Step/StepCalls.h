//===- StepCalls.h - lowers step ops to runtime calls -----------*- C++ -*-===//
//
// One overload per op that becomes a call, used by the op's StepOpInterface (StepOpModels.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_STEP_STEPCALLS_H
#define GENREC_LIB_DIALECT_GENREC_STEP_STEPCALLS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

class StageBuilder;

// Derived domains and moves between domains.
mlir::LogicalResult lowerCall(TruncateOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PadOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PairDomainsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ConcatDomainsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ConcatRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(SplitRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PoolGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(StackDomainsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ConcatSharedOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DeriveOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DeriveGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PairRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PairSumOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(TileOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(TileGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(LeadOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(LagOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PositionOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(LengthOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(FixedRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ParameterRowsOp op, StageBuilder &stage);

// Tables, parameters, updates.
mlir::LogicalResult lowerCall(TableRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(MergedKeysOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DistinctRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(UniqueRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(SegmentSumOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(StepValueOp op, StageBuilder &stage);

// Rows picked from a catalogue.
mlir::LogicalResult lowerCall(DrawRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PickRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(PickListsOp op, StageBuilder &stage);

// Matrix products and attention.
mlir::LogicalResult lowerCall(LinearOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(FusedLinearOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(WeightGradientOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DistinctLinearOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DistinctLinearGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DotInteractionOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(DotInteractionGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(AttentionOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(AttentionGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(FusedAttentionGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(CrossAttentionOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(CrossAttentionGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(InBatchSoftmaxOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(InBatchSoftmaxGradOp op, StageBuilder &stage);

// Sums over portions.
mlir::LogicalResult lowerCall(ContributeOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(CollectOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ContributeRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(CollectRowsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ExactSumOp op, StageBuilder &stage);

// Catalogues, losses, metrics, outputs.
mlir::LogicalResult lowerCall(ResolveOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(TopKOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(RankOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(RankInListOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ScoresOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ScoresGradOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(ReportLossOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(RequireRangeOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(MetricOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(OutputOp op, StageBuilder &stage);

// Generated kernels.
mlir::LogicalResult lowerCall(LaunchOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(LaunchColumnsOp op, StageBuilder &stage);
mlir::LogicalResult lowerCall(LaunchedKernelOp op, StageBuilder &stage);

/// The handles and the sums (floats, or `kernels::SegmentSums *`) that a rank collected.
mlir::Value makeOwnedRows(CollectRowsOp op, StageBuilder &stage);
mlir::Value makeOwnedSums(CollectRowsOp op, StageBuilder &stage);

/// The segment_sum that `sums` is, or that has been contributed and collected as `sums`.
SegmentSumOp findSegmentSum(mlir::Value sums);
/// The `kernels::SegmentSums *` of a sum that the reading kernel adds up row by row.
mlir::Value makeSegmentSums(SegmentSumOp op, StageBuilder &stage);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_STEP_STEPCALLS_H
