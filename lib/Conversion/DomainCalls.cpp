//===- DomainCalls.cpp - domains and moves between them as calls ----------===//
//
// Lowers to genrec_rt/kernels/domains.h.
//
//===----------------------------------------------------------------------===//

#include "KernelOutliner.h"
#include "StageBuilder.h"

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

/// The three arrays of a domain that an op makes.
static void addDomainArrays(Operation *op, StageBuilder &stage, SmallVectorImpl<Value> &operands) {
  EmitCBuilder b = stage.at(op);
  std::string name =
      makeIdentifier(cast<DomainType>(op->getResult(0).getType()).getDomain().getValue());
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kOffsetsSlot), b.i64(), name + "_offsets"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kParentSlot), b.i64(), name + "_parent"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kIdentitySlot), b.u64(), name + "_identity"));
}

/// The truncate op that made `domain`, which is of a value made by derive.
static TruncateOp getTruncate(Operation *op, FlatSymbolRefAttr domain) {
  Value value = lookupDomainValue(op->getParentOfType<ProgramOp>(), domain);
  return value ? value.getDefiningOp<TruncateOp>() : TruncateOp();
}

static void lowerTruncate(TruncateOp op, StageBuilder &stage) {
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getSource()),
                                 stage.getDomain(op.getResult())};
  EmitCBuilder b = stage.at(op);
  operands.push_back(b.integer(op.getCount()));
  addDomainArrays(op, stage, operands);
  b.callVoid("kernels::truncate", operands, {b.templateBool(op.getKeep() == KeepKind::last)});
}

static void lowerConcatDomains(ConcatDomainsOp op, StageBuilder &stage) {
  DomainOp declaration = lookupDomain(op, op.getResult().getType().getDomain());
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(declaration.getParentAttr()),
                                 stage.getDomain(op.getResult())};
  EmitCBuilder b = stage.at(op);
  addDomainArrays(op, stage, operands);
  for (Value source : op.getSources())
    operands.push_back(stage.getDomain(source));
  b.callVoid("kernels::concatDomains", operands);
}

/// derive and derive_grad: `truncated` is the shorter side.
static LogicalResult lowerDerive(Operation *op, StringRef callee, FlatSymbolRefAttr truncated,
                                 StageBuilder &stage) {
  TruncateOp truncate = getTruncate(op, truncated);
  if (!truncate)
    return op->emitOpError() << "needs a domain made by truncate, but @" << truncated.getValue()
                             << " is made by another op";
  Value x = op->getOperand(0), result = op->getResult(0);
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(truncate.getSource()),
                                 stage.getDomain(truncated), stage.getPointer(x),
                                 stage.getStride(x), stage.getPointer(result)};
  EmitCBuilder b = stage.at(op);
  operands.insert(operands.begin() + 3, getWidth(b, x));
  b.callVoid(callee, operands, {b.templateBool(truncate.getKeep() == KeepKind::last)});
  return success();
}

static ConcatDomainsOp getConcat(Operation *op, FlatSymbolRefAttr domain) {
  Value value = lookupDomainValue(op->getParentOfType<ProgramOp>(), domain);
  return value ? value.getDefiningOp<ConcatDomainsOp>() : ConcatDomainsOp();
}

static void lowerConcatRows(ConcatRowsOp op, StageBuilder &stage) {
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(op.getDomain()),
                                 stage.getPointer(op.getResult())};
  for (Value part : op.getParts())
    operands.append({stage.getDomainOf(part), stage.getPointer(part), stage.getStride(part)});
  EmitCBuilder b = stage.at(op);
  operands.insert(operands.begin() + 2, getWidth(b, op.getResult()));
  b.callVoid("kernels::concatRows", operands, {getElementArgument(b, op.getResult())});
}

static LogicalResult lowerSplitRows(SplitRowsOp op, StageBuilder &stage) {
  FlatSymbolRefAttr joined = getRowDomain(op.getX().getType());
  ConcatDomainsOp concat = getConcat(op, joined);
  if (!concat)
    return op.emitOpError() << "needs rows of a domain made by concat_domains, but @"
                            << joined.getValue() << " is made by another op";
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> operands = {stage.getStep(), stage.getDomain(joined), getWidth(b, op.getX()),
                                 stage.getPointer(op.getX()), stage.getStride(op.getX()),
                                 stage.getPointer(op.getResult()), b.integer(op.getPart())};
  for (Value source : concat.getSources())
    operands.push_back(stage.getDomain(source));
  b.callVoid("kernels::splitRows", operands, {getElementArgument(b, op.getX())});
  return success();
}

/// lead and lag: `distance` rows towards the end of the list, or the start.
static void lowerShift(Operation *op, int64_t distance, StageBuilder &stage) {
  Value x = op->getOperand(0);
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::shiftRows",
             {stage.getStep(), stage.getDomainOf(x), b.integer(distance), getWidth(b, x),
              stage.getPointer(x), stage.getStride(x), stage.getPointer(op->getResult(0)),
              stage.getPointer(op->getResult(1))},
             {getElementArgument(b, x)});
}

static void lowerPoolGrad(PoolGradOp op, StageBuilder &stage) {
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
}

static void lowerFixedRows(Operation *op, Value domain, int64_t count, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::fixedRows", {stage.getDomain(domain), b.integer(count)});
}

LogicalResult genrec::lowerDomainOp(Operation *op, StageBuilder &stage, bool &matched) {
  matched = true;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](TruncateOp op) { return lowerTruncate(op, stage), success(); })
      .Case([&](ConcatDomainsOp op) { return lowerConcatDomains(op, stage), success(); })
      .Case([&](DeriveOp op) {
        return lowerDerive(op, "kernels::derive", getRowDomain(op.getResult().getType()), stage);
      })
      .Case([&](DeriveGradOp op) {
        return lowerDerive(op, "kernels::deriveGrad", getRowDomain(op.getX().getType()), stage);
      })
      .Case([&](ConcatRowsOp op) { return lowerConcatRows(op, stage), success(); })
      .Case([&](SplitRowsOp op) { return lowerSplitRows(op, stage); })
      .Case([&](LeadOp op) { return lowerShift(op, op.getDistance(), stage), success(); })
      .Case([&](LagOp op) {
        return lowerShift(op, -static_cast<int64_t>(op.getDistance()), stage), success();
      })
      .Case([&](PositionOp op) {
        EmitCBuilder b = stage.at(op);
        b.callVoid("kernels::positions", {stage.getStep(), stage.getDomain(op.getDomain()),
                                          stage.getPointer(op.getResult())},
                   {b.templateBool(op.getFromEnd())});
        return success();
      })
      .Case([&](LengthOp op) {
        EmitCBuilder b = stage.at(op);
        b.callVoid("kernels::lengths", {stage.getStep(), stage.getDomain(op.getChildren()),
                                        stage.getPointer(op.getResult())});
        return success();
      })
      .Case([&](PoolGradOp op) { return lowerPoolGrad(op, stage), success(); })
      .Case([&](FixedRowsOp op) {
        return lowerFixedRows(op, op.getDomain(), op.getCount(), stage), success();
      })
      .Case([&](ParameterRowsOp op) {
        ParameterOp parameter = lookupParameter(op, op.getParameterAttr());
        auto type = cast<RankedTensorType>(parameter.getType());
        int64_t count = type.getRank() == 2 ? type.getDimSize(0) : 1;
        return lowerFixedRows(op, op.getDomain(), count, stage), success();
      })
      .Case([&](FeatureValidOp op) {
        EmitCBuilder b = stage.at(op);
        FlatSymbolRefAttr domain = op.getDomain().getType().getDomain();
        int64_t feature = stage.index.getFeature(domain, op.getColumnAttr());
        b.callVoid("kernels::validRows",
                   {stage.getStep(), stage.getDomain(domain),
                    stage.getColumnMember(feature, "valid", b.u8()), stage.getPointer(op.getResult())});
        return success();
      })
      .Default([&](Operation *) {
        matched = false;
        return success();
      });
}
