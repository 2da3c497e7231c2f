//===- StepCallsRank.cpp - sums over portions as calls --------------------===//
//
// Lowers to functions of genrec_rt/abi.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

using namespace mlir;
using namespace genrec;

/// The number of floats of `value`, a shared tensor or rows of a domain.
static Value getFloats(Value value, StageBuilder &stage, const EmitCBuilder &b) {
  Value size = b.integer(getRowSize(value.getType()));
  return getRowDomain(value.getType()) ? b.mul(stage.getCount(value), size) : size;
}

/// The parameters for whose updates alone the sums of what `op` contributes are read; -1: none.
static Value getParameters(ContributeOp op, StageBuilder &stage, const EmitCBuilder &b) {
  SmallVector<Value> parameters;
  for (Value given : op.getResults()) {
    ParameterRowsOp rows = getRowsUpdatedBy(given);
    int64_t number = rows ? stage.index.getParameter(rows.getParameterAttr()) : -1;
    parameters.push_back(b.integer(number, b.i32()));
  }
  return stage.makeArray(b.named("parameters_of"), b.i32(), parameters);
}

LogicalResult genrec::lowerCall(ContributeOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> pointers, sizes;
  for (Value value : op.getValues()) {
    pointers.push_back(stage.getPointer(value));
    sizes.push_back(getFloats(value, stage, b));
  }
  b.callVoid("genrec_rt_contribute",
             {stage.getStep(), b.integer(op.getNumber(), b.i32()), b.integer(sizes.size(), b.i32()),
              stage.makeArray(b.named("partial"), b.pointer(b.opaque("const float")), pointers),
              stage.makeArray(b.named("partial_floats"), b.i64(), sizes),
              getParameters(op, stage, b)});
  return success();
}

LogicalResult genrec::lowerCall(CollectOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> partial, sums, sizes;
  for (auto [value, result] : llvm::zip_equal(op.getValues(), op.getResults())) {
    partial.push_back(stage.getPointer(value));
    sums.push_back(stage.getPointer(result));
    sizes.push_back(getFloats(value, stage, b));
  }
  b.callVoid("genrec_rt_collect",
             {stage.getStep(), b.integer(op.getNumber(), b.i32()), b.integer(sizes.size(), b.i32()),
              stage.makeArray(b.named("partial"), b.pointer(b.opaque("const float")), partial),
              stage.makeArray(b.named("partial_floats"), b.i64(), sizes),
              stage.makeArray(b.named("sums"), b.pointer(b.opaque("float")), sums)});
  return success();
}

LogicalResult genrec::lowerCall(CollectRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_collect_rows",
             {stage.getStep(), b.integer(stage.index.getTable(op.getTableAttr()), b.i32()),
              stage.getDomain(op.getDomain()), stage.getDomain(op.getOwned())});
  return success();
}

/// What the rank collected of the table, once genrec_rt_collect_rows was called.
static Value getCollected(CollectRowsOp op, StageBuilder &stage, const EmitCBuilder &b) {
  return b.call("genrec_rt_collected_rows", b.pointer(b.opaque("const genrec_collected_rows")),
                {stage.getStep(), b.integer(stage.index.getTable(op.getTableAttr()), b.i32())});
}

Value genrec::makeOwnedRows(CollectRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op).named(getValueName(op.getOwnedRows()));
  Type type = b.pointer(b.pointer(b.f32()));
  return EmitCBuilder::kept(b.call("kernels::ownedRows", type,
                                   {getCollected(op, stage, stage.at(op)), stage.getPointer(op.getRows())}));
}

Value genrec::makeOwnedSums(CollectRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op).named(getValueName(op.getOwnedSums()));
  Value collected = getCollected(op, stage, stage.at(op)), own = stage.getPointer(op.getSums());
  Type type = isAddedByReader(op.getOwnedSums()) ? b.opaque(kSegmentSumsType) : b.f32();
  return EmitCBuilder::kept(b.call("kernels::ownedSums", b.pointer(type), {collected, own}));
}

LogicalResult genrec::lowerCall(ExactSumOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> domains, ofParameters, values, sums;
  for (auto [rows, sum] : llvm::zip_equal(op.getValues(), op.getResults())) {
    Value domain =
        lookupDomainValue(op->getParentOfType<ProgramOp>(), getRowDomain(rows.getType()));
    domains.push_back(stage.getDomainOf(rows));
    ofParameters.push_back(b.integer(domain.getDefiningOp<ParameterRowsOp>() ? 1 : 0, b.i32()));
    values.push_back(stage.getPointer(rows));
    sums.push_back(stage.getPointer(sum));
  }
  b.callVoid(
      "genrec_rt_exact_sums",
      {stage.getStep(), b.integer(sums.size(), b.i32()),
       stage.makeArray(b.named("owned"), b.pointer(b.opaque("const genrec_domain")), domains),
       stage.makeArray(b.named("of_parameters"), b.i32(), ofParameters),
       stage.makeArray(b.named("values"), b.pointer(b.opaque("const float")), values),
       stage.makeArray(b.named("sums"), b.pointer(b.opaque("float")), sums)});
  return success();
}
