//===- ClassLogits.cpp - logits of many classes, in blocks ----------------===//

#include "ClassLogits.h"
#include "Decisions.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"

using namespace mlir;
using namespace genrec;

/// Sets `place` to `op`; false if it was already set.
template <typename OpT> static bool setOnce(OpT &place, OpT op) {
  if (place)
    return false;
  place = op;
  return true;
}

//===----------------------------------------------------------------------===//
// Linear layers
//===----------------------------------------------------------------------===//

namespace {
class LinearLogits : public ClassLogits {
public:
  explicit LinearLogits(LinearOp linear) : ClassLogits(linear), linear(linear) {}

  /// Records the readers of the logits' gradient. Returns the first that is not a gradient op of
  /// the linear layer.
  Operation *setReaders(SoftmaxCrossEntropyGradOp gradient);

  Value buildBlock(const GradientBuilder &b, Value input, const ClassBlock &block) override;
  SmallVector<Value> addGradients(const GradientBuilder &b, Value gradient,
                                  const ClassBlock &block) override;
  void finishGradients(const GradientBuilder &b) override;

private:
  /// The rows or columns of the weight for a block. Forward and backward pass both build it; CSE
  /// merges them.
  Value buildWeight(const GradientBuilder &b, const ClassBlock &block);

  LinearOp linear;
  LinearOp inputGradient;
  WeightGradientOp weightGradient;
  ReduceRowsOp biasGradient;
  Value inputSum;
  SmallVector<Value> weightParts, biasParts; // from the last block to the first
};
} // namespace

Operation *LinearLogits::setReaders(SoftmaxCrossEntropyGradOp gradient) {
  for (Operation *user : gradient->getUsers()) {
    bool isKnown = false;
    if (auto op = dyn_cast<LinearOp>(user))
      isKnown = op.getX() == gradient && op.getTransposed() && !op.getBias() &&
                op.getWeight() == linear.getWeight() && setOnce(inputGradient, op);
    else if (auto op = dyn_cast<WeightGradientOp>(user))
      isKnown = op.getX() == linear.getX() && op.getY() == gradient && setOnce(weightGradient, op);
    else if (auto op = dyn_cast<ReduceRowsOp>(user))
      isKnown = setOnce(biasGradient, op);
    if (!isKnown)
      return user;
    readers.push_back(user);
  }
  return nullptr;
}

/// A view of the shared matrix x as rows.
static Value viewRows(const GradientBuilder &b, Value x) {
  auto program = cast<ProgramOp>(b.builder.getInsertionBlock()->getParentOp());
  return viewSharedAsRows(b.builder, b.loc, x,
                          getFixedRows(program, getSharedRowCount(x.getType())));
}

static Value viewShared(const GradientBuilder &b, Value rows, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(rows.getType()).getElementType());
  return RowsAsSharedOp::create(b.builder, b.loc, type, rows);
}

Value LinearLogits::buildWeight(const GradientBuilder &b, const ClassBlock &block) {
  Value columns = b.slice(viewRows(b, linear.getWeight()), block.first, block.size);
  return viewShared(b, columns, {getRowSize(linear.getX().getType()), block.size});
}

Value LinearLogits::buildBlock(const GradientBuilder &b, Value input, const ClassBlock &block) {
  Value bias = linear.getBias() ? b.slice(linear.getBias(), block.first, block.size) : Value();
  return LinearOp::create(b.builder, linear.getLoc(), withRowShape(linear.getType(), {block.size}),
                          input, buildWeight(b, block), bias, /*transposed=*/false,
                          linear.getBf16());
}

SmallVector<Value> LinearLogits::addGradients(const GradientBuilder &b, Value gradient,
                                              const ClassBlock &block) {
  SmallVector<Value> made;
  if (inputGradient) {
    Value part = LinearOp::create(b.builder, inputGradient.getLoc(), inputGradient.getType(),
                                  gradient, buildWeight(b, block), /*bias=*/Value(),
                                  /*transposed=*/true, inputGradient.getBf16());
    inputSum = inputSum ? b.add(part, inputSum) : part;
    made.push_back(inputSum);
  }
  if (weightGradient) {
    Value x = linear.getX();
    auto type = RankedTensorType::get({getRowSize(x.getType()), block.size},
                                      cast<RankedTensorType>(x.getType()).getElementType());
    weightParts.push_back(WeightGradientOp::create(b.builder, weightGradient.getLoc(), type, x,
                                                   gradient, weightGradient.getBf16()));
    made.push_back(weightParts.back());
  }
  if (biasGradient) {
    biasParts.push_back(b.reduceRows(gradient));
    made.push_back(biasParts.back());
  }
  return made;
}

void LinearLogits::finishGradients(const GradientBuilder &b) {
  if (inputGradient)
    inputGradient.getResult().replaceAllUsesWith(inputSum);
  if (weightGradient) {
    SmallVector<Value> parts;
    for (Value part : llvm::reverse(weightParts))
      parts.push_back(viewRows(b, part));
    auto type = cast<RankedTensorType>(weightGradient.getType());
    Value rows = ConcatColumnsOp::create(
        b.builder, b.loc, withRowShape(parts.front().getType(), {type.getDimSize(1)}), parts);
    weightGradient.getResult().replaceAllUsesWith(viewShared(b, rows, type.getShape()));
  }
  if (biasGradient) {
    SmallVector<Value> parts(llvm::reverse(biasParts));
    Value bias = ConcatColumnsOp::create(b.builder, b.loc, biasGradient.getType(), parts);
    biasGradient.getResult().replaceAllUsesWith(bias);
  }
}

//===----------------------------------------------------------------------===//
// Scores of a catalogue
//===----------------------------------------------------------------------===//

namespace {
class CatalogueLogits : public ClassLogits {
public:
  explicit CatalogueLogits(ScoresOp scores) : ClassLogits(scores), scores(scores) {}

  /// Records the readers of the logits' gradient. Returns the first that is not a gradient op of
  /// the scores.
  Operation *setReaders(SoftmaxCrossEntropyGradOp gradient) {
    for (Operation *user : gradient->getUsers()) {
      auto op = dyn_cast<ScoresGradOp>(user);
      if (!op || op.getQuery() != scores.getQuery() || op.getItems() != scores.getItems() ||
          !op.getOnto().empty() || !setOnce(scoresGradient, op))
        return user;
      readers.push_back(user);
    }
    return nullptr;
  }

  Value buildBlock(const GradientBuilder &b, Value input, const ClassBlock &block) override {
    return ScoresOp::create(b.builder, scores.getLoc(),
                            withRowShape(scores.getType(), {block.size}), input, scores.getItems(),
                            block.first, isPartial(block));
  }

  SmallVector<Value> addGradients(const GradientBuilder &b, Value gradient,
                                  const ClassBlock &block) override {
    if (!scoresGradient)
      return {};
    auto op = ScoresGradOp::create(
        b.builder, scoresGradient.getLoc(), scoresGradient.getDquery().getType(),
        scoresGradient.getDitems().getType(), scores.getQuery(), scores.getItems(), gradient, sums,
        block.first, isPartial(block));
    sums.assign(op->result_begin(), op->result_end());
    return sums;
  }

  void finishGradients(const GradientBuilder &) override {
    if (scoresGradient)
      scoresGradient.replaceAllUsesWith(sums);
  }

private:
  /// Only the last block reports a catalogue that is too large.
  bool isPartial(const ClassBlock &block) { return block.first + block.size < getClasses(); }

  ScoresOp scores;
  ScoresGradOp scoresGradient;
  SmallVector<Value> sums;
};
} // namespace

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

template <typename LogitsT>
static std::unique_ptr<ClassLogits> takeReaders(std::unique_ptr<LogitsT> logits,
                                                SoftmaxCrossEntropyGradOp gradient,
                                                std::string &reason) {
  Operation *other = gradient ? logits->setReaders(gradient) : nullptr;
  if (!other)
    return logits;
  reason = nameForUser(other) + " reads their gradient";
  return nullptr;
}

std::unique_ptr<ClassLogits> ClassLogits::find(SoftmaxCrossEntropyOp loss,
                                               SoftmaxCrossEntropyGradOp gradient,
                                               std::string &reason) {
  Operation *product = loss.getLogits().getDefiningOp();
  if (!loss.getLabelSmoothing().isZero()) {
    reason = "label smoothing reads all of them";
    return nullptr;
  }
  for (Operation *user : loss.getLogits().getUsers())
    if (user != loss && user != gradient) {
      reason = nameForUser(user) + " reads them too";
      return nullptr;
    }
  if (auto linear = dyn_cast_or_null<LinearOp>(product); linear && !linear.getTransposed())
    return takeReaders(std::make_unique<LinearLogits>(linear), gradient, reason);
  if (auto scores = dyn_cast_or_null<ScoresOp>(product))
    return takeReaders(std::make_unique<CatalogueLogits>(scores), gradient, reason);
  reason = "they are made by " + (product ? nameForUser(product) : "an argument") +
           ", not by linear or scores";
  return nullptr;
}

void ClassLogits::eraseReplaced(SoftmaxCrossEntropyOp loss, SoftmaxCrossEntropyGradOp gradient) {
  for (Operation *reader : readers)
    reader->erase();
  if (gradient)
    gradient->erase();
  loss->erase();
  product->erase();
}
