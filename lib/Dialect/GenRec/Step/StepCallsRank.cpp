//===- StepCallsRank.cpp - sums over portions as calls --------------------===//
//
// Lowers to functions of genrec_rt/abi.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

/// The number of floats of `value`, a shared tensor or rows of a domain.
static Value getFloats(Value value, StageBuilder &stage, const EmitCBuilder &b) {
  Value size = b.integer(getRowSize(value.getType()));
  return getRowDomain(value.getType()) ? b.mul(stage.getCount(value), size) : size;
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
              stage.makeArray(b.named("partial_floats"), b.i64(), sizes)});
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
  b.callVoid("genrec_rt_exact_sum", {stage.getStep(), stage.getDomainOf(op.getX()),
                                     stage.getPointer(op.getX()), stage.getPointer(op.getResult())});
  return success();
}
