//===- LossOps.cpp - losses, metrics, outputs -----------------------------===//

#include "genrec/Interpreter/Evaluator.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

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

/// The target probability of class `column` out of `classes` with label smoothing.
static double targetOf(int64_t column, int64_t chosen, int64_t classes, double smoothing) {
  return (column == chosen ? 1.0 - smoothing : 0.0) + smoothing / static_cast<double>(classes);
}

static Error evaluateSoftmaxCrossEntropy(Evaluator &e, SoftmaxCrossEntropyOp op) {
  const Tensor &logits = e.get(op.getLogits()), &label = e.get(op.getLabel());
  double smoothing = op.getLabelSmoothing().convertToDouble();
  Tensor result = makeTensor(op.getType(), logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row) {
    int64_t chosen = label.integers()[row];
    if (chosen < 0 || chosen >= logits.width)
      continue;
    double loss = 0, total = logSumExp(logits.valuesOf(row));
    for (int64_t column = 0; column < logits.width; ++column)
      if (double target = targetOf(column, chosen, logits.width, smoothing); target > 0)
        loss += target * (total - logits.row(row)[column]);
    result.floats()[row] = loss;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSoftmaxCrossEntropyGrad(Evaluator &e, SoftmaxCrossEntropyGradOp op) {
  const Tensor &logits = e.get(op.getLogits()), &label = e.get(op.getLabel());
  const Tensor &gradient = e.get(op.getGradient());
  const Tensor *totals = op.getLogSumExp() ? &e.get(op.getLogSumExp()) : nullptr;
  double smoothing = op.getLabelSmoothing().convertToDouble();
  Tensor result = makeTensor(op.getType(), logits.rows);
  for (int64_t row = 0; row < logits.rows; ++row) {
    int64_t chosen = label.integers()[row] - static_cast<int64_t>(op.getFirst());
    if (!totals && (chosen < 0 || chosen >= logits.width))
      continue;
    double total = totals ? totals->floats()[row] : logSumExp(logits.valuesOf(row));
    for (int64_t column = 0; column < logits.width; ++column) {
      double softmax = std::exp(logits.row(row)[column] - total);
      double target = targetOf(column, chosen, logits.width, smoothing);
      result.row(row)[column] = (softmax - target) * gradient.floats()[row];
    }
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Cross entropy of a positive among drawn negatives
//===----------------------------------------------------------------------===//

namespace {
/// The softmax of one row: its positive first, then all negatives, of which masked ones have 0.
struct SampledRow {
  std::vector<double> logits;
  double total = 0;

  template <class OpT> SampledRow(Evaluator &e, OpT op, int64_t row, int64_t positive) {
    const Tensor &dots = e.get(op.getDots()), &drawn = e.get(op.getDrawn());
    logits.push_back(e.get(op.getDot()).floats()[row]);
    for (int64_t column = 0; column < dots.width; ++column)
      logits.push_back(drawn.integers()[drawn.at(row, column)] == positive
                           ? -std::numeric_limits<double>::infinity()
                           : dots.row(row)[column]);
    for (double &logit : logits)
      logit /= op.getTemperature().convertToDouble();
    total = logSumExp(logits);
  }
};
} // namespace

static Error evaluateSampledCrossEntropy(Evaluator &e, SampledCrossEntropyOp op) {
  const Tensor &positives = e.get(op.getPositive());
  Tensor result = makeTensor(op.getType(), positives.rows);
  for (int64_t row = 0; row < positives.rows; ++row)
    if (int64_t positive = positives.integers()[row]; positive >= 0) {
      SampledRow sampled(e, op, row, positive);
      result.floats()[row] = sampled.total - sampled.logits.front();
    }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSampledCrossEntropyGrad(Evaluator &e, SampledCrossEntropyGradOp op) {
  const Tensor &positives = e.get(op.getPositive()), &gradient = e.get(op.getGradient());
  Tensor ddot = makeTensor(op.getDdot().getType(), positives.rows);
  Tensor ddots = makeTensor(op.getDdots().getType(), positives.rows);
  for (int64_t row = 0; row < positives.rows; ++row)
    if (int64_t positive = positives.integers()[row]; positive >= 0) {
      SampledRow sampled(e, op, row, positive);
      const double seed = gradient.floats()[row] / op.getTemperature().convertToDouble();
      for (int64_t column = 0; column < ddots.width; ++column) {
        double share =
            std::exp(sampled.logits[static_cast<size_t>(column) + 1] - sampled.total) * seed;
        ddots.row(row)[column] = share;
        ddot.floats()[row] -= share;
      }
    }
  e.set(op.getDdot(), std::move(ddot));
  e.set(op.getDdots(), std::move(ddots));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Classes in blocks
//===----------------------------------------------------------------------===//

static Error evaluateLogSumExp(Evaluator &e, LogSumExpOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), x.rows);
  for (int64_t row = 0; row < x.rows; ++row) {
    std::vector<double> values(x.valuesOf(row));
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
// Results of a program
//===----------------------------------------------------------------------===//

static Error evaluateLoss(Evaluator &e, LossOp op) {
  const Tensor &x = e.get(op.getX());
  LossResult loss{op.getName().str(), 0.0, 0.0, op.getScale().convertToDouble()};
  for (int64_t row = 0; row < x.rows; ++row) {
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    double weight = op.getWeight() ? e.get(op.getWeight()).floats()[row] : 1.0;
    if (!(weight >= 0 && std::isfinite(weight)))
      return fail(op, "has a weight in row " + Twine(row) + " that is negative or not finite");
    loss.sum = e.perturbed(loss.sum + weight * x.floats()[row]);
    loss.weight = op.getWeight() ? e.perturbed(loss.weight + weight) : loss.weight + weight;
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

/// A number with up to nine significant digits.
static std::string written(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  return text;
}

static Error evaluateRequireRange(Evaluator &e, RequireRangeOp op) {
  const Tensor &x = e.get(op.getX());
  double low = op.getMin().convertToDouble(), high = std::numeric_limits<float>::max();
  if (op.getMax())
    high = op.getMax()->convertToDouble();
  int64_t items = op.getItems() ? e.get(op.getItems()).rows : std::numeric_limits<int64_t>::max();
  for (int64_t row = 0; row < x.rows; ++row) {
    bool isLeftOut = (op.getValid() && !e.get(op.getValid()).integers()[row]) ||
                     (op.getWeight() && e.get(op.getWeight()).floats()[row] == 0);
    double value = x.isFloat() ? e.label(x.floats()[row]) : static_cast<double>(x.integers()[row]);
    bool isWithin = value >= low && value <= high && value < static_cast<double>(items);
    if (isLeftOut || isWithin)
      continue;
    std::string most =
        op.getItems() ? ", of a catalogue of " + std::to_string(items) + " rows" : "";
    return fail(op, "is about " + op.getWhat() + ", which must lie in " + written(low) + " to " +
                        written(high) + most + ", but is " + written(value) + " in row " +
                        Twine(row));
  }
  return Error::success();
}

namespace {
/// Reads the operands of a metric.
class MetricReader {
public:
  MetricReader(Evaluator &e, MetricOp op) : e(e), op(op), x(e.get(op.getX())) {}

  Error run() {
    if (op.getKind() != MetricKind::ranking)
      return readScores();
    return op.getPerList() ? readLists() : readRanks();
  }

private:
  bool isValid(int64_t row) { return !op.getValid() || e.get(op.getValid()).integers()[row] != 0; }

  llvm::Expected<double> weightOf(int64_t row) {
    double weight = op.getWeight() ? e.get(op.getWeight()).floats()[row] : 1.0;
    if (std::isfinite(weight) && weight >= 0)
      return weight;
    return fail(op, "has a weight in row " + Twine(row) + " that is negative or not finite");
  }

  Error readRanks() {
    std::vector<WeighedRank> ranks;
    for (int64_t row = 0; row < x.rows; ++row) {
      if (!isValid(row) || x.integers()[row] == 0)
        continue;
      llvm::Expected<double> weight = weightOf(row);
      if (!weight)
        return weight.takeError();
      if (*weight > 0)
        ranks.push_back({x.integers()[row], *weight});
    }
    e.metrics.addRanks(op, ranks);
    return Error::success();
  }

  Error readLists() {
    const DomainRows &rows = e.rowsOf(op.getX().getType());
    std::vector<RankedList> lists;
    for (size_t list = 0; list + 1 < rows.offsets.size(); ++list) {
      RankedList ranked{{}, 0};
      for (int64_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row)
        if (isValid(row) && x.integers()[row] != 0)
          ranked.ranks.push_back(x.integers()[row]);
      if (ranked.ranks.empty())
        continue;
      llvm::Expected<double> weight = weightOf(static_cast<int64_t>(list));
      if (!weight)
        return weight.takeError();
      ranked.weight = *weight;
      if (*weight > 0)
        lists.push_back(std::move(ranked));
    }
    e.metrics.addLists(op, lists);
    return Error::success();
  }

  Error readScores() {
    bool isNumeric = op.getKind() == MetricKind::rmse || op.getKind() == MetricKind::mae;
    std::vector<WeighedScore> scored;
    for (int64_t row = 0; row < x.rows; ++row) {
      if (!isValid(row))
        continue;
      llvm::Expected<double> weight = weightOf(row);
      if (!weight)
        return weight.takeError();
      if (*weight == 0)
        continue;
      double score = x.floats()[row], label = e.get(op.getLabel()).floats()[row];
      if (!isNumeric)
        label = e.label(label);
      if (std::isnan(score))
        return fail(op, "has a NaN score in row " + Twine(row));
      if (isNumeric ? !std::isfinite(label) : label != 0 && label != 1)
        return fail(op, "has the label " + written(label) + " in row " + Twine(row) +
                            (isNumeric ? "" : ", which is neither 0 nor 1"));
      int64_t key = op.getKey() ? e.get(op.getKey()).integers()[row] : 0;
      scored.push_back({score, label, *weight, key});
    }
    e.metrics.addScores(op, scored);
    return Error::success();
  }

  Evaluator &e;
  MetricOp op;
  const Tensor &x;
};
} // namespace

static Error evaluateMetric(Evaluator &e, MetricOp op) { return MetricReader(e, op).run(); }

static Error evaluateOutput(Evaluator &e, OutputOp op) {
  OutputResult output{op.getName().str(), e.get(op.getX()), {}};
  if (op.getValid()) {
    const Tensor &valid = e.get(op.getValid());
    forEachElement(output.value, [&](int64_t row, int64_t column) {
      output.isNull.push_back(!valid.integers()[valid.at(row, column)]);
    });
  }
  e.results.outputs.push_back(std::move(output));
  return Error::success();
}

void interpreter::addLossOps(HandlerMap &map) {
  map.add<BceWithLogitsOp, evaluateBce>();
  map.add<SoftmaxCrossEntropyOp, evaluateSoftmaxCrossEntropy>();
  map.add<SoftmaxCrossEntropyGradOp, evaluateSoftmaxCrossEntropyGrad>();
  map.add<SampledCrossEntropyOp, evaluateSampledCrossEntropy>();
  map.add<SampledCrossEntropyGradOp, evaluateSampledCrossEntropyGrad>();
  map.add<LogSumExpOp, evaluateLogSumExp>();
  map.add<PickColumnOp, evaluatePickColumn>();
  map.add<LossOp, evaluateLoss>();
  map.add<ReportLossOp, evaluateReportLoss>();
  map.add<RequireRangeOp, evaluateRequireRange>();
  map.add<MetricOp, evaluateMetric>();
  map.add<OutputOp, evaluateOutput>();
}
