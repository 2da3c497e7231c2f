//===- FoldEpilogues.cpp - folds epilogues into matrix products -----------===//

#include "RecomputeCost.h"
#include "RowOps.h"
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
    }
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  bool fold(LinearOp product);
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
