//===- RowOps.cpp - ops along a row, norms, dense layers, moves -----------===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Ops along a row
//===----------------------------------------------------------------------===//

template <class T> static Tensor reduceRow(ReduceKind kind, const Tensor &x) {
  Tensor result = Tensor::make<T>(x.rows, 1, x.shared);
  for (int64_t row = 0; row < x.rows; ++row) {
    auto begin = x.as<T>().begin() + row * x.width, end = begin + x.width;
    T &value = result.as<T>()[row];
    if (kind == ReduceKind::max) {
      value = *begin;
      for (auto next = begin; next != end; ++next)
        value = *next > value || *next != *next ? *next : value;
      continue;
    }
    for (auto next = begin; next != end; ++next)
      value += *next;
    if (kind == ReduceKind::mean)
      value /= static_cast<T>(x.width);
  }
  return result;
}

static Error evaluateRowReduce(Evaluator &e, RowReduceOp op) {
  const Tensor &x = e.get(op.getX());
  e.set(op.getResult(),
        x.isFloat() ? reduceRow<double>(op.getKind(), x) : reduceRow<int64_t>(op.getKind(), x));
  return Error::success();
}

void interpreter::copyColumns(const Tensor &x, int64_t from, Tensor &result, int64_t to,
                              int64_t count) {
  std::visit(
      [&](const auto &source) {
        using Values = std::decay_t<decltype(source)>;
        auto &target = result.as<typename Values::value_type>();
        for (int64_t row = 0; row < result.rows; ++row)
          for (int64_t column = 0; column < count; ++column)
            target[row * result.width + to + column] = source[x.at(row, from + column)];
      },
      x.data);
}

static Error evaluateConcatColumns(Evaluator &e, ConcatColumnsOp op) {
  Tensor result = makeTensor(op.getType(), e.get(op.getParts().front()).rows);
  int64_t offset = 0;
  for (Value part : op.getParts()) {
    const Tensor &x = e.get(part);
    copyColumns(x, 0, result, offset, x.width);
    offset += x.width;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSliceColumns(Evaluator &e, SliceColumnsOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), x.rows);
  copyColumns(x, op.getOffset(), result, 0, result.width);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluatePadColumns(Evaluator &e, PadColumnsOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), x.rows);
  copyColumns(x, 0, result, op.getOffset(), x.width);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

static double add(double x, double y) { return x + y; }
static double mul(double x, double y) { return x * y; }

Tensor interpreter::normalizeRows(const Tensor &x, double eps) {
  Tensor result = x;
  double width = static_cast<double>(x.width);
  for (int64_t row = 0; row < x.rows; ++row) {
    llvm::MutableArrayRef<double> values(result.row(row), x.width);
    double mean = 0, variance = 0;
    for (double value : values)
      mean += value / width;
    for (double value : values)
      variance += (value - mean) * (value - mean) / width;
    for (double &value : values)
      value = (value - mean) / std::sqrt(variance + eps);
  }
  return result;
}

static Error evaluateLayerNorm(Evaluator &e, LayerNormOp op) {
  Tensor y = normalizeRows(e.get(op.getX()), op.getEps().convertToDouble());
  if (op.getScale())
    y = zipElements<double, double>(y, e.get(op.getScale()), mul);
  if (op.getBias())
    y = zipElements<double, double>(y, e.get(op.getBias()), add);
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

static double sumOfSquares(const Tensor &x, int64_t row) {
  double sum = 0;
  for (int64_t column = 0; column < x.width; ++column)
    sum += x.row(row)[column] * x.row(row)[column];
  return sum;
}

static Error evaluateRmsNorm(Evaluator &e, RmsNormOp op) {
  Tensor y = e.get(op.getX());
  double eps = op.getEps().convertToDouble();
  for (int64_t row = 0; row < y.rows; ++row) {
    double root = std::sqrt(sumOfSquares(y, row) / static_cast<double>(y.width) + eps);
    for (int64_t column = 0; column < y.width; ++column)
      y.row(row)[column] /= root;
  }
  if (op.getScale())
    y = zipElements<double, double>(y, e.get(op.getScale()), mul);
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

static Error evaluateL2Normalize(Evaluator &e, L2NormalizeOp op) {
  Tensor y = e.get(op.getX());
  for (int64_t row = 0; row < y.rows; ++row) {
    double norm = std::max(std::sqrt(sumOfSquares(y, row)), op.getEps().convertToDouble());
    for (int64_t column = 0; column < y.width; ++column)
      y.row(row)[column] /= norm;
  }
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Dense layers
//===----------------------------------------------------------------------===//

Tensor interpreter::multiply(const Evaluator &e, const Tensor &x, const Tensor &weight,
                             int64_t columns, bool transposed) {
  Tensor result = Tensor::make<double>(x.rows, columns, x.shared);
  const std::vector<double> &w = weight.floats();
  for (int64_t row = 0; row < x.rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0, squares = 0;
      for (int64_t k = 0; k < x.width; ++k) {
        double term =
            x.row(row)[k] * (transposed ? w[column * x.width + k] : w[k * columns + column]);
        sum += term;
        squares += term * term;
      }
      result.row(row)[column] = x.width > 1 ? e.perturbedSum(sum, squares) : sum;
    }
  return result;
}

static Error evaluateLinear(Evaluator &e, LinearOp op) {
  Tensor y = multiply(e, Factor(e, op, e.get(op.getX())), Factor(e, op, e.get(op.getWeight())),
                      getRowSize(op.getType()), op.getTransposed());
  if (op.getBias())
    y = zipElements<double, double>(y, e.get(op.getBias()), add);
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

/// Applies `activation` to x.
static double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::none:
    return x;
  case Activation::relu:
    return std::max(x, 0.0);
  case Activation::silu:
    return silu(x);
  case Activation::gelu:
    return gelu(x);
  case Activation::sigmoid:
    return sigmoid(x);
  case Activation::tanh:
    return std::tanh(x);
  }
  llvm_unreachable("a case per activation");
}

static Error evaluateFusedLinear(Evaluator &e, FusedLinearOp op) {
  Tensor y = multiply(e, Factor(e, op, e.get(op.getX())), Factor(e, op, e.get(op.getWeight())),
                      getRowSize(op.getResult().getType()), op.getTransposed());
  if (op.getBias())
    y = zipElements<double, double>(y, e.get(op.getBias()), add);
  if (op.getPre())
    e.set(op.getPre(), Tensor(y));
  for (double &element : y.floats())
    element = activate(op.getActivation(), element);
  if (op.getResidual())
    y = zipElements<double, double>(y, e.get(op.getResidual()), add);
  e.set(op.getResult(), std::move(y));
  return Error::success();
}

static Error evaluateWeightGradient(Evaluator &e, WeightGradientOp op) {
  Factor left(e, op, e.get(op.getX())), right(e, op, e.get(op.getY()));
  const Tensor &x = left, &y = right;
  Tensor result = makeTensor(op.getType(), 1);
  for (int64_t k = 0; k < x.width; ++k)
    for (int64_t n = 0; n < y.width; ++n) {
      double sum = 0, squares = 0;
      for (int64_t row = 0; row < x.rows; ++row) {
        double term = x.row(row)[k] * y.row(row)[n];
        sum += term;
        squares += term * term;
      }
      result.floats()[k * y.width + n] = x.rows > 1 ? e.perturbedSum(sum, squares) : sum;
    }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateReduceRows(Evaluator &e, ReduceRowsOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), 1);
  forEachElement(x, [&](int64_t row, int64_t column) {
    if (x.isFloat())
      result.floats()[column] = e.perturbed(result.floats()[column] + x.row(row)[column]);
    else
      result.integers()[column] += x.integers()[x.at(row, column)];
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

static Error evaluateLookup(Evaluator &e, LookupOp op) {
  const Tensor &ids = e.get(op.getIds());
  Tensor result = makeTensor(op.getType(), ids.rows);
  TableState &table = e.table(op.getTable());
  for (int64_t row = 0; row < ids.rows; ++row) {
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    llvm::Expected<RowHandle> handle = e.findRow(op, table, ids.integers()[row]);
    if (!handle)
      return handle.takeError();
    e.readValue(*handle, result.width, result.row(row));
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateEmbedding(Evaluator &e, EmbeddingOp op) {
  const Tensor &index = e.get(op.getIndex()), &weight = e.get(op.getWeight());
  Tensor result = makeTensor(op.getType(), index.rows);
  int64_t last = weight.width / result.width - 1;
  for (int64_t row = 0; row < index.rows; ++row) {
    int64_t from = std::clamp<int64_t>(index.integers()[row], 0, last);
    std::copy_n(weight.floats().begin() + from * result.width, result.width, result.row(row));
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateEmbeddingGrad(Evaluator &e, EmbeddingGradOp op) {
  const Tensor &index = e.get(op.getIndex()), &y = e.get(op.getY());
  Tensor result = makeTensor(op.getType(), 1);
  int64_t last = result.width / y.width - 1;
  forEachElement(y, [&](int64_t row, int64_t column) {
    int64_t to = std::clamp<int64_t>(index.integers()[row], 0, last);
    result.floats()[to * y.width + column] += y.row(row)[column];
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Shared values and rows
//===----------------------------------------------------------------------===//

static Error evaluateBroadcastRows(Evaluator &e, BroadcastRowsOp op) {
  e.set(op.getResult(), repeatRows(e.get(op.getX()), e.rowsOf(op.getDomain()).count));
  return Error::success();
}

static Error evaluateDetach(Evaluator &e, DetachOp op) {
  // In a derivative, detached values are constants.
  const Tensor *value = &e.get(op.getX());
  if (e.options.held)
    if (auto held = e.options.held->find(op.getResult()); held != e.options.held->end())
      value = &held->second;
  e.set(op.getResult(), *value);
  return Error::success();
}

static Error evaluateAfter(Evaluator &e, AfterOp op) {
  e.set(op.getResult(), e.get(op.getX()));
  return Error::success();
}

static Error evaluateFixedRows(Evaluator &e, FixedRowsOp op) {
  DomainRows rows;
  rows.count = op.getCount();
  rows.offsets = {0, rows.count};
  rows.parent.assign(rows.count, 0);
  e.setRows(op.getDomain(), std::move(rows));
  return Error::success();
}

/// The same elements as a tensor of `rows` rows, or as one shared tensor.
static Error reshape(Evaluator &e, Operation *op, int64_t rows, bool shared) {
  Tensor tensor = e.get(op->getOperand(0));
  int64_t size = tensor.size();
  tensor.rows = shared ? 1 : rows;
  tensor.shared = shared;
  tensor.width = shared ? size : getRowSize(op->getResult(0).getType());
  if (tensor.rows * tensor.width != size || size != rows * getRowSize(op->getResult(0).getType()))
    return fail(op, "sees " + Twine(size) + " elements as " + Twine(rows) + " rows");
  e.set(op->getResult(0), std::move(tensor));
  return Error::success();
}

static Error evaluateSharedRows(Evaluator &e, SharedRowsOp op) {
  auto parameter = op.getDomain().getDefiningOp<ParameterRowsOp>();
  if (!parameter)
    return reshape(e, op, e.rowsOf(op.getDomain()).count, /*shared=*/false);
  RowRange own = e.getOwnRows(parameter);
  ArrayRef<double> all = e.get(op.getX()).floats();
  Tensor rows = makeTensor(op.getType(), own.count);
  auto begin = static_cast<size_t>(own.first * rows.width), size = static_cast<size_t>(rows.size());
  if (begin + size > all.size())
    return fail(op, "sees " + Twine(all.size()) + " elements as " + Twine(own.first + own.count) +
                        " rows");
  llvm::copy(all.slice(begin, size), rows.floats().begin());
  e.set(op.getResult(), std::move(rows));
  return Error::success();
}

static Error evaluateRowsAsShared(Evaluator &e, RowsAsSharedOp op) {
  return reshape(e, op, 1, /*shared=*/true);
}

void interpreter::addRowOps(HandlerMap &map) {
  map.add<RowReduceOp, evaluateRowReduce>();
  map.add<ConcatColumnsOp, evaluateConcatColumns>();
  map.add<SliceColumnsOp, evaluateSliceColumns>();
  map.add<PadColumnsOp, evaluatePadColumns>();
  map.add<LayerNormOp, evaluateLayerNorm>();
  map.add<RmsNormOp, evaluateRmsNorm>();
  map.add<L2NormalizeOp, evaluateL2Normalize>();
  map.add<LinearOp, evaluateLinear>();
  map.add<FusedLinearOp, evaluateFusedLinear>();
  map.add<WeightGradientOp, evaluateWeightGradient>();
  map.add<ReduceRowsOp, evaluateReduceRows>();
  map.add<LookupOp, evaluateLookup>();
  map.add<EmbeddingOp, evaluateEmbedding>();
  map.add<EmbeddingGradOp, evaluateEmbeddingGrad>();
  map.add<BroadcastRowsOp, evaluateBroadcastRows>();
  map.add<DetachOp, evaluateDetach>();
  map.add<AfterOp, evaluateAfter>();
  map.add<FixedRowsOp, evaluateFixedRows>();
  map.add<SharedRowsOp, evaluateSharedRows>();
  map.add<RowsAsSharedOp, evaluateRowsAsShared>();
}
