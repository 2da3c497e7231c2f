//===- RoundFactors.cpp - rounds a factor once for all that multiply it ---===//

#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_ROUNDFACTORS
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

static void copyStage(Operation *from, Operation *to) {
  StringRef name = GenRecDialect::StageAttrHelper::getNameStr();
  if (Attribute stage = from->getDiscardableAttr(name))
    to->setDiscardableAttr(name, stage);
}

namespace {
struct RoundFactors : genrec::impl::RoundFactorsBase<RoundFactors> {
  void runOnOperation() override {
    unsigned roundedBefore = 0;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      SmallVector<ProductOpInterface> products(
          program.getBody().front().getOps<ProductOpInterface>());
      llvm::MapVector<Value, Value> rounded; // in program order
      for (ProductOpInterface product : products)
        if (product.getBf16())
          roundOperands(product, rounded);
      for (ProductOpInterface product : products)
        if (getElementTypeOrSelf(product->getOperand(0).getType()).isBF16())
          sliceActivations(product);
      for (auto [factor, cast] : rounded)
        splitJoined(cast.getDefiningOp<CastOp>());
      roundedBefore += rounded.size() + storeGathered(program);
    }
    if (roundedBefore == 0)
      return markAllAnalysesPreserved();
    factors += roundedBefore;
  }

private:
  void roundOperands(ProductOpInterface product, llvm::MapVector<Value, Value> &rounded);
  void sliceActivations(ProductOpInterface product);
  void splitJoined(CastOp factor);
  unsigned storeGathered(ProgramOp program);
};
} // namespace

/// What row kernels gather of rounded rows they read as bf16, half of the bytes. Rows are whole
/// multiples of 8, as what clears those behind the last one takes.
unsigned RoundFactors::storeGathered(ProgramOp program) {
  unsigned stored = 0;
  for (auto factor :
       llvm::make_early_inc_range(program.getBody().front().getOps<RoundFactorOp>())) {
    auto type = cast<RankedTensorType>(factor.getType());
    auto reads = [](OpOperand &use) {
      auto gather = dyn_cast<RoundedRowsOpInterface>(use.getOwner());
      return gather && gather.takesRoundedRows(use.getOperandNumber());
    };
    if (type.getRank() != 2 || type.getDimSize(1) % 8 != 0 ||
        llvm::none_of(factor->getUses(), reads))
      continue;
    OpBuilder builder(factor);
    auto cast =
        CastOp::create(builder, factor.getLoc(), type.clone(builder.getBF16Type()), factor.getX());
    copyStage(factor, cast);
    factor.getResult().replaceUsesWithIf(cast.getResult(), reads);
    if (factor->use_empty())
      factor.erase();
    ++stored;
  }
  return stored;
}

/// The cast stands where the value is made, so that one kernel makes both, in the stage of its
/// readers: the copy of a batch computes nothing.
void RoundFactors::roundOperands(ProductOpInterface product,
                                 llvm::MapVector<Value, Value> &rounded) {
  auto step = dyn_cast<StepOpInterface>(product.getOperation());
  if (!step)
    return;
  for (OpOperand &operand : product->getOpOperands()) {
    Value factor = operand.get();
    Operation *maker = factor.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(factor.getType());
    if (!maker || !type || !type.getElementType().isF32() ||
        !step.takesRounded(operand.getOperandNumber()))
      continue;
    Value &cast = rounded[factor];
    if (!cast) {
      OpBuilder builder(maker->getContext());
      builder.setInsertionPointAfter(maker);
      cast = CastOp::create(builder, factor.getLoc(), type.clone(builder.getBF16Type()), factor);
      copyStage(product, cast.getDefiningOp());
    }
    operand.set(cast);
  }
}

/// Each row op that reads `activation`, which is cheap, computes it again of rows that are stored
/// in any case: a kernel that would store it for another one's rows reads as much. In one kernel
/// they are one again.
static void applyPerReader(Operation *activation) {
  SmallVector<OpOperand *> readers;
  for (OpOperand &use : activation->getResult(0).getUses())
    if (isa<RowwiseOpInterface>(use.getOwner()))
      readers.push_back(&use);
  for (OpOperand *use : readers) {
    OpBuilder builder(use->getOwner());
    Operation *again = builder.clone(*activation);
    copyStage(use->getOwner(), again);
    use->set(again->getResult(0));
  }
  if (activation->use_empty())
    activation->erase();
}

/// activation(x)[slice] becomes activation(x[slice]) where slices are all that reads it.
void RoundFactors::sliceActivations(ProductOpInterface product) {
  for (Operation *activation : llvm::make_early_inc_range(product->getUsers())) {
    if (!isa<ActivationOpInterface>(activation) || activation->use_empty() ||
        !llvm::all_of(activation->getUsers(), llvm::IsaPred<SliceColumnsOp>))
      continue;
    for (Operation *user : llvm::make_early_inc_range(activation->getUsers())) {
      OpBuilder builder(user);
      Operation *slice = builder.clone(*user);
      slice->setOperand(0, activation->getOperand(0));
      Operation *applied = builder.clone(*activation);
      applied->setOperand(0, slice->getResult(0));
      applied->getResult(0).setType(slice->getResult(0).getType());
      copyStage(user, applied);
      user->getResult(0).replaceAllUsesWith(applied->getResult(0));
      user->erase();
      applyPerReader(applied);
    }
    activation->erase();
    ++sliced;
  }
}

//===----------------------------------------------------------------------===//
// Joined factors
//===----------------------------------------------------------------------===//

namespace {
/// A factor that elementwise ops compute of joined rows, and nothing else reads on the way.
struct JoinedFactor {
  CastOp cast;
  ConcatColumnsOp concat;
  llvm::SetVector<Operation *> ops; ///< the elementwise ones, readers before what they read
};
} // namespace

static bool isWide(Value value, Type like) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && getRowDomain(type) && type.getShape() == cast<RankedTensorType>(like).getShape();
}

/// Whether a part is computed before the library op that makes another one: its kernel can round it
/// while it has the rows, and need not be followed by one that reads them again.
static bool hasEarlyPart(ConcatColumnsOp concat) {
  return llvm::any_of(concat.getParts(), [&](Value late) {
    Operation *library = late.getDefiningOp();
    return library && !isa<RowwiseOpInterface>(library) &&
           llvm::any_of(concat.getParts(), [&](Value part) {
             Operation *maker = part.getDefiningOp();
             return maker && isa<RowwiseOpInterface>(maker) && maker->isBeforeInBlock(library);
           });
  });
}

static std::optional<JoinedFactor> matchJoined(CastOp factor) {
  JoinedFactor found;
  found.cast = factor;
  Type type = factor.getX().getType();
  auto isOurs = [&](Operation *user) { return user == factor || found.ops.contains(user); };
  SmallVector<Value> pending{factor.getX()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *maker = value.getDefiningOp();
    // What another op reads that is not ours yet is looked at again when it is.
    if (!maker || !isWide(value, type) || !llvm::all_of(value.getUsers(), isOurs))
      continue;
    if (maker->hasTrait<ElementwiseRows>()) {
      if (found.ops.insert(maker))
        llvm::append_range(pending, maker->getOperands());
    } else if (auto concat = dyn_cast<ConcatColumnsOp>(maker)) {
      if (found.concat && found.concat != concat)
        return std::nullopt;
      found.concat = concat;
    }
  }
  if (!found.concat || !hasEarlyPart(found.concat))
    return std::nullopt;
  // Rounded rows are whole multiples of 8, as what clears those behind the last one takes.
  auto isWhole = [](Value part) {
    auto shape = cast<RankedTensorType>(part.getType());
    return shape.getRank() == 2 && shape.getDimSize(1) % 8 == 0;
  };
  auto canSplit = [&](Value operand) { // joined rows, or scalars
    auto shape = dyn_cast<RankedTensorType>(operand.getType());
    return isWide(operand, type) || (shape && getRowShape(shape).empty());
  };
  if (!llvm::all_of(found.concat.getParts(), isWhole) ||
      !llvm::all_of(found.ops,
                    [&](Operation *op) { return llvm::all_of(op->getOperands(), canSplit); }))
    return std::nullopt;
  return found;
}

/// Moves the builder behind the last one of the ops that make `operands`.
static void setBehind(OpBuilder &builder, ValueRange operands) {
  Operation *last = nullptr;
  for (Value operand : operands)
    if (Operation *maker = operand.getDefiningOp();
        maker && (!last || last->isBeforeInBlock(maker)))
      last = maker;
  builder.setInsertionPointAfter(last);
}

/// The part of `found.cast` that is computed of `part`, columns from `offset` on.
static Value roundPart(JoinedFactor &found, Value part, int64_t offset) {
  OpBuilder builder(found.cast);
  auto type = cast<RankedTensorType>(part.getType());
  IRMapping parts;
  parts.map(found.concat.getResult(), part);
  auto take = [&](Operation *op) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Value own = parts.lookupOrNull(operand);
      if (!own && isWide(operand, found.cast.getX().getType())) {
        setBehind(builder, operand);
        own = SliceColumnsOp::create(builder, op->getLoc(), type, operand,
                                     builder.getI64IntegerAttr(offset));
        copyStage(found.cast, own.getDefiningOp());
        parts.map(operand, own);
      }
      operands.push_back(own ? own : operand);
    }
    setBehind(builder, operands);
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    clone->getResult(0).setType(type.clone(element));
    parts.map(op->getResult(0), clone->getResult(0));
  };
  SmallVector<Operation *> ops(found.ops.begin(), found.ops.end());
  llvm::sort(ops, [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); });
  for (Operation *op : ops)
    take(op);
  take(found.cast);
  return parts.lookup(found.cast.getResult());
}

/// round(f(concat(x, y))) becomes concat(round(f(x)), round(f(y))).
void RoundFactors::splitJoined(CastOp factor) {
  std::optional<JoinedFactor> found = matchJoined(factor);
  if (!found)
    return;
  SmallVector<Value> parts;
  int64_t offset = 0;
  for (Value part : found->concat.getParts()) {
    parts.push_back(roundPart(*found, part, offset));
    offset += cast<RankedTensorType>(part.getType()).getDimSize(1);
  }
  OpBuilder builder(factor);
  auto joined = ConcatColumnsOp::create(builder, factor.getLoc(), factor.getType(), parts);
  copyStage(factor, joined);
  factor.replaceAllUsesWith(joined.getResult());
  factor.erase();
  for (Operation *op : found->ops)
    op->erase();
  found->concat->erase();
}
