//===- OptimizerBodies.cpp - one row of an optimizer step -----------------===//
//
// The equations and the order of operations are those of torch.optim. State slots: sgd 1 = momentum
// buffer; adagrad 1 = sum of squares; rowwise_adagrad 1 = the row's sum of mean squares; adam and
// adamw 1, 2 = first and second moment, 3 = the row's own step count.
//
//===----------------------------------------------------------------------===//

#include "OptimizerBodies.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

static bool isAdam(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
}

static bool countsPerRow(OptimizerAttr optimizer) {
  return optimizer.getOption("per_row_step") != 0.0;
}

SmallVector<OptimizerStepValue> genrec::getStepValues(OptimizerAttr optimizer) {
  SmallVector<OptimizerStepValue> values{
      {"learning_rate", optimizer.getOption("lr")}};
  if (isAdam(optimizer.getKind()) && !countsPerRow(optimizer)) {
    values.push_back({"bias_correction", optimizer.getOption("beta1")});
    values.push_back({"bias_correction", optimizer.getOption("beta2")});
  }
  return values;
}

bool genrec::changesWithoutGradient(OptimizerAttr optimizer, bool onTable) {
  if (optimizer.getOption("weight_decay", onTable) != 0.0)
    return true;
  if (optimizer.getKind() == OptimizerKind::sgd)
    return optimizer.getOption("momentum", onTable) != 0.0;
  return isAdam(optimizer.getKind()) || optimizer.getOption("eps", onTable) <= 0.0;
}

namespace {
/// Builds the step of one row.
class OptimizerStep {
public:
  OptimizerStep(OpBuilder &builder, Location loc, OptimizerAttr optimizer,
                bool onTable, Value row, Value gradient)
      : b(builder, loc), optimizer(optimizer), onTable(onTable), row(row),
        gradient(gradient), type(gradient.getType()) {}

  void build(ValueRange stepValues);

private:
  double option(StringRef name) const {
    return optimizer.getOption(name, onTable);
  }
  Value scale(Value x, double factor) const {
    return b.mul(x, b.constant(x.getType(), factor));
  }
  Value spread(Value scalar) const { return b.fit(scalar, bodyShape(type)); }
  Value divide(Value x, Value y) const { return b.make<arith::DivFOp>(x, y); }
  Value squareRoot(Value x) const { return b.make<math::SqrtOp>(x); }
  Value load(int64_t slot) const { return b.make<RowLoadOp>(type, row, slot); }
  void store(Value value, int64_t slot) const {
    RowStoreOp::create(b.builder, b.loc, value, row, slot);
  }

  Value withDecay(Value weight) const;
  Value buildSgd(Value weight, Value rate) const;
  Value buildAdagrad(Value weight, Value rate) const;
  Value buildRowwiseAdagrad(Value weight, Value rate) const;
  Value buildAdam(Value weight, Value rate, ValueRange corrections) const;
  Value buildRowCorrection(Value count, double beta) const;

  RowBodyBuilder b;
  OptimizerAttr optimizer;
  bool onTable;
  Value row, gradient;
  Type type;
};
} // namespace

/// The gradient with L2 weight decay added.
Value OptimizerStep::withDecay(Value weight) const {
  double decay = option("weight_decay");
  return decay == 0.0 ? gradient : b.add(gradient, scale(weight, decay));
}

Value OptimizerStep::buildSgd(Value weight, Value rate) const {
  Value step = withDecay(weight);
  // The buffer is initially 0, so the first step sets it to the gradient, as in torch.optim.
  if (double momentum = option("momentum"); momentum != 0.0) {
    step = b.add(scale(load(1), momentum), step);
    store(step, 1);
  }
  return b.sub(weight, b.mul(spread(rate), step));
}

Value OptimizerStep::buildAdagrad(Value weight, Value rate) const {
  Value g = withDecay(weight);
  Value sum = b.add(load(1), b.mul(g, g));
  store(sum, 1);
  Value divisor = b.add(squareRoot(sum), b.constant(type, option("eps")));
  return b.sub(weight, b.mul(spread(rate), divide(g, divisor)));
}

/// FBGEMM's EXACT_ROWWISE_ADAGRAD: one factor for the whole row, from the mean of its squared
/// gradients.
Value OptimizerStep::buildRowwiseAdagrad(Value weight, Value rate) const {
  Value g = withDecay(weight);
  Value mean = scale(b.reduceAdd(b.mul(g, g)), 1.0 / static_cast<double>(bodyShape(type).front()));
  auto once = VectorType::get({1}, bodyElement(type));
  Value sum = b.add(b.make<RowLoadOp>(once, row, 1), b.fit(mean, once.getShape()));
  store(sum, 1);
  Value root = squareRoot(b.make<vector::ExtractOp>(sum, ArrayRef<int64_t>{0}));
  Value factor = divide(rate, b.add(root, b.constant(root.getType(), option("eps"))));
  return b.sub(weight, b.mul(spread(factor), g));
}

/// 1 - beta^count with the row's step count: -expm1(count * log beta). 1 - exp(…) would lose
/// precision in f32: 1 - 0.999 has a relative error of 6e-5.
Value OptimizerStep::buildRowCorrection(Value count, double beta) const {
  Value power = b.make<math::ExpM1Op>(scale(count, std::log(beta)));
  return b.make<arith::NegFOp>(power);
}

Value OptimizerStep::buildAdam(Value weight, Value rate,
                               ValueRange corrections) const {
  bool isDecoupled = optimizer.getKind() == OptimizerKind::adamw;
  double beta1 = option("beta1"), beta2 = option("beta2");
  double decay = option("weight_decay");
  Value g = isDecoupled ? gradient : withDecay(weight);
  if (isDecoupled && decay != 0.0) {
    Value kept = b.sub(b.constant(rate.getType(), 1.0), scale(rate, decay));
    weight = b.mul(weight, spread(kept));
  }
  Value first = load(1), second = load(2);
  first = b.add(first, scale(b.sub(g, first), 1.0 - beta1));
  second = b.add(scale(second, beta2), scale(b.mul(g, g), 1.0 - beta2));
  store(first, 1);
  store(second, 2);

  Value correction1, correction2;
  if (countsPerRow(optimizer)) {
    Value count = b.add(load(3), b.constant(type, 1.0));
    store(count, 3);
    correction1 = buildRowCorrection(count, beta1);
    correction2 = buildRowCorrection(count, beta2);
  } else {
    correction1 = corrections[0];
    correction2 = corrections[1];
  }
  // Step size and root have the shape of the corrections, so scalars are computed once per row.
  Value like = countsPerRow(optimizer) ? spread(rate) : rate;
  Value size = spread(divide(like, correction1));
  Value root = spread(squareRoot(correction2));
  Value divisor = b.add(divide(squareRoot(second), root),
                        b.constant(type, option("eps")));
  return b.sub(weight, b.mul(size, divide(first, divisor)));
}

void OptimizerStep::build(ValueRange stepValues) {
  Value weight = load(0), rate = stepValues[0];
  switch (optimizer.getKind()) {
  case OptimizerKind::sgd:
    return store(buildSgd(weight, rate), 0);
  case OptimizerKind::adagrad:
    return store(buildAdagrad(weight, rate), 0);
  case OptimizerKind::rowwise_adagrad:
    return store(buildRowwiseAdagrad(weight, rate), 0);
  case OptimizerKind::adam:
  case OptimizerKind::adamw:
    return store(buildAdam(weight, rate, stepValues.drop_front()), 0);
  }
}

void genrec::buildOptimizerBody(OpBuilder &builder, Location loc,
                                OptimizerAttr optimizer, bool onTable,
                                Value row, Value gradient,
                                ValueRange stepValues) {
  OptimizerStep(builder, loc, optimizer, onTable, row, gradient)
      .build(stepValues);
}
