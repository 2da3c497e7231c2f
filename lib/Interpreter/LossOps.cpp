//===- LossOps.cpp - losses, metrics, outputs -----------------------------===//

#include "Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Losses of one row
//===----------------------------------------------------------------------===//

static Error evaluateBce(Evaluator &e, BceWithLogitsOp op) {
  e.set(op.getResult(), zipElements<double, double>(e.get(op.getLogit()), e.get(op.getLabel()),
                                                    [](double logit, double label) {
                                                      return softplus(logit) - label * logit;
                                                    }));
  return Error::success();
}

/// log Σ exp of a row.
static double logSumExp(ArrayRef<double> values) {
  double largest = *llvm::max_element(values), sum = 0;
  for (double value : values)
    sum += std::exp(value - largest);
  return largest + std::log(sum);
}

static ArrayRef<double> rowOf(const Tensor &x, int64_t row) {
  return {x.row(row), static_cast<size_t>(x.width)};
}

static Error evaluateSoftmaxCrossEntropy(Evaluator &e, SoftmaxCrossEntropyOp op) {
  const Tensor &logits = e.get(op.getLogits()), &label = e.get(op.getLabel());
  Tensor result = makeTensor(op.getType(), logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row)
    if (int64_t chosen = label.integers()[row]; chosen >= 0 && chosen < logits.width)
      result.floats()[row] = logSumExp(rowOf(logits, row)) - logits.row(row)[chosen];
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSoftmaxCrossEntropyGrad(Evaluator &e, SoftmaxCrossEntropyGradOp op) {
  const Tensor &logits = e.get(op.getLogits()), &label = e.get(op.getLabel());
  const Tensor &gradient = e.get(op.getGradient());
  const Tensor *totals = op.getLogSumExp() ? &e.get(op.getLogSumExp()) : nullptr;
  Tensor result = makeTensor(op.getType(), logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row) {
    int64_t chosen = label.integers()[row] - static_cast<int64_t>(op.getFirst());
    if (!totals && (chosen < 0 || chosen >= logits.width))
      continue;
    double total = totals ? totals->floats()[row] : logSumExp(rowOf(logits, row));
    for (int64_t column = 0; column < logits.width; ++column) {
      double softmax = std::exp(logits.row(row)[column] - total);
      result.row(row)[column] = (softmax - (column == chosen)) * gradient.floats()[row];
    }
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateLogSumExp(Evaluator &e, LogSumExpOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), x.rows);
  for (int64_t row = 0; row < x.rows; ++row) {
    std::vector<double> values(rowOf(x, row));
    if (op.getBefore())
      values.push_back(e.get(op.getBefore()).floats()[row]);
    result.floats()[row] = logSumExp(values);
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluatePickColumn(Evaluator &e, PickColumnOp op) {
  const Tensor &x = e.get(op.getX()), &index = e.get(op.getIndex());
  Tensor result = makeTensor(op.getType(), x.rows);
  for (int64_t row = 0; row < x.rows; ++row) {
    int64_t column = index.integers()[row] - static_cast<int64_t>(op.getFirst());
    if (column >= 0 && column < x.width)
      result.floats()[row] = x.row(row)[column];
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What leaves a program
//===----------------------------------------------------------------------===//

static Error evaluateLoss(Evaluator &e, LossOp op) {
  const Tensor &x = e.get(op.getX());
  LossResult loss{op.getName().str(), 0.0, 0.0, op.getScale().convertToDouble()};
  for (int64_t row = 0; row < x.rows; ++row) {
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    double weight = op.getWeight() ? e.get(op.getWeight()).floats()[row] : 1.0;
    loss.sum += weight * x.floats()[row];
    loss.weight += weight;
  }
  e.results.losses.push_back(std::move(loss));
  return Error::success();
}

static Error evaluateReportLoss(Evaluator &e, ReportLossOp op) {
  e.results.losses.push_back({op.getName().str(), e.get(op.getSum()).floats().front(),
                              e.get(op.getWeight()).floats().front(),
                              op.getScale().convertToDouble()});
  return Error::success();
}

static Error evaluateMetric(Evaluator &e, MetricOp op) {
  const Tensor &x = e.get(op.getX());
  auto isValid = [&](int64_t row) {
    return !op.getValid() || e.get(op.getValid()).integers()[row] != 0;
  };
  if (op.getKind() == MetricKind::ranking) {
    std::vector<int64_t> ranks;
    for (int64_t row = 0; row < x.rows; ++row)
      if (isValid(row))
        ranks.push_back(x.integers()[row]);
    e.metrics.addRanks(op.getName(), ranks, op.getAt().value_or(ArrayRef<int64_t>()));
    return Error::success();
  }
  std::vector<std::pair<double, bool>> scored;
  std::vector<int64_t> keys;
  for (int64_t row = 0; row < x.rows; ++row) {
    if (!isValid(row))
      continue;
    if (op.getKey())
      keys.push_back(e.get(op.getKey()).integers()[row]);
    if (std::isnan(x.floats()[row]))
      return fail(op, "has a NaN score in row " + Twine(row));
    scored.emplace_back(x.floats()[row], e.get(op.getLabel()).floats()[row] > 0.5);
  }
  if (op.getKind() == MetricKind::gauc)
    e.metrics.addGroups(op.getName(), scored, keys);
  else if (op.getKind() == MetricKind::ne)
    e.metrics.addLogits(op.getName(), scored);
  else
    e.metrics.addScores(op.getName(), scored);
  return Error::success();
}

static Error evaluateOutput(Evaluator &e, OutputOp op) {
  e.results.outputs.emplace_back(op.getName().str(), e.get(op.getX()));
  return Error::success();
}

void interpreter::addLossOps(HandlerMap &map) {
  map.add<BceWithLogitsOp, evaluateBce>();
  map.add<SoftmaxCrossEntropyOp, evaluateSoftmaxCrossEntropy>();
  map.add<SoftmaxCrossEntropyGradOp, evaluateSoftmaxCrossEntropyGrad>();
  map.add<LogSumExpOp, evaluateLogSumExp>();
  map.add<PickColumnOp, evaluatePickColumn>();
  map.add<LossOp, evaluateLoss>();
  map.add<ReportLossOp, evaluateReportLoss>();
  map.add<MetricOp, evaluateMetric>();
  map.add<OutputOp, evaluateOutput>();
}
