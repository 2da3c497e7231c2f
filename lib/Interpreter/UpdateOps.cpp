//===- UpdateOps.cpp - parameter and table updates, touched rows ----------===//

#include "Random.h"
#include "genrec/Dialect/GenRec/IR/Optimizers.h"
#include "genrec/Interpreter/Evaluator.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

/// A bound on a gradient that is 0 but for rounding: a few times 2^-24, the rounding error of terms
/// of about 1 that cancel.
static constexpr double kRoundedZero = 1e-7;

/// Whether row `row` of the gradient x is 0, so that the table's row is not updated. Where terms
/// cancel, rounding decides whether their sum is exactly 0. Every other perturbed run therefore
/// takes a sum near 0 for 0, so that the spread of the row covers both cases.
static bool isZeroRow(const Evaluator &e, const Tensor &x, int64_t row) {
  bool isDoubtful = e.options.precision == Precision::perturbed && e.options.perturbation % 2 == 1;
  double most = isDoubtful ? kRoundedZero : 0.0;
  return llvm::all_of(ArrayRef<double>(x.row(row), x.width),
                      [most](double v) { return std::fabs(v) <= most; });
}

/// Rounds a row of `count` values and its states to float, as stores of f32 do.
static void roundRow(const Evaluator &e, RowHandle row, int64_t count) {
  if (e.options.precision != Precision::rounded)
    return;
  for (int64_t i = 0; i < count; ++i)
    row.value[i] = static_cast<float>(row.value[i]);
}

/// Rounds the value of a row as its table stores it; that of a hot row stays.
static void roundValue(const Evaluator &e, RowHandle row, const TableState &table) {
  if (table.element == RowElement::f32 || row.isHot)
    return;
  for (int64_t i = 0; i < table.dim; ++i)
    row.value[i] = table.roundsStochastically
                       ? e.storedBf16(row.value[i], e.half(kRowRoundingStream, row.identity, i))
                       : e.storedBf16(row.value[i]);
}

//===----------------------------------------------------------------------===//
// Updates before expand-updates
//===----------------------------------------------------------------------===//

/// What the schedule makes of learning rates. An optimizer's constants are held as f32 where it is
/// expanded into ops: perturbed runs are off by as much, and so is the gradient of the next step.
static double getRateFactor(const Evaluator &e) {
  return e.perturbed(e.state.schedule.factor(e.step));
}

static Error evaluateUpdateParameter(Evaluator &e, UpdateParameterOp op) {
  StringRef name = op.getParameter();
  const std::vector<double> &gradient = e.get(op.getGradient()).floats();
  e.results.parameterGradients[name.str()] = gradient;
  e.saveParameter(name);
  ParameterState &parameter = e.parameter(name);
  RowHandle row{parameter.memory.data(), parameter.size};
  applyOptimizer(lookupParameter(op, op.getParameterAttr()).getOptimizer(), /*onTable=*/false,
                 getRateFactor(e), e.step, row, gradient);
  roundRow(e, row, (1 + parameter.states) * parameter.size);
  return Error::success();
}

/// Adds the gradients for one list of ids to the sums of their logical tables' rows.
static Error addGradients(Evaluator &e, UpdateTableOp op, const Tensor &ids,
                          const Tensor &gradients, llvm::SetVector<TableState *> &touched) {
  for (int64_t row = 0; row < ids.rows; ++row) {
    if (isZeroRow(e, gradients, row))
      continue;
    auto found = e.findLogical(op, op.getTable(), ids.integers()[row]);
    if (!found)
      return found.takeError();
    auto [table, id] = *found;
    if (!table)
      continue;
    touched.insert(table);
    std::vector<double> &sum = e.results.tableGradients[table->name][id];
    sum.resize(table->dim);
    for (int64_t column = 0; column < table->dim; ++column)
      sum[column] += gradients.row(row)[column];
  }
  return Error::success();
}

static Error evaluateUpdateTable(Evaluator &e, UpdateTableOp op) {
  llvm::SetVector<TableState *> touched;
  if (e.state.merged.find(op.getTable()) == e.state.merged.end())
    e.results.tableGradients.try_emplace(op.getTable().str());
  for (auto [ids, gradients] : llvm::zip(op.getIds(), op.getGradients()))
    if (Error error = addGradients(e, op, e.get(ids), e.get(gradients), touched))
      return error;
  OptimizerAttr optimizer = lookupTable(op, op.getTableAttr()).getOptimizer();
  for (TableState *table : touched)
    for (const auto &[id, gradient] : e.results.tableGradients[table->name]) {
      llvm::Expected<RowHandle> row = e.findRow(op, *table, id);
      if (!row)
        return row.takeError();
      applyOptimizer(optimizer, /*onTable=*/true, getRateFactor(e), e.step, *row, gradient);
      roundRow(e, *row, table->dim + table->stateFloats);
      roundValue(e, *row, *table);
    }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Lowered updates and lookups
//===----------------------------------------------------------------------===//

static Error evaluateTableRows(Evaluator &e, TableRowsOp op) {
  const Tensor &ids = e.get(op.getIds());
  Tensor result = makeTensor(op.getType(), ids.rows);
  for (int64_t row = 0; row < ids.rows; ++row) {
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    llvm::Expected<RowHandle> handle = e.findRow(op, op.getTable(), ids.integers()[row]);
    if (!handle)
      return handle.takeError();
    result.as<RowHandle>()[row] = *handle;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// A domain with one list of the rows that have `handles`.
DomainRows interpreter::stepRows(const Tensor::Handles &handles) {
  auto count = static_cast<int64_t>(handles.size());
  DomainRows rows;
  rows.count = count;
  rows.offsets = {0, count};
  rows.parent.assign(count, 0);
  for (const RowHandle &handle : handles)
    rows.identity.push_back(handle.identity);
  return rows;
}

/// A gradient per row of `rows`; where `gradients` has one per parent row, that of the parent.
static Tensor getGradients(Evaluator &e, Value gradients, Value rows) {
  if (getRowDomain(gradients.getType()) == getRowDomain(rows.getType()))
    return e.get(gradients);
  return fanOut(e.get(gradients), e.rowsOf(rows.getType()), e.rowsOf(gradients.getType()));
}

static Error evaluateUniqueRows(Evaluator &e, UniqueRowsOp op) {
  llvm::DenseMap<const double *, int64_t> numbers;
  Tensor::Handles distinct;
  std::vector<std::vector<int64_t>> segments;
  for (auto [rowsValue, gradientsValue] : llvm::zip(op.getRows(), op.getGradients())) {
    const Tensor &rows = e.get(rowsValue);
    Tensor gradients = getGradients(e, gradientsValue, rowsValue);
    std::vector<int64_t> &segmentOf = segments.emplace_back(rows.rows, -1);
    for (int64_t row = 0; row < rows.rows; ++row) {
      RowHandle handle = rows.handles()[row];
      if (handle.isZero() || (!op.getAll() && isZeroRow(e, gradients, row)))
        continue;
      auto [place, isNew] = numbers.try_emplace(handle.value, distinct.size());
      if (isNew)
        distinct.push_back(handle);
      segmentOf[row] = place->second;
    }
  }
  int64_t count = static_cast<int64_t>(distinct.size());
  Tensor result = makeTensor(op.getResult().getType(), count);
  e.setRows(op.getDomain(), stepRows(distinct));
  result.as<RowHandle>() = std::move(distinct);
  e.set(op.getResult(), std::move(result));
  e.segments[op.getDomain()] = std::move(segments);
  return Error::success();
}

static Error evaluateSegmentSum(Evaluator &e, SegmentSumOp op) {
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  const std::vector<std::vector<int64_t>> &segments = e.segments[op.getDomain()];
  auto unique = op.getDomain().getDefiningOp<UniqueRowsOp>();
  for (auto [segmentOf, rows, gradientsValue] :
       llvm::zip(segments, unique.getRows(), op.getGradients())) {
    Tensor gradients = getGradients(e, gradientsValue, rows);
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
  RowRange own = e.getOwnRows(op);
  Tensor result = makeTensor(op.getResult().getType(), own.count);
  for (int64_t row = 0; row < own.count; ++row)
    result.as<RowHandle>()[row] = {parameter.memory.data() + (own.first + row) * parameter.width,
                                   parameter.size};
  e.setRows(op.getDomain(), stepRows(result.handles()));
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
  else if (op.getName() == "first_portion")
    value = e.options.portion == 0 ? 1.0 : 0.0;
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
