//===- UpdateOps.cpp - parameter and table updates, touched rows ----------===//

#include "Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

static bool isZeroRow(const Tensor &x, int64_t row) {
  return llvm::all_of(ArrayRef<double>(x.row(row), x.width), [](double v) { return v == 0.0; });
}

/// Rounds a row and its states as stores of f32 do.
static void roundRow(const Evaluator &e, RowHandle row, int64_t states, int64_t count) {
  if (e.options.precision != Precision::rounded)
    return;
  for (int64_t slot = 0; slot <= states; ++slot)
    for (int64_t i = 0; i < count; ++i) {
      double &value = row.value[slot * row.slotStride + i];
      value = static_cast<float>(value);
    }
}

//===----------------------------------------------------------------------===//
// Updates as differentiate leaves them
//===----------------------------------------------------------------------===//

static Error evaluateUpdateParameter(Evaluator &e, UpdateParameterOp op) {
  StringRef name = op.getParameter();
  const std::vector<double> &gradient = e.get(op.getGradient()).floats();
  e.results.parameterGradients[name.str()] = gradient;
  e.saveParameter(name);
  ParameterState &parameter = e.parameter(name);
  RowHandle row{parameter.memory.data(), parameter.size};
  applyOptimizer(lookupParameter(op, op.getParameterAttr()).getOptimizer(), /*onTable=*/false,
                 e.state.schedule.factor(e.step), e.step, row, gradient);
  roundRow(e, row, parameter.states, parameter.size);
  return Error::success();
}

static Error evaluateUpdateTable(Evaluator &e, UpdateTableOp op) {
  TableState &table = e.table(op.getTable());
  std::map<int64_t, std::vector<double>> &sums = e.results.tableGradients[table.name];
  for (auto [idsValue, gradientsValue] : llvm::zip(op.getIds(), op.getGradients())) {
    const Tensor &ids = e.get(idsValue), &gradients = e.get(gradientsValue);
    for (int64_t row = 0; row < ids.rows; ++row) {
      if (isZeroRow(gradients, row))
        continue;
      std::vector<double> &sum = sums[ids.integers()[row]];
      sum.resize(table.dim);
      for (int64_t column = 0; column < table.dim; ++column)
        sum[column] += gradients.row(row)[column];
    }
  }
  OptimizerAttr optimizer = lookupTable(op, op.getTableAttr()).getOptimizer();
  for (const auto &[id, gradient] : sums) {
    llvm::Expected<RowHandle> row = e.findRow(op, table, id);
    if (!row)
      return row.takeError();
    applyOptimizer(optimizer, /*onTable=*/true, e.state.schedule.factor(e.step), e.step, *row,
                   gradient);
    roundRow(e, *row, table.states, table.dim);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What updates and lookups become
//===----------------------------------------------------------------------===//

static Error evaluateTableRows(Evaluator &e, TableRowsOp op) {
  const Tensor &ids = e.get(op.getIds());
  Tensor result = makeTensor(op.getType(), ids.rows);
  TableState &table = e.table(op.getTable());
  for (int64_t row = 0; row < ids.rows; ++row) {
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    llvm::Expected<RowHandle> handle = e.findRow(op, table, ids.integers()[row]);
    if (!handle)
      return handle.takeError();
    result.as<RowHandle>()[row] = *handle;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// A domain of one list of `count` rows.
static DomainRows stepRows(int64_t count) {
  DomainRows rows;
  rows.count = count;
  rows.offsets = {0, count};
  rows.parent.assign(count, 0);
  return rows;
}

static Error evaluateUniqueRows(Evaluator &e, UniqueRowsOp op) {
  llvm::DenseMap<const double *, int64_t> numbers;
  Tensor::Handles distinct;
  std::vector<std::vector<int64_t>> segments;
  for (auto [rowsValue, gradientsValue] : llvm::zip(op.getRows(), op.getGradients())) {
    const Tensor &rows = e.get(rowsValue), &gradients = e.get(gradientsValue);
    std::vector<int64_t> &segmentOf = segments.emplace_back(rows.rows, -1);
    for (int64_t row = 0; row < rows.rows; ++row) {
      RowHandle handle = rows.handles()[row];
      if (handle.isZero() || isZeroRow(gradients, row))
        continue;
      auto [place, isNew] = numbers.try_emplace(handle.value, distinct.size());
      if (isNew)
        distinct.push_back(handle);
      segmentOf[row] = place->second;
    }
  }
  int64_t count = static_cast<int64_t>(distinct.size());
  Tensor result = makeTensor(op.getResult().getType(), count);
  result.as<RowHandle>() = std::move(distinct);
  e.setRows(op.getDomain(), stepRows(count));
  e.set(op.getResult(), std::move(result));
  e.segments[op.getDomain()] = std::move(segments);
  return Error::success();
}

static Error evaluateSegmentSum(Evaluator &e, SegmentSumOp op) {
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  const std::vector<std::vector<int64_t>> &segments = e.segments[op.getDomain()];
  for (auto [segmentOf, gradientsValue] : llvm::zip(segments, op.getGradients())) {
    const Tensor &gradients = e.get(gradientsValue);
    forEachElement(gradients, [&, &segmentOf = segmentOf](int64_t row, int64_t column) {
      if (segmentOf[row] >= 0)
        result.row(segmentOf[row])[column] += gradients.row(row)[column];
    });
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateParameterRows(Evaluator &e, ParameterRowsOp op) {
  e.saveParameter(op.getParameter());
  ParameterState &parameter = e.parameter(op.getParameter());
  int64_t count = parameter.size / parameter.width;
  Tensor result = makeTensor(op.getResult().getType(), count);
  for (int64_t row = 0; row < count; ++row)
    result.as<RowHandle>()[row] = {parameter.memory.data() + row * parameter.width, parameter.size};
  e.setRows(op.getDomain(), stepRows(count));
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateStepValue(Evaluator &e, StepValueOp op) {
  double argument = op.getArgument().convertToDouble();
  Tensor result = makeTensor(op.getType(), 1);
  double &value = result.floats().front();
  if (op.getName() == "learning_rate")
    value = argument * e.state.schedule.factor(e.step);
  else if (op.getName() == "bias_correction")
    value = 1.0 - std::pow(argument, static_cast<double>(e.step));
  else // clip_norm, clip_value: no flag changes them here
    value = argument;
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addUpdateOps(HandlerMap &map) {
  map.add<UpdateParameterOp, evaluateUpdateParameter>();
  map.add<UpdateTableOp, evaluateUpdateTable>();
  map.add<TableRowsOp, evaluateTableRows>();
  map.add<UniqueRowsOp, evaluateUniqueRows>();
  map.add<SegmentSumOp, evaluateSegmentSum>();
  map.add<ParameterRowsOp, evaluateParameterRows>();
  map.add<StepValueOp, evaluateStepValue>();
}
