//===- StepCallsSink.cpp - catalogues, losses, metrics, outputs as calls -===//
//
// Lowers to functions of genrec_rt/abi.h and genrec_rt/kernels/cpu/step_rank.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

#include <limits>

using namespace mlir;
using namespace genrec;

static Value getNullDomain(const EmitCBuilder &b) {
  return b.literal("nullptr", b.pointer(b.opaque("genrec_domain")));
}

/// i1 buffers hold a byte per row, as `valid` arrays of the runtime do.
static Value getValid(const EmitCBuilder &b, Value valid, StageBuilder &stage) {
  return b.cast(stage.getOptionalPointer(valid, b.i1()), b.pointer(b.u8()));
}

/// The number of the feature that `x` is, or -1.
static int64_t getFeatureNumber(Value x, StageBuilder &stage) {
  auto feature = x.getDefiningOp<FeatureOp>();
  return feature ? stage.index.getFeature(feature.getDomain().getType().getDomain(),
                                          feature.getColumnAttr())
                 : -1;
}

LogicalResult genrec::lowerCall(ResolveOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_resolve",
             {stage.getStep(), stage.getDomainOf(op.getIds()), stage.getPointer(op.getIds()),
              getValid(b, op.getValid(), stage), stage.getDomainOf(op.getCatalogue()),
              stage.getPointer(op.getCatalogue()), b.integer(getFeatureNumber(op.getIds(), stage), b.i32()),
              b.integer(op.getAllowMissing() ? 1 : 0, b.i32()), stage.getPointer(op.getResult())});
  return success();
}

/// The first arguments of scoring calls: queries, items, excluded items.
static SmallVector<Value> getScoring(Operation *op, Value query, Value items, Value exclude,
                                     StageBuilder &stage, const EmitCBuilder &b) {
  Value excluding = exclude ? stage.getDomainOf(exclude) : getNullDomain(b);
  return {stage.getStep(),
          stage.getOpNumber(op),
          b.integer(getRowSize(query.getType())),
          stage.getDomainOf(query),
          stage.getPointer(query),
          stage.getStride(query),
          stage.getDomainOf(items),
          stage.getPointer(items),
          stage.getStride(items),
          excluding,
          stage.getOptionalPointer(exclude, b.i64())};
}

LogicalResult genrec::lowerCall(TopKOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> operands =
      getScoring(op, op.getQuery(), op.getItems(), op.getExclude(), stage, b);
  operands.append({b.integer(getRowSize(op.getIndex().getType())), stage.getPointer(op.getIndex()),
                   stage.getPointer(op.getScore())});
  b.callVoid("kernels::topRows", operands);
  return success();
}

LogicalResult genrec::lowerCall(RankOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> operands =
      getScoring(op, op.getQuery(), op.getItems(), op.getExclude(), stage, b);
  bool isOfLists = getRowDomain(op.getTarget().getType()) != getRowDomain(op.getQuery().getType());
  if (isOfLists)
    operands.push_back(stage.getDomainOf(op.getTarget()));
  operands.append({stage.getPointer(op.getTarget()), stage.getPointer(op.getResult())});
  b.callVoid(isOfLists ? "kernels::rankListedRows" : "kernels::rankRows", operands);
  return success();
}

LogicalResult genrec::lowerCall(RankInListOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::rankInLists",
             {stage.getStep(), stage.getOpNumber(op), stage.getDomainOf(op.getScore()),
              stage.getPointer(op.getScore()), stage.getPointer(op.getLabel()),
              getValid(b, op.getValid(), stage), stage.getPointer(op.getResult())});
  return success();
}

LogicalResult genrec::lowerCall(ScoresOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::scores",
             {stage.getStep(), stage.getOpNumber(op),
              b.integer(getRowSize(op.getQuery().getType())), stage.getDomainOf(op.getQuery()),
              stage.getPointer(op.getQuery()), stage.getStride(op.getQuery()),
              stage.getDomainOf(op.getItems()), stage.getPointer(op.getItems()),
              stage.getStride(op.getItems()), b.integer(op.getFirst()),
              b.integer(getRowSize(op.getResult().getType())),
              b.integer(op.getPartial() ? 1 : 0, b.i32()), stage.getPointer(op.getResult())});
  return success();
}

LogicalResult genrec::lowerCall(ScoresGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Value ontoQuery, ontoItems;
  if (!op.getOnto().empty())
    ontoQuery = op.getOnto()[0], ontoItems = op.getOnto()[1];
  b.callVoid("kernels::scoresGradient",
             {stage.getStep(), b.integer(getRowSize(op.getQuery().getType())),
              stage.getDomainOf(op.getQuery()), stage.getPointer(op.getQuery()),
              stage.getStride(op.getQuery()), stage.getDomainOf(op.getItems()),
              stage.getPointer(op.getItems()), stage.getStride(op.getItems()),
              stage.getPointer(op.getGradient()), stage.getStride(op.getGradient()),
              b.integer(op.getFirst()), b.integer(getRowSize(op.getGradient().getType())),
              stage.getOptionalPointer(ontoQuery, b.f32()),
              stage.getOptionalPointer(ontoItems, b.f32()), stage.getPointer(op.getDquery()),
              stage.getPointer(op.getDitems())});
  return success();
}

/// Fails unless rows are contiguous, which these calls require.
static LogicalResult expectDense(Operation *op, Value x) {
  if (getRowAddress(x).stride == getRowSize(x.getType()))
    return success();
  return op->emitOpError("takes no view of some columns; a row kernel must copy them first");
}

LogicalResult genrec::lowerCall(ReportLossOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Value sum = stage.getPointer(op.getSum()), weight = stage.getPointer(op.getWeight());
  if (stage.target.hasDevice) {
    b.callVoid(
        "genrec_rt_report_device_loss",
        {stage.getStep(), b.integer(stage.index.getLoss(op.getNameAttr()), b.i32()), sum, weight});
    return success();
  }
  b.callVoid("genrec_rt_report_loss",
             {stage.getStep(), b.integer(stage.index.getLoss(op.getNameAttr()), b.i32()),
              b.loadElement(sum, b.integer(0)), b.loadElement(weight, b.integer(0))});
  return success();
}

LogicalResult genrec::lowerCall(RequireRangeOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
  StringRef type = element.isF32()          ? "GENREC_F32"
                   : element.isF64()        ? "GENREC_F64"
                   : element.isInteger(32) ? "GENREC_I32"
                                            : "GENREC_I64";
  // What has no end ends with the greatest float, which says so in messages (row_failures.cpp) and
  // which no infinity is within.
  double most = op.getMax() ? op.getMax()->convertToDouble() : std::numeric_limits<float>::max();
  b.callVoid("genrec_rt_require_range",
             {stage.getStep(), stage.getOpNumber(op), b.text(op.getWhat()),
              b.integer(getFeatureNumber(op.getX(), stage), b.i32()), stage.getDomainOf(op.getX()),
              b.literal(type, b.i32()), stage.getPointer(op.getX()),
              stage.getOptionalPointer(op.getWeight(), b.f32()), getValid(b, op.getValid(), stage),
              op.getItems() ? stage.getDomainOf(op.getItems()) : getNullDomain(b),
              b.floating(op.getMin().convertToDouble(), b.f64()), b.floating(most, b.f64())});
  return success();
}

LogicalResult genrec::lowerCall(MetricOp op, StageBuilder &stage) {
  if (failed(expectDense(op, op.getX())))
    return failure();
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_report_metric",
             {stage.getStep(), stage.getOpNumber(op),
              b.integer(stage.index.getMetric(op.getNameAttr()), b.i32()),
              stage.getDomainOf(op.getX()), stage.getPointer(op.getX()),
              stage.getOptionalPointer(op.getLabel(), b.f32()), getValid(b, op.getValid(), stage),
              stage.getOptionalPointer(op.getKey(), b.i64()),
              stage.getOptionalPointer(op.getWeight(), b.f32())});
  return success();
}

LogicalResult genrec::lowerCall(OutputOp op, StageBuilder &stage) {
  if (failed(expectDense(op, op.getX())))
    return failure();
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_report_output",
             {stage.getStep(), b.integer(stage.index.getOutput(op.getNameAttr()), b.i32()),
              stage.getDomainOf(op.getX()), stage.getPointer(op.getX()),
              getValid(b, op.getValid(), stage)});
  return success();
}
