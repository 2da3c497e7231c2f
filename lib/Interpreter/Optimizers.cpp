//===- Optimizers.cpp - update rules, as PyTorch writes them --------------===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

namespace {
/// One weight and its optimizer states.
struct Weight {
  double *value;
  int64_t stride;

  double &state(int64_t slot) const { return value[slot * stride]; }
};
} // namespace

static void applySgd(OptimizerAttr optimizer, double lr, double decay, Weight w, double g) {
  g += decay * *w.value;
  if (double momentum = optimizer.getOption("momentum"); momentum != 0.0)
    g = w.state(1) = momentum * w.state(1) + g;
  *w.value -= lr * g;
}

static void applyAdagrad(OptimizerAttr optimizer, double lr, double decay, Weight w, double g) {
  g += decay * *w.value;
  w.state(1) += g * g;
  *w.value -= lr * g / (std::sqrt(w.state(1)) + optimizer.getOption("eps"));
}

/// Updates all weights of a row with one accumulator, the mean of their squared gradients.
static void applyRowwiseAdagrad(OptimizerAttr optimizer, double lr, double decay, RowHandle row,
                                ArrayRef<double> gradient) {
  double squares = 0.0;
  for (auto [column, g] : llvm::enumerate(gradient)) {
    double decayed = g + decay * row.value[column];
    squares += decayed * decayed;
  }
  double &sum = row.value[row.slotStride];
  sum += squares / static_cast<double>(gradient.size());
  for (auto [column, g] : llvm::enumerate(gradient)) {
    double &weight = row.value[column];
    weight -= lr * (g + decay * weight) / (std::sqrt(sum) + optimizer.getOption("eps"));
  }
}

static void applyAdam(OptimizerAttr optimizer, double lr, double decay, double step, Weight w,
                      double g) {
  double beta1 = optimizer.getOption("beta1"), beta2 = optimizer.getOption("beta2");
  if (optimizer.getKind() == OptimizerKind::adamw)
    *w.value -= lr * decay * *w.value;
  else
    g += decay * *w.value;
  w.state(1) = beta1 * w.state(1) + (1.0 - beta1) * g;
  w.state(2) = beta2 * w.state(2) + (1.0 - beta2) * g * g;
  double correction1 = 1.0 - std::pow(beta1, step), correction2 = 1.0 - std::pow(beta2, step);
  double denominator = std::sqrt(w.state(2)) / std::sqrt(correction2) + optimizer.getOption("eps");
  *w.value -= lr / correction1 * w.state(1) / denominator;
}

static void applyRmsprop(OptimizerAttr optimizer, double lr, double decay, Weight w, double g) {
  double alpha = optimizer.getOption("alpha");
  g += decay * *w.value;
  w.state(1) = alpha * w.state(1) + (1.0 - alpha) * g * g;
  g /= std::sqrt(w.state(1)) + optimizer.getOption("eps");
  if (double momentum = optimizer.getOption("momentum"); momentum != 0.0)
    g = w.state(2) = momentum * w.state(2) + g;
  *w.value -= lr * g;
}

void interpreter::applyOptimizer(OptimizerAttr optimizer, bool onTable, double scheduleFactor,
                                 uint64_t step, RowHandle row, ArrayRef<double> gradient) {
  double lr = optimizer.getOption("lr") * scheduleFactor;
  double decay = optimizer.getOption("weight_decay", onTable);
  bool countsPerRow = optimizer.getOption("per_row_step") != 0.0;
  if (optimizer.getKind() == OptimizerKind::rowwise_adagrad)
    return applyRowwiseAdagrad(optimizer, lr, decay, row, gradient);
  for (auto [column, g] : llvm::enumerate(gradient)) {
    Weight w{row.value + column, row.slotStride};
    switch (optimizer.getKind()) {
    case OptimizerKind::sgd:
      applySgd(optimizer, lr, decay, w, g);
      break;
    case OptimizerKind::adagrad:
      applyAdagrad(optimizer, lr, decay, w, g);
      break;
    case OptimizerKind::rmsprop:
      applyRmsprop(optimizer, lr, decay, w, g);
      break;
    case OptimizerKind::rowwise_adagrad:
      llvm_unreachable("applied to the whole row");
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      double t = countsPerRow ? ++w.state(3) : static_cast<double>(step);
      applyAdam(optimizer, lr, decay, t, w, g);
      break;
    }
  }
}
