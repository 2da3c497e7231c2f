//===- RankingOps.cpp - layers of ranking models --------------------------===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

/// The softmax of the `values` for which `isKept(index)` holds; 0 elsewhere.
template <class IsKept> static std::vector<double> softmax(ArrayRef<double> values, IsKept isKept) {
  double largest = -INFINITY, sum = 0;
  for (auto [index, value] : llvm::enumerate(values))
    if (isKept(index))
      largest = std::max(largest, value);
  std::vector<double> result(values.size(), 0.0);
  for (auto [index, value] : llvm::enumerate(values))
    if (isKept(index))
      sum += result[index] = std::exp(value - largest);
  for (double &value : result)
    value /= sum;
  return result;
}

static Error evaluateSoftmax(Evaluator &e, SoftmaxOp op) {
  Tensor result = e.get(op.getX());
  for (int64_t row = 0; row < result.rows; ++row)
    llvm::copy(softmax(result.valuesOf(row), [](size_t) { return true; }), result.row(row));
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Interactions
//===----------------------------------------------------------------------===//

/// Calls `body(i, j, pair)` for every pair that a dot interaction multiplies.
template <class OpT, class Body> static void forEachPair(OpT op, Body body) {
  int64_t pair = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(op.getCount()); ++i)
    for (int64_t j = 0; j < i + (op.getSelf() ? 1 : 0); ++j)
      body(i, j, pair++);
}

static Error evaluateDotInteraction(Evaluator &e, DotInteractionOp op) {
  Factor vectors(e, op, e.get(op.getX()));
  const Tensor &x = vectors;
  int64_t size = x.width / static_cast<int64_t>(op.getCount());
  Tensor result = makeTensor(op.getType(), x.rows);
  for (int64_t row = 0; row < x.rows; ++row)
    forEachPair(op, [&](int64_t i, int64_t j, int64_t pair) {
      for (int64_t column = 0; column < size; ++column)
        result.row(row)[pair] += x.row(row)[i * size + column] * x.row(row)[j * size + column];
    });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateDotInteractionGrad(Evaluator &e, DotInteractionGradOp op) {
  Factor vectors(e, op, e.get(op.getX())), factors(e, op, e.get(op.getGradient()));
  const Tensor &x = vectors, &gradient = factors;
  int64_t size = x.width / static_cast<int64_t>(op.getCount());
  Tensor result = makeTensor(op.getType(), x.rows);
  for (int64_t row = 0; row < x.rows; ++row)
    forEachPair(op, [&](int64_t i, int64_t j, int64_t pair) {
      double g = gradient.row(row)[pair];
      for (int64_t column = 0; column < size; ++column) {
        result.row(row)[i * size + column] += g * x.row(row)[j * size + column];
        result.row(row)[j * size + column] += g * x.row(row)[i * size + column];
      }
    });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateCrossLayer(Evaluator &e, CrossLayerOp op) {
  const Tensor &x0 = e.get(op.getX0()), &x = e.get(op.getX()), &bias = e.get(op.getBias());
  Tensor input = x;
  if (op.getReduce())
    input = multiply(e, Factor(e, op, x), Factor(e, op, e.get(op.getReduce())),
                     getRowShape(op.getReduce().getType())[1], false);
  Tensor y =
      multiply(e, Factor(e, op, input), Factor(e, op, e.get(op.getWeight())), x.width, false);
  forEachElement(y, [&](int64_t row, int64_t column) {
    double &value = y.row(row)[column];
    value = x0.row(row)[column] * (value + bias.floats()[column]) + x.row(row)[column];
  });
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

static Error evaluateMixture(Evaluator &e, MixtureOp op) {
  const Tensor &experts = e.get(op.getExperts()), &logits = e.get(op.getLogits());
  Tensor result = makeTensor(op.getType(), experts.rows);
  int64_t topK = op.getTopK() ? op.getTopK() : logits.width;
  for (int64_t row = 0; row < experts.rows; ++row) {
    std::vector<size_t> order(logits.width);
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    llvm::stable_sort(order,
                      [&](size_t a, size_t b) { return logits.row(row)[a] > logits.row(row)[b]; });
    order.resize(topK);
    std::vector<double> weights =
        softmax(logits.valuesOf(row), [&](size_t i) { return llvm::is_contained(order, i); });
    for (size_t expert : order)
      for (int64_t column = 0; column < result.width; ++column)
        result.row(row)[column] +=
            weights[expert] * experts.row(row)[expert * result.width + column];
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Cross attention
//===----------------------------------------------------------------------===//

/// Calls body(head, query, first key, weights of the keys) for each query that has keys.
template <typename OpT, typename Body>
static void forEachAttended(Evaluator &e, OpT op, const Body &body) {
  Factor left(e, op, e.get(op.getQ())), right(e, op, e.get(op.getK()));
  const Tensor &q = left, &k = right;
  const DomainRows &queries = e.rowsOf(op.getQ().getType()), &keys = e.rowsOf(op.getK().getType());
  bool isBelow = lookupDomain(op, getRowDomain(op.getK().getType())).getParentAttr() ==
                 getRowDomain(op.getQ().getType());
  int64_t heads = op.getHeads(), qk = q.width / heads;
  for (int64_t row = 0; row < q.rows; ++row) {
    int64_t list = isBelow ? row : queries.parent[row];
    int64_t begin = keys.offsets[list], end = keys.offsets[list + 1];
    for (int64_t head = 0; head < heads && begin < end; ++head) {
      std::vector<double> scores;
      for (int64_t key = begin; key < end; ++key) {
        double product = 0;
        for (int64_t i = head * qk; i < (head + 1) * qk; ++i)
          product += q.row(row)[i] * k.row(key)[i];
        scores.push_back(op.getScale().convertToDouble() * product);
      }
      body(head, row, begin, softmax(scores, [](size_t) { return true; }));
    }
  }
}

static Error evaluateCrossAttention(Evaluator &e, CrossAttentionOp op) {
  Factor values(e, op, e.get(op.getV()));
  const Tensor &v = values;
  int64_t dv = v.width / static_cast<int64_t>(op.getHeads());
  Tensor result = makeTensor(op.getType(), e.get(op.getQ()).rows);
  forEachAttended(e, op, [&](int64_t head, int64_t row, int64_t begin, ArrayRef<double> weights) {
    for (auto [key, weight] : llvm::enumerate(weights))
      for (int64_t i = head * dv; i < (head + 1) * dv; ++i)
        result.row(row)[i] += (op.getBf16() ? e.toBf16(weight) : weight) * v.row(begin + key)[i];
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateCrossAttentionGrad(Evaluator &e, CrossAttentionGradOp op) {
  Factor queries(e, op, e.get(op.getQ())), keys(e, op, e.get(op.getK()));
  Factor values(e, op, e.get(op.getV())), factors(e, op, e.get(op.getGradient()));
  const Tensor &q = queries, &k = keys, &v = values, &gradient = factors;
  auto round = [&](double x) { return op.getBf16() ? e.toBf16(x) : x; };
  int64_t heads = op.getHeads(), qk = q.width / heads, dv = v.width / heads;
  double scale = op.getScale().convertToDouble();
  Tensor dq = makeTensor(op.getDq().getType(), q.rows);
  Tensor dk = makeTensor(op.getDk().getType(), k.rows),
         dvalues = makeTensor(op.getDv().getType(), v.rows);
  forEachAttended(e, op, [&](int64_t head, int64_t row, int64_t begin, ArrayRef<double> weights) {
    std::vector<double> dots(weights.size());
    double mean = 0;
    for (auto [key, weight] : llvm::enumerate(weights)) {
      for (int64_t i = head * dv; i < (head + 1) * dv; ++i) {
        dots[key] += gradient.row(row)[i] * v.row(begin + key)[i];
        dvalues.row(begin + key)[i] += round(weight) * gradient.row(row)[i];
      }
      mean += weight * dots[key];
    }
    // with one key this is its dot itself: the difference below is rounding only
    mean = e.perturbed(mean);
    for (auto [key, weight] : llvm::enumerate(weights)) {
      double dScore = round(weight * (dots[key] - mean)) * scale;
      for (int64_t i = head * qk; i < (head + 1) * qk; ++i) {
        dq.row(row)[i] += dScore * k.row(begin + key)[i];
        dk.row(begin + key)[i] += dScore * q.row(row)[i];
      }
    }
  });
  e.set(op.getDq(), std::move(dq));
  e.set(op.getDk(), std::move(dk));
  e.set(op.getDv(), std::move(dvalues));
  return Error::success();
}

void interpreter::addRankingOps(HandlerMap &map) {
  map.add<SoftmaxOp, evaluateSoftmax>();
  map.add<DotInteractionOp, evaluateDotInteraction>();
  map.add<DotInteractionGradOp, evaluateDotInteractionGrad>();
  map.add<CrossLayerOp, evaluateCrossLayer>();
  map.add<MixtureOp, evaluateMixture>();
  map.add<CrossAttentionOp, evaluateCrossAttention>();
  map.add<CrossAttentionGradOp, evaluateCrossAttentionGrad>();
}
