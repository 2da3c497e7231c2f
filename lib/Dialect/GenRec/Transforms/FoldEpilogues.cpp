//===- FoldEpilogues.cpp - folds epilogues into matrix products -----------===//

#include "RecomputeCost.h"
#include "RowOps.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/Analysis/SliceAnalysis.h"

namespace genrec {
#define GEN_PASS_DEF_FOLDEPILOGUES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// Products are compiled for f32 only; the interpreter also has other element types.
static bool isFoldable(LinearOp op) { return getElementTypeOrSelf(op.getType()).isF32(); }

/// Whether the factor was rounded before. The product is a library's then, which adds a residual
/// but has no activation of ours: another kernel would have to read the product back in any case,
/// and row kernels write what the next ops need of it.
static bool isRoundedBefore(LinearOp op) {
  return getElementTypeOrSelf(op.getX().getType()).isBF16();
}

static Activation getActivation(Operation *op) {
  auto activation = dyn_cast<ActivationOpInterface>(op);
  return activation ? activation.getActivation() : Activation::none;
}

/// Whether an op outside of row kernels reads `value`, or a slice of it in place. The value is then
/// stored however kernels are formed.
static bool isReadFromMemory(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<SliceColumnsOp>(user))
      return llvm::any_of(user->getUses(), readsColumnsInPlace);
    return !isRowOp(user);
  });
}

/// The only activation of `product` that is profitable to fold; null if there is none or several.
static Operation *findActivation(Value product) {
  Operation *found = nullptr;
  for (Operation *user : product.getUsers()) {
    if (getActivation(user) == Activation::none)
      continue;
    if (!product.hasOneUse() && !isReadFromMemory(user->getResult(0)))
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

/// The addition to a product that has no other reader, or null.
static AddOp findAddition(Value product) {
  if (!product.hasOneUse())
    return {};
  auto add = dyn_cast<AddOp>(*product.user_begin());
  return add && add.getType() == product.getType() && add.getLhs().getType() == add.getType() &&
                 add.getRhs().getType() == add.getType()
             ? add
             : AddOp();
}

/// Whether `value` is stored anyway when the product of `x` is computed.
static bool isInMemory(Value value, Value x) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !isRowOp(maker) || isReadFromMemory(value))
    return true;
  if (maker->hasTrait<CopiesElements>())
    return false;
  SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(x, &needed, options);
  return needed.contains(maker);
}

/// Whether kernels would rather compute `value` again than keep it, as a row that they look up.
/// Storing it for a library's product would save no bytes.
static bool isComputedAgain(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !isRowOp(maker) || isReadFromMemory(value) || !isRecomputable(maker))
    return false;
  double cost = getArithmeticCost(maker);
  for (unsigned index = 0; index < maker->getNumOperands(); ++index)
    cost += getReadCost(maker, index);
  return cost <= 2.0 * getRowBytes(value.getType());
}

//===----------------------------------------------------------------------===//
// Gradients of silu behind those of attention
//===----------------------------------------------------------------------===//

namespace {
/// A gradient of q, k or v that is multiplied by the derivative of silu at columns of x, rounded,
/// and joined with others; nothing else reads it on the way.
struct JoinedGradient {
  Value x;
  int64_t column; ///< of x
  CastOp rounded;
  ConcatColumnsOp joined;
  unsigned part; ///< which of the joined ones

  bool isPlaced() const { return x && column == getColumn(joined, part); }
  static int64_t getColumn(ConcatColumnsOp joined, unsigned part) {
    int64_t column = 0;
    for (Value before : joined.getParts().take_front(part))
      column += getRowSize(before.getType());
    return column;
  }
};
} // namespace

/// The only reader of `value`, if it is an `OpT`.
template <typename OpT> static OpT getOnlyReader(Value value) {
  return value.hasOneUse() ? dyn_cast<OpT>(*value.user_begin()) : OpT();
}

static std::optional<JoinedGradient> matchJoinedGradient(Value gradient) {
  auto product = getOnlyReader<MulOp>(gradient);
  if (!product)
    return std::nullopt;
  Value x = matchSiluSlope(product.getLhs() == gradient ? product.getRhs() : product.getLhs());
  auto slice = x ? x.getDefiningOp<SliceColumnsOp>() : nullptr;
  auto rounded = getOnlyReader<CastOp>(product);
  auto joined = rounded ? getOnlyReader<ConcatColumnsOp>(rounded) : nullptr;
  if (!slice || !joined || !getElementTypeOrSelf(rounded.getType()).isBF16())
    return std::nullopt;
  JoinedGradient found{slice.getX(), static_cast<int64_t>(slice.getOffset()), rounded, joined,
                       rounded->use_begin()->getOperandNumber()};
  // Rows of 16 bytes of bfloat16: what kernels store at once.
  bool isWhole = found.column % 8 == 0 && getRowSize(slice.getType()) % 8 == 0;
  return isWhole && found.isPlaced() ? std::optional(found) : std::nullopt;
}

/// Those of q, k and v, which are all of the columns of one value in memory, but for the first
/// ones, whose gradient is there before; empty otherwise.
static SmallVector<JoinedGradient> matchJoinedGradients(AttentionGradOp op) {
  SmallVector<JoinedGradient> parts;
  for (Value gradient : {op.getDq(), op.getDk(), op.getDv()}) {
    std::optional<JoinedGradient> part = matchJoinedGradient(gradient);
    if (!part || (!parts.empty() && (part->x != parts[0].x || part->joined != parts[0].joined)))
      return {};
    parts.push_back(*part);
  }
  Value x = parts[0].x;
  ConcatColumnsOp joined = parts[0].joined;
  auto joinedType = cast<RankedTensorType>(joined.getType());
  Operation *maker = x.getDefiningOp();
  if (!maker || isRowOp(maker) ||
      x.getType() != joinedType.clone(Float32Type::get(op.getContext())))
    return {};
  ValueRange all = joined.getParts();
  if (all.size() == parts.size())
    return parts;
  Operation *rest = all.front().getDefiningOp();
  bool isBefore = all.size() == parts.size() + 1 && rest && rest->isBeforeInBlock(op) &&
                  llvm::none_of(parts, [](auto &part) { return part.part == 0; }) &&
                  getRowSize(all.front().getType()) % 8 == 0;
  return isBefore ? parts : SmallVector<JoinedGradient>();
}

/// Erases `op` and what only it reads.
static void eraseUnread(Operation *op) {
  llvm::SetVector<Operation *> pending;
  pending.insert(op);
  while (!pending.empty()) {
    Operation *next = pending.pop_back_val();
    if (!next->use_empty())
      continue;
    for (Value operand : next->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && isPure(maker))
        pending.insert(maker);
    next->erase();
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct FoldEpilogues : genrec::impl::FoldEpiloguesBase<FoldEpilogues> {
  void runOnOperation() override {
    bool changed = false;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      SmallVector<LinearOp> products(program.getBody().front().getOps<LinearOp>());
      for (LinearOp product : products)
        if (isFoldable(product))
          changed |= fold(product);
      for (AttentionGradOp gradient :
           llvm::make_early_inc_range(program.getBody().front().getOps<AttentionGradOp>()))
        changed |= fold(gradient);
    }
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  bool fold(LinearOp product);
  bool fold(AttentionGradOp op);
};
} // namespace

bool FoldEpilogues::fold(LinearOp product) {
  Value last = product.getResult(), residual;
  Operation *activation = isRoundedBefore(product) ? nullptr : findActivation(last);
  bool keepsProduct = activation && !last.hasOneUse();
  if (activation)
    last = activation->getResult(0);
  AddOp addition = findAddition(last);
  // The fused op is inserted at the addition, as the residual may be computed after the product.
  // Other readers of the activation's operand must therefore come later.
  bool isReadBefore =
      addition && llvm::any_of(product->getUsers(), [&](Operation *user) {
        return user != activation && user != addition && user->isBeforeInBlock(addition);
      });
  if (isReadBefore)
    addition = {};
  if (addition) {
    residual = addition.getLhs() == last ? addition.getRhs() : addition.getLhs();
    if (!isInMemory(residual, product.getX()) ||
        (isRoundedBefore(product) && isComputedAgain(residual)))
      addition = {}, residual = Value();
  }
  if (!activation && !addition)
    return false;

  OpBuilder builder(addition ? addition.getOperation() : product.getOperation());
  SmallVector<Location> locations{product.getLoc()};
  if (activation)
    locations.push_back(activation->getLoc());
  if (addition)
    locations.push_back(addition.getLoc());
  Type type = product.getType();
  auto fused = FusedLinearOp::create(builder, builder.getFusedLoc(locations), type,
                                     keepsProduct ? type : Type(), product.getX(),
                                     product.getWeight(), product.getBias(), residual,
                                     activation ? getActivation(activation) : Activation::none,
                                     product.getTransposed(), product.getBf16());
  if (Attribute stage = product->getDiscardableAttr(GenRecDialect::StageAttrHelper::getNameStr()))
    fused->setDiscardableAttr(GenRecDialect::StageAttrHelper::getNameStr(), stage);
  if (activation) {
    countStatistic(*this, activations, "activations", 1);
    RewriteCounter::count("fold-activation");
  }
  if (addition) {
    countStatistic(*this, residuals, "residuals", 1);
    RewriteCounter::count("fold-residual");
  }
  (addition ? addition.getResult() : last).replaceAllUsesWith(fused.getResult());
  if (addition)
    addition.erase();
  if (keepsProduct)
    product.getResult().replaceAllUsesExcept(fused.getPre(), activation);
  if (activation)
    activation->erase();
  product.erase();
  return true;
}

bool FoldEpilogues::fold(AttentionGradOp op) {
  if (!getElementTypeOrSelf(op.getQ().getType()).isBF16())
    return false;
  SmallVector<JoinedGradient> parts = matchJoinedGradients(op);
  if (parts.empty())
    return false;
  ConcatColumnsOp joined = parts[0].joined;
  Value rest = joined.getParts().size() > parts.size() ? joined.getParts().front() : Value();
  auto columns = llvm::map_to_vector(parts, [](auto &part) { return part.column; });
  auto getType = [](Value value) { return value ? value.getType() : Type(); };
  OpBuilder builder(op);
  Location loc = builder.getFusedLoc({op.getLoc(), joined.getLoc()});
  auto fused = FusedAttentionGradOp::create(
      builder, loc, joined.getType(), getType(op.getDpositionBias()), getType(op.getDtimeBias()),
      op.getQ(), op.getK(), op.getV(), op.getPositionBias(), op.getTimeBias(), op.getTime(),
      op.getTarget(), op.getOut(), op.getGradient(), parts[0].x, rest, op.getHeadsAttr(),
      op.getScoreAttr(), op.getCausalAttr(), op.getWindowAttr(), op.getContextualAttr(),
      op.getScaleAttr(), op.getFixedLengthAttr(), op.getNextEventTimeAttr(), op.getDropoutAttr(),
      op.getStreamAttr(), op.getBf16Attr(), builder.getDenseI64ArrayAttr(columns));
  fused->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  countStatistic(*this, gradients, "gradients", 1);
  joined.replaceAllUsesWith(fused.getDx());
  if (Value bias = op.getDpositionBias())
    bias.replaceAllUsesWith(fused.getDpositionBias());
  if (Value bias = op.getDtimeBias())
    bias.replaceAllUsesWith(fused.getDtimeBias());
  eraseUnread(joined); // and op, which the last of its gradients' readers leaves unread
  return true;
}
