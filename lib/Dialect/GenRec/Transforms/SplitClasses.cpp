//===- SplitClasses.cpp - softmax over many classes in blocks -------------===//

#include "ClassLogits.h"
#include "Decisions.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_SPLITCLASSES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// More blocks mean more code; beyond this number, blocks get wider.
static constexpr int64_t kMostBlocks = 16;
/// With fewer blocks, one block and its gradient take hardly less memory than all logits.
static constexpr int64_t kLeastBlocks = 4;

/// Splits `classes` evenly into blocks of about `columns`; none if there would be too few.
static SmallVector<ClassBlock> cutClasses(int64_t classes, int64_t columns) {
  if (classes < kLeastBlocks * columns)
    return {};
  int64_t count = std::min(kMostBlocks, static_cast<int64_t>(llvm::divideCeil(classes, columns)));
  // If blocks are that wide, the rows of a block are aligned to cache lines.
  constexpr int64_t kLineFloats = 16;
  int64_t width = llvm::divideCeil(classes, count);
  if (width >= kLineFloats)
    width = llvm::alignTo(width, kLineFloats);
  SmallVector<ClassBlock> blocks;
  for (int64_t first = 0; first < classes; first += width)
    blocks.push_back({first, std::min(width, classes - first)});
  return blocks;
}

//===----------------------------------------------------------------------===//
// One loss
//===----------------------------------------------------------------------===//

namespace {
/// A softmax cross entropy, its gradient (null outside of training) and its logits.
struct ClassLoss {
  SoftmaxCrossEntropyOp loss;
  SoftmaxCrossEntropyGradOp gradient;
};

/// Values that the backward pass needs from the forward pass.
struct ForwardBlocks {
  Value logSumExp, lastLogits;
};
} // namespace

/// `value` if `label` is one of `classes` classes, otherwise 0.
static Value buildWhereLabelled(const GradientBuilder &b, Value value, Value label,
                                int64_t classes) {
  auto type = RankedTensorType::get({}, b.builder.getI64Type());
  auto constant = [&](int64_t number) -> Value {
    return ConstantOp::create(b.builder, b.loc, type,
                              DenseElementsAttr::get(type, b.builder.getI64IntegerAttr(number)));
  };
  value = b.maskWith(b.compare(CompareKind::ge, label, constant(0)), value);
  return b.maskWith(b.compare(CompareKind::lt, label, constant(classes)), value);
}

static ForwardBlocks buildForward(ClassLoss parts, ClassLogits &logits,
                                  ArrayRef<ClassBlock> blocks) {
  OpBuilder builder(parts.loss);
  GradientBuilder b(builder, parts.loss.getLoc());
  Type perRow = parts.loss.getType();
  Value label = parts.loss.getLabel(), sum, chosen, block;
  for (auto [index, own] : llvm::enumerate(blocks)) {
    Value input = logits.getInput();
    if (index > 0)
      input = AfterOp::create(builder, b.loc, input.getType(), input, ValueRange{sum, chosen});
    block = logits.buildBlock(b, input, own);
    sum = LogSumExpOp::create(builder, b.loc, perRow, block, sum);
    Value picked = PickColumnOp::create(builder, b.loc, perRow, block, label, own.first);
    chosen = chosen ? b.add(chosen, picked) : picked;
  }
  Value loss = buildWhereLabelled(b, b.sub(sum, chosen), label, logits.getClasses());
  parts.loss.getResult().replaceAllUsesWith(loss);
  return {sum, block};
}

/// From the last block, whose logits are still stored, to the first.
static void buildBackward(ClassLoss parts, ClassLogits &logits, ArrayRef<ClassBlock> blocks,
                          const ForwardBlocks &forward) {
  OpBuilder builder(parts.gradient);
  GradientBuilder b(builder, parts.gradient.getLoc());
  Value label = parts.gradient.getLabel();
  Value seed = buildWhereLabelled(b, parts.gradient.getGradient(), label, logits.getClasses());
  Value block = forward.lastLogits;
  SmallVector<Value> done;
  for (const ClassBlock &own : llvm::reverse(blocks)) {
    if (!done.empty()) {
      Value input = logits.getInput();
      input = AfterOp::create(builder, b.loc, input.getType(), input, done);
      block = logits.buildBlock(b, input, own);
    }
    Value gradient = SoftmaxCrossEntropyGradOp::create(builder, b.loc, block.getType(), block,
                                                       label, seed, forward.logSumExp, own.first,
                                                       /*label_smoothing=*/llvm::APFloat(0.0));
    done = logits.addGradients(b, gradient, own);
  }
  logits.finishGradients(b);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct SplitClasses : genrec::impl::SplitClassesBase<SplitClasses> {
  using SplitClassesBase::SplitClassesBase;

  void runOnOperation() override {
    if (block == 0) {
      getOperation().emitError() << "option 'block' must be at least 1, but is 0";
      return signalPassFailure();
    }
    Decisions decisions("split-classes");
    bool changed = false;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      for (auto loss : llvm::to_vector(program.getBody().front().getOps<SoftmaxCrossEntropyOp>()))
        changed |= split(program, loss, decisions);
    decisions.attachTo(getOperation());
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  bool split(ProgramOp program, SoftmaxCrossEntropyOp loss, Decisions &decisions);
};
} // namespace

/// The only gradient op of `loss`; null if there is none or several.
static SoftmaxCrossEntropyGradOp findGradient(SoftmaxCrossEntropyOp loss) {
  SoftmaxCrossEntropyGradOp found;
  for (Operation *user : loss.getLogits().getUsers()) {
    auto gradient = dyn_cast<SoftmaxCrossEntropyGradOp>(user);
    if (!gradient)
      continue;
    if (found || gradient.getLogits() != loss.getLogits() ||
        gradient.getLabel() != loss.getLabel() || gradient.getLogSumExp() ||
        !loss->isBeforeInBlock(gradient))
      return {};
    found = gradient;
  }
  return found;
}

bool SplitClasses::split(ProgramOp program, SoftmaxCrossEntropyOp loss, Decisions &decisions) {
  int64_t classes = getRowSize(loss.getLogits().getType());
  SmallVector<ClassBlock> blocks = cutClasses(classes, block);
  if (blocks.empty())
    return false;
  std::string name =
      ("@" + program.getSymName() + ": " + Twine(classes) + " classes of " + nameForUser(loss))
          .str();
  ClassLoss parts{loss, findGradient(loss)};
  std::string reason;
  std::unique_ptr<ClassLogits> logits = ClassLogits::find(parts.loss, parts.gradient, reason);
  if (!logits) {
    countStatistic(*this, whole, "whole", 1);
    decisions.add(name + " are in memory at once: " + reason);
    return false;
  }
  ForwardBlocks forward = buildForward(parts, *logits, blocks);
  if (parts.gradient)
    buildBackward(parts, *logits, blocks, forward);
  logits->eraseReplaced(parts.loss, parts.gradient);
  countStatistic(*this, losses, "losses", 1);
  countStatistic(*this, this->blocks, "blocks", blocks.size());
  RewriteCounter::count("split-classes");
  decisions.add(name + " are computed " + Twine(blocks.front().size) + " at a time, in " +
                Twine(blocks.size()) + " blocks");
  return true;
}
