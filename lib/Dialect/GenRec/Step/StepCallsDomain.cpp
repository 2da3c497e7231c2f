//===- StepCallsDomain.cpp - domains and moves between them as calls -----===//
//
// Lowers to genrec_rt/kernels/cpu/domains.h and lists.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"
#include "genrec_rt/device_limits.h"

using namespace mlir;
using namespace genrec;

/// The C type of the elements of `tensor`'s rows.
static Attribute getElementArgument(const EmitCBuilder &b, Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return b.templateType(getBufferElement(b, element));
}

static Value getWidth(const EmitCBuilder &b, Value tensor) {
  return b.integer(getRowSize(tensor.getType()));
}

/// The three arrays of a derived domain.
static void addDomainArrays(Operation *op, StageBuilder &stage, SmallVectorImpl<Value> &operands) {
  EmitCBuilder b = stage.at(op);
  std::string name =
      makeIdentifier(cast<DomainType>(op->getResult(0).getType()).getDomain().getValue());
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kOffsetsSlot), b.i64(), name + "_offsets"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kParentSlot), b.i64(), name + "_parent"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kIdentitySlot), b.u64(), name + "_identity"));
}

/// The op that makes `domain`, or null.
static Operation *getMaker(Operation *op, FlatSymbolRefAttr domain) {
  Value value = lookupDomainValue(op->getParentOfType<ProgramOp>(), domain);
  return value ? value.getDefiningOp() : nullptr;
}

LogicalResult genrec::lowerCall(TruncateOp op, StageBuilder &stage) {
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getSource()),
                                 stage.getDomain(op.getResult())};
  EmitCBuilder b = stage.at(op);
  operands.push_back(b.integer(op.getCount()));
  addDomainArrays(op, stage, operands);
  b.callVoid("kernels::truncate", operands, {b.templateBool(op.getKeep() == KeepKind::last)});
  return success();
}

LogicalResult genrec::lowerCall(PadOp op, StageBuilder &stage) {
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getSource()),
                                 stage.getDomain(op.getResult())};
  EmitCBuilder b = stage.at(op);
  operands.push_back(b.integer(op.getCount()));
  addDomainArrays(op, stage, operands);
  b.callVoid("kernels::pad", operands, {b.templateBool(op.getSide() == PadSide::front)});
  return success();
}

LogicalResult genrec::lowerCall(PairDomainsOp op, StageBuilder &stage) {
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getFirst()),
                                 stage.getDomain(op.getSecond()), stage.getDomain(op.getResult())};
  addDomainArrays(op, stage, operands);
  stage.at(op).callVoid("kernels::pairDomains", operands);
  return success();
}

/// Parts that are joined are arguments of a kernel on a device.
static LogicalResult checkParts(Operation *op, size_t parts, const StageBuilder &stage) {
  if (!stage.target.hasDevice || parts <= size_t(rt::kMostJoinedParts))
    return success();
  return op->emitOpError() << "joins " << parts << " parts, but a device joins "
                           << rt::kMostJoinedParts
                           << " at once; join them in several steps, or use --target=cpu";
}

LogicalResult genrec::lowerCall(ConcatDomainsOp op, StageBuilder &stage) {
  if (failed(checkParts(op, op.getSources().size(), stage)))
    return failure();
  DomainOp declaration = lookupDomain(op, op.getResult().getType().getDomain());
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(declaration.getParentAttr()),
                                 stage.getDomain(op.getResult())};
  EmitCBuilder b = stage.at(op);
  addDomainArrays(op, stage, operands);
  for (Value source : op.getSources())
    operands.push_back(stage.getDomain(source));
  b.callVoid("kernels::concatDomains", operands);
  return success();
}

/// Lowers derive and derive_grad; `maker` made the domain `derived` from a list.
static void lowerDerive(Operation *op, StringRef callee, Operation *maker,
                        FlatSymbolRefAttr derived, bool fromEnd, StageBuilder &stage) {
  Value x = op->getOperand(0), result = op->getResult(0);
  EmitCBuilder b = stage.at(op);
  b.callVoid(callee,
             {stage.getStep(), stage.getDomain(maker->getOperand(0)), stage.getDomain(derived),
              getWidth(b, x), stage.getPointer(x), stage.getStride(x), stage.getPointer(result)},
             {b.templateBool(fromEnd)});
}

/// Lowers pair_rows and pair_sum; `pairs` is the domain of pairs, `second` that of each pair's
/// second row.
static void lowerPairMove(Operation *op, StringRef callee, FlatSymbolRefAttr second,
                          FlatSymbolRefAttr pairs, StageBuilder &stage) {
  Value x = op->getOperand(0);
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(second), stage.getDomain(pairs)};
  EmitCBuilder b = stage.at(op);
  operands.append({getWidth(b, x), stage.getPointer(x), stage.getStride(x),
                   stage.getPointer(op->getResult(0))});
  b.callVoid(callee, operands);
}

/// Lowers tile and tile_grad; the rows of `list` are the rows of the lists.
template <typename OpT>
static void lowerTile(OpT op, StringRef callee, Value list, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid(callee,
             {stage.getStep(), stage.getDomainOf(list), b.integer(op.getCount()), getWidth(b, list),
              stage.getPointer(op.getX()), stage.getStride(op.getX()),
              stage.getPointer(op.getResult())},
             {b.templateBool(op.getKeep() == KeepKind::last)});
}

static ConcatDomainsOp getConcat(Operation *op, FlatSymbolRefAttr domain) {
  return dyn_cast_or_null<ConcatDomainsOp>(getMaker(op, domain));
}

LogicalResult genrec::lowerCall(ConcatRowsOp op, StageBuilder &stage) {
  if (failed(checkParts(op, op.getParts().size(), stage)))
    return failure();
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getDomain()),
                                 stage.getPointer(op.getResult())};
  for (Value part : op.getParts())
    operands.append({stage.getDomainOf(part), stage.getPointer(part), stage.getStride(part)});
  EmitCBuilder b = stage.at(op);
  operands.insert(operands.begin() + 2, getWidth(b, op.getResult()));
  b.callVoid("kernels::concatRows", operands, {getElementArgument(b, op.getResult())});
  return success();
}

LogicalResult genrec::lowerCall(SplitRowsOp op, StageBuilder &stage) {
  FlatSymbolRefAttr joined = getRowDomain(op.getX().getType());
  ConcatDomainsOp concat = getConcat(op, joined);
  if (!concat)
    return op.emitOpError() << "needs rows of a domain made by concat_domains, but @"
                            << joined.getValue() << " is made by another op";
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> operands = {stage.getStep(),
                                 stage.getDomain(joined),
                                 getWidth(b, op.getX()),
                                 stage.getPointer(op.getX()),
                                 stage.getStride(op.getX()),
                                 stage.getPointer(op.getResult()),
                                 b.integer(op.getPart())};
  for (Value source : concat.getSources())
    operands.push_back(stage.getDomain(source));
  b.callVoid("kernels::splitRows", operands, {getElementArgument(b, op.getX())});
  return success();
}

/// Lowers lead and lag: a shift by `distance` rows towards the end or the start of the list.
static void lowerShift(Operation *op, int64_t distance, StageBuilder &stage) {
  Value x = op->getOperand(0);
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::shiftRows",
             {stage.getStep(), stage.getDomainOf(x), b.integer(distance), getWidth(b, x),
              stage.getPointer(x), stage.getStride(x), stage.getPointer(op->getResult(0)),
              stage.getPointer(op->getResult(1))},
             {getElementArgument(b, x)});
}

LogicalResult genrec::lowerCall(PoolGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  StringRef kind = op.getKind() == PoolKind::max     ? "kernels::PoolChoice::max"
                   : op.getKind() == PoolKind::first ? "kernels::PoolChoice::first"
                                                     : "kernels::PoolChoice::last";
  b.callVoid("kernels::poolGrad",
             {stage.getStep(), stage.getDomainOf(op.getX()), getWidth(b, op.getX()),
              stage.getPointer(op.getX()), stage.getStride(op.getX()),
              stage.getPointer(op.getGradient()), stage.getStride(op.getGradient()),
              stage.getPointer(op.getResult())},
             {b.templateName(kind)});
  return success();
}

LogicalResult genrec::lowerCall(StackDomainsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  std::string name = makeIdentifier(op.getResult().getType().getDomain().getValue());
  SmallVector<Value> parts;
  for (Value part : op.getParts())
    parts.push_back(stage.getDomain(part));
  Value offsets = stage.getBuffer(getOwnBuffer(op, kPartOffsetsSlot), b.i64(), name + "_offsets");
  Value array =
      stage.makeArray(b.named(name + "_parts"), b.pointer(b.opaque("const genrec_domain")), parts);
  b.callVoid("kernels::stackDomains", stage.withStep({stage.getDomain(op.getResult()), offsets,
                                                      b.integer(parts.size()), array}));
  return success();
}

LogicalResult genrec::lowerCall(ConcatSharedOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  std::string name = getValueName(op.getResult());
  SmallVector<Value> parts, sizes;
  for (Value part : op.getParts()) {
    parts.push_back(stage.getPointer(part));
    sizes.push_back(b.integer(cast<RankedTensorType>(part.getType()).getNumElements()));
  }
  b.callVoid("kernels::concatShared",
             stage.withStep({stage.getPointer(op.getResult()), b.integer(parts.size()),
                             stage.makeArray(b.named(name + "_parts"),
                                             b.pointer(b.opaque("const float")), parts),
                             stage.makeArray(b.named(name + "_sizes"), b.i64(), sizes)}));
  return success();
}

LogicalResult genrec::lowerCall(DeriveOp op, StageBuilder &stage) {
  auto pad = op.getDomain().getDefiningOp<PadOp>();
  if (!pad)
    return op.emitOpError() << "has rows of a truncated list, which kernels read where they lie; "
                               "--genrec-form-row-kernels makes it part of one (of a model that "
                               "another genrec has written as row kernels: compile what that was)";
  lowerDerive(op, "kernels::derivePadded", pad, getRowDomain(op.getResult().getType()),
              pad.getSide() == PadSide::front, stage);
  return success();
}

LogicalResult genrec::lowerCall(DeriveGradOp op, StageBuilder &stage) {
  FlatSymbolRefAttr derived = getRowDomain(op.getX().getType());
  Operation *maker = getMaker(op, derived);
  if (auto pad = dyn_cast_or_null<PadOp>(maker))
    lowerDerive(op, "kernels::derivePaddedGrad", pad, derived, pad.getSide() == PadSide::front,
                stage);
  else if (auto truncate = dyn_cast_or_null<TruncateOp>(maker))
    lowerDerive(op, "kernels::deriveGrad", truncate, derived, truncate.getKeep() == KeepKind::last,
                stage);
  else
    return op.emitOpError() << "needs a domain made by truncate or pad, but @" << derived.getValue()
                            << " is made by another op";
  return success();
}

LogicalResult genrec::lowerCall(PairRowsOp op, StageBuilder &stage) {
  lowerPairMove(op, "kernels::pairRows", getRowDomain(op.getX().getType()),
                op.getDomain().getType().getDomain(), stage);
  return success();
}

LogicalResult genrec::lowerCall(PairSumOp op, StageBuilder &stage) {
  lowerPairMove(op, "kernels::pairSum", op.getDomain().getType().getDomain(),
                getRowDomain(op.getX().getType()), stage);
  return success();
}

LogicalResult genrec::lowerCall(TileOp op, StageBuilder &stage) {
  lowerTile(op, "kernels::tile", op.getX(), stage);
  return success();
}

LogicalResult genrec::lowerCall(TileGradOp op, StageBuilder &stage) {
  lowerTile(op, "kernels::tileGrad", op.getResult(), stage);
  return success();
}

LogicalResult genrec::lowerCall(LeadOp op, StageBuilder &stage) {
  lowerShift(op, op.getDistance(), stage);
  return success();
}

LogicalResult genrec::lowerCall(LagOp op, StageBuilder &stage) {
  lowerShift(op, -static_cast<int64_t>(op.getDistance()), stage);
  return success();
}

LogicalResult genrec::lowerCall(PositionOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::positions",
             {stage.getStep(), stage.getDomain(op.getDomain()), stage.getPointer(op.getResult())},
             {b.templateBool(op.getFromEnd())});
  return success();
}

LogicalResult genrec::lowerCall(LengthOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> children, lengths;
  for (auto [list, length] : llvm::zip_equal(op.getChildren(), op.getLengths())) {
    children.push_back(stage.getDomain(list));
    lengths.push_back(stage.getPointer(length));
  }
  Type domain = b.pointer(b.opaque("const genrec_domain"));
  b.callVoid("kernels::lengths",
             {stage.getStep(), b.integer(static_cast<int64_t>(children.size())),
              stage.makeArray(b.named("lists"), domain, children),
              stage.makeArray(b.named("lengths_of"), b.pointer(b.i64()), lengths)});
  return success();
}

LogicalResult genrec::lowerCall(FixedRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::fixedRows",
             stage.withStep({stage.getDomain(op.getDomain()), b.integer(op.getCount())}));
  return success();
}

LogicalResult genrec::lowerCall(ParameterRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::parameterRows",
             {stage.getStep(), b.integer(stage.index.getParameter(op.getParameterAttr()), b.i32()),
              stage.getDomain(op.getDomain())});
  return success();
}
