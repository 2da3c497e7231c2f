//===- StepCallsTable.cpp - embedding tables and their updates as calls --===//
//
// Lowers to functions of genrec_rt/abi.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace genrec;

static void lowerTableRows(TableRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Value valid = stage.getOptionalPointer(op.getValid(), b.i1());
  b.callVoid("genrec_rt_table_rows",
             {stage.getStep(), b.integer(stage.index.getTable(op.getTableAttr()), b.i32()),
              stage.getDomainOf(op.getIds()), stage.getPointer(op.getIds()),
              b.cast(valid, b.pointer(b.u8())), stage.getPointer(op.getResult())});
}

/// Looks up handles by keys of a merged table.
static void lowerMergedRows(TableRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_merged_rows",
             {stage.getStep(), b.integer(stage.index.getTable(op.getTableAttr()), b.i32()),
              stage.getDomainOf(op.getIds()), stage.getPointer(op.getIds()),
              stage.getPointer(op.getResult())});
}

LogicalResult genrec::lowerCall(TableRowsOp op, StageBuilder &stage) {
  if (lookupTable(op, op.getTableAttr()).getMembersAttr())
    lowerMergedRows(op, stage);
  else
    lowerTableRows(op, stage);
  return success();
}

LogicalResult genrec::lowerCall(MergedKeysOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Type mask = b.pointer(b.opaque("const uint8_t"));
  SmallVector<Value> domains, ids, tables, valid(op.getIds().size());
  for (auto [part, values] : llvm::zip(op.getValidOf(), op.getValid()))
    valid[part] = stage.getPointer(values);
  for (auto [part, values, name] :
       llvm::enumerate(op.getIds(), op.getTables().getAsRange<FlatSymbolRefAttr>())) {
    domains.push_back(stage.getDomainOf(values));
    ids.push_back(stage.getPointer(values));
    tables.push_back(b.integer(stage.index.getTable(name), b.i32()));
    if (!valid[part])
      valid[part] = b.literal("nullptr", mask);
  }
  b.callVoid("genrec_rt_merged_keys",
             {stage.getStep(), b.integer(domains.size(), b.i32()), stage.makeArray(b, b.i32(), tables),
              stage.makeArray(b, b.pointer(b.opaque("const genrec_domain")), domains),
              stage.makeArray(b, b.pointer(b.opaque("const int64_t")), ids), stage.makeArray(b, mask, valid),
              stage.getPointer(op.getResult())});
  return success();
}

/// The table_rows op that made the handles, which may have passed unstack_rows and distinct_rows.
static TableRowsOp findMaker(Value rows) {
  while (true)
    if (auto part = rows.getDefiningOp<UnstackRowsOp>())
      rows = part.getX();
    else if (auto distinct = rows.getDefiningOp<DistinctRowsOp>())
      rows = distinct.getRowsOf(rows).front();
    else
      return rows.getDefiningOp<TableRowsOp>();
}

static FailureOr<TableOp> getTable(UniqueRowsOp op) {
  for (Value rows : op.getRows())
    if (TableRowsOp made = findMaker(rows))
      return lookupTable(op, made.getTableAttr());
  return op.emitOpError("needs rows made by table_rows");
}

LogicalResult genrec::lowerCall(UniqueRowsOp op, StageBuilder &stage) {
  FailureOr<TableOp> table = getTable(op);
  if (failed(table))
    return failure();
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> domains, handles, gradients, strides, parents;
  Type rowNumbers = b.pointer(b.opaque("const int64_t"));
  for (auto [rows, gradient] : llvm::zip(op.getRows(), op.getGradients())) {
    domains.push_back(stage.getDomainOf(rows));
    bool isOfParent = getRowDomain(rows.getType()) != getRowDomain(gradient.getType());
    Value parent = isOfParent ? b.load(b.memberOf(domains.back(), "parent", b.pointer(b.i64())))
                              : b.literal("nullptr", rowNumbers);
    parents.push_back(isOfParent ? EmitCBuilder::constant(parent) : parent);
    handles.push_back(stage.getPointer(rows));
    gradients.push_back(stage.getPointer(gradient));
    strides.push_back(stage.getStride(gradient));
  }
  FlatSymbolRefAttr domain = op.getDomain().getType().getDomain();
  Value touched = stage.getDomain(domain), rows = stage.getPointer(op.getResult());
  std::string name = makeIdentifier(domain.getValue()) + "_segments";
  Value segments = stage.getBuffer(getOwnBuffer(op, kSegmentsSlot), b.opaque("void"), name);
  int64_t number = stage.index.getTable(FlatSymbolRefAttr::get(table->getSymNameAttr()));
  Value parts = b.integer(domains.size(), b.i32());
  Value domainArray = stage.makeArray(b.named(domain.getValue() + "_domains"),
                                b.pointer(b.opaque("const genrec_domain")), domains);
  Value handleArray = stage.makeArray(b.named(domain.getValue() + "_handles"),
                                b.pointer(b.opaque("float *const")), handles);
  Value gradientArray = stage.makeArray(b.named(domain.getValue() + "_gradients"),
                                  b.pointer(b.opaque("const float")), gradients);
  Value strideArray = stage.makeArray(b.named(domain.getValue() + "_strides"), b.i64(), strides);
  Value parentArray = stage.makeArray(b.named(domain.getValue() + "_parents"), rowNumbers, parents);
  b.callVoid("genrec_rt_unique_rows",
             {stage.getStep(), b.integer(number, b.i32()), parts, domainArray, handleArray,
              gradientArray, strideArray, parentArray, b.integer(table->getDim()),
              b.integer(op.getAll(), b.i32()), touched, rows, segments});
  return success();
}

namespace {
/// The inputs of a segment_sum: the segments (the gradients of each distinct row) and the arrays of
/// gradients.
struct SegmentInputs {
  SegmentInputs(SegmentSumOp op, StageBuilder &stage);

  Value touched, segments, gradients, strides;
};
} // namespace

SegmentInputs::SegmentInputs(SegmentSumOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> pointers, distances;
  for (Value gradient : op.getGradients()) {
    pointers.push_back(stage.getPointer(gradient));
    distances.push_back(stage.getStride(gradient));
  }
  FlatSymbolRefAttr domain = op.getDomain().getType().getDomain();
  std::string name = makeIdentifier(domain.getValue());
  int64_t buffer = getOwnBuffer(op.getDomain().getDefiningOp(), kSegmentsSlot);
  touched = stage.getDomain(domain);
  segments = stage.getBuffer(buffer, b.opaque("void"), name + "_segments");
  gradients = stage.makeArray(b.named(name + "_gradients"), b.pointer(b.opaque("const float")), pointers);
  strides = stage.makeArray(b.named(name + "_strides"), b.i64(), distances);
}

LogicalResult genrec::lowerCall(SegmentSumOp op, StageBuilder &stage) {
  SegmentInputs inputs(op, stage);
  EmitCBuilder b = stage.at(op);
  b.callVoid("genrec_rt_segment_sum",
             {stage.getStep(), inputs.touched, inputs.segments, b.integer(op.getGradients().size(), b.i32()),
              inputs.gradients, inputs.strides, b.integer(getRowSize(op.getType())),
              stage.getPointer(op.getResult())});
  return success();
}

Value genrec::makeSegmentSums(SegmentSumOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op).named(getValueName(op.getResult()));
  Type type = b.opaque(kSegmentSumsType);
  if (stage.target.hasDevice) { // it is in the buffer of segments, where kernels reach it
    std::string name =
        makeIdentifier(op.getDomain().getType().getDomain().getValue()) + "_segments";
    int64_t buffer = getOwnBuffer(op.getDomain().getDefiningOp(), kSegmentsSlot);
    Value segments = stage.getBuffer(buffer, b.opaque("void"), name);
    return EmitCBuilder::kept(b.call("kernels::segmentSums", b.pointer(type), {segments}));
  }
  SegmentInputs inputs(op, stage);
  Value sums = b.variable(type);
  b.assign(sums, b.call("kernels::segmentSums", type,
                        {inputs.touched, inputs.segments, inputs.gradients, inputs.strides}));
  return EmitCBuilder::kept(b.addressOf(sums));
}

SegmentSumOp genrec::findSegmentSum(Value sums) {
  while (true)
    if (auto owned = sums.getDefiningOp<CollectRowsOp>())
      sums = owned.getSums();
    else if (auto given = sums.getDefiningOp<ContributeRowsOp>())
      sums = given.getSums();
    else
      return sums.getDefiningOp<SegmentSumOp>();
}

LogicalResult genrec::lowerCall(ContributeRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SegmentSumOp sum = findSegmentSum(op.getSums());
  int64_t table = stage.index.getTable(op.getTableAttr());
  Value dim = b.integer(getRowSize(op.getType()));
  if (!isAddedByReader(op.getSums())) {
    b.callVoid("genrec_rt_contribute_rows",
               {stage.getStep(), b.integer(table, b.i32()), stage.getDomain(op.getDomain()),
                stage.getPointer(op.getRows()), dim, stage.getPointer(op.getSums())});
    return success();
  }
  SegmentInputs inputs(sum, stage);
  b.callVoid("genrec_rt_contribute_segments",
             {stage.getStep(), b.integer(table, b.i32()), inputs.touched,
              stage.getPointer(op.getRows()), inputs.segments,
              b.integer(sum.getGradients().size(), b.i32()), inputs.gradients, inputs.strides, dim});
  return success();
}

LogicalResult genrec::lowerCall(StepValueOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  // As genrec_rt_step_value and genrec_rt_store_step_value number them.
  constexpr int64_t kClipNorm = 3, kClipValue = 4;
  std::optional<int64_t> kind = llvm::StringSwitch<std::optional<int64_t>>(op.getName())
                                    .Case("learning_rate", 0)
                                    .Case("bias_correction", 1)
                                    .Case("first_portion", 2)
                                    .Case("clip_norm", kClipNorm)
                                    .Case("clip_value", kClipValue)
                                    .Default(std::nullopt);
  if (!kind)
    return op->emitOpError()
           << "name must be learning_rate, bias_correction, first_portion, clip_norm "
              "or clip_value, but is '"
           << op.getName() << "'";
  Value to = stage.getPointer(op.getResult()), number = b.integer(*kind, b.i32());
  Value argument = b.floating(op.getArgument().convertToDouble(), b.f64());
  if (stage.target.hasDevice) {
    b.callVoid("genrec_rt_store_step_value", {stage.getStep(), number, argument, to});
    return success();
  }
  Value value =
      *kind < kClipNorm
          ? b.call("genrec_rt_step_value", b.f32(), {stage.getStep(), number, argument})
          : b.cast(b.call(("genrec_rt_" + op.getName()).str(), b.f64(), {stage.getStep()}),
                   b.f32());
  b.storeElement(to, b.integer(0), value);
  return success();
}
